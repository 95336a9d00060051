package rfc9111_test

import (
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

// RFC 9111, sections 3.2 and 4.3.4.
func TestUpdate(t *testing.T) {
	stored := header("Date: "+at(-time.Hour), "Age: 5", `ETag: "a"`, "Cache-Control: max-age=1", "Content-Length: 10", "Content-Encoding: gzip", "Content-Range: r",
		"Content-Type: text/plain", "X: 1", "Y: 1", "Y: 2")
	before := stored.Clone()
	got := rfc9111.Update(stored, header("Date: "+at(0), `ETag: "a"`, "Cache-Control: max-age=3600", "Content-Length: 0", "Content-Encoding: br", "Content-Range: s",
		"Content-Type: text/html", "Y: 3", "Z: 4", "Connection: close", "Transfer-Encoding: chunked", "Proxy-Foo: 1"))
	want := header("Date: "+at(0), `ETag: "a"`, "Cache-Control: max-age=3600", "Content-Length: 10", "Content-Encoding: gzip", "Content-Range: r",
		"Content-Type: text/html", "X: 1", "Y: 3", "Z: 4")
	if d := diff.Of(want, got); d != "" {
		t.Errorf("%s", d)
	}
	if d := diff.Of(before, stored); d != "" {
		t.Errorf("the stored header changed: %s", d)
	}

	// A 304 makes an answer of an hour ago new: neither its Date nor its Age counts, although a handler's 304 has none of its own.
	x := exchange(200)
	x.Header = rfc9111.Update(stored, header("Cache-Control: max-age=60"))
	if p, reason := rules.Judge(x); p.Left(now) != time.Minute {
		t.Errorf("after a 304: %v left, %q", p.Left(now), reason)
	}
}

// RFC 9111, section 4.3.4.
func TestSelects(t *testing.T) {
	for _, x := range []struct {
		name   string
		stored []string
		got    []string
		want   bool
	}{
		{"the same tag", []string{`ETag: "a"`}, []string{`ETag: "a"`}, true},
		{"another tag", []string{`ETag: "a"`}, []string{`ETag: "b"`}, false},
		{"a weak tag for a strong one", []string{`ETag: "a"`}, []string{`ETag: W/"a"`}, true},
		{"a strong tag for a weak one", []string{`ETag: W/"a"`}, []string{`ETag: "a"`}, false},
		{"a tag where there was none", nil, []string{`ETag: "a"`}, false},
		{"no validator: it answers what was asked", []string{`ETag: "a"`}, nil, true},
		{"the same time", []string{"Last-Modified: l"}, []string{"Last-Modified: l"}, true},
		{"another time", []string{"Last-Modified: l"}, []string{"Last-Modified: m"}, false},
		{"the tag decides, not the time", []string{`ETag: "a"`, "Last-Modified: l"}, []string{`ETag: "a"`, "Last-Modified: m"}, true},
	} {
		if got := rfc9111.Selects(header(x.stored...), header(x.got...)); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// RFC 9111, section 4.3.5.
func TestFreshens(t *testing.T) {
	stored := header(`ETag: "a"`, "Last-Modified: l", "Date: Sat, 21 Nov 2026 09:30:00 GMT")
	for _, x := range []struct {
		name        string
		head        []string
		same, other bool
	}{
		{"no validators, no length", nil, false, false},
		{"all the same", []string{`ETag: "a"`, "Last-Modified: l", "Content-Length: 10"}, true, false},
		{"the tag alone", []string{`ETag: "a"`}, true, false},
		{"the time alone", []string{"Last-Modified: l"}, false, false},
		{"the length alone", []string{"Content-Length: 10"}, false, false},
		{"a Date", []string{"Date: Sat, 21 Nov 2026 09:30:03 GMT"}, false, false},
		{"the tag, and it is older", []string{`ETag: "a"`, "Date: Sat, 21 Nov 2026 09:29:59 GMT"}, false, true},
		{"another tag", []string{`ETag: "b"`}, false, true},
		{"another time", []string{`ETag: "a"`, "Last-Modified: m"}, false, true},
		{"another length", []string{"Content-Length: 11"}, false, true},
	} {
		if same, other := rfc9111.Freshens(stored, header(x.head...), "10"); same != x.same || other != x.other {
			t.Errorf("%s: %v, %v", x.name, same, other)
		}
	}
	weak := header(`ETag: W/"a"`)
	if same, other := rfc9111.Freshens(weak, weak, "10"); same || other {
		t.Errorf("a weak tag: %v, %v", same, other)
	}
}
