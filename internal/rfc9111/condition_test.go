package rfc9111_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

// What a cache answers to a condition: RFC 9111, section 4.3.2; RFC 9110, section 13.
func TestNotModified(t *testing.T) {
	tagged, weak := []string{`ETag: "a"`}, []string{`ETag: W/"a"`}
	modified := []string{"Last-Modified: " + at(-50*time.Minute), "Date: " + at(0)}
	for _, x := range []struct {
		name    string
		request string
		stored  []string
		want    bool
	}{
		{"the tag (9110, 13.1.2)", `If-None-Match: "a"`, tagged, true},
		{"another", `If-None-Match: "b"`, tagged, false},
		{"any", `If-None-Match: *`, tagged, true},
		{"any, of what has none", `If-None-Match: *`, nil, true},
		{"the first of many", `If-None-Match: "a", "b", "c"`, tagged, true},
		{"one in the middle", `If-None-Match: "b", "a", "c"`, tagged, true},
		{"the last", `If-None-Match: "b","c","a"`, tagged, true},
		{"a comma in a tag", `If-None-Match: "b,a", "c"`, []string{`ETag: "b,a"`}, true},
		{"a part of a tag", `If-None-Match: "b,a"`, []string{`ETag: "a"`}, false},
		{"weak and weak (9110, 8.8.3.2)", `If-None-Match: W/"a"`, weak, true},
		{"weak and strong", `If-None-Match: W/"a"`, tagged, true},
		{"strong and weak", `If-None-Match: "a"`, weak, true},
		{"W is upper case (9110, 8.8.3)", `If-None-Match: w/"a"`, weak, false},
		{"letter case of the tag", `If-None-Match: "A"`, tagged, false},
		{"obs-text", "If-None-Match: \"\xfc\"", []string{"ETag: \"\xfc\""}, true},
		{"unquoted here and there", `If-None-Match: a`, []string{`ETag: a`}, true},
		{"unquoted here", `If-None-Match: a`, tagged, false},
		{"a tag, and nothing stored to compare", `If-None-Match: "a"`, nil, false},
		{"an empty list", `If-None-Match: `, tagged, false},

		{"of that time (9110, 13.1.3)", "If-Modified-Since: " + at(-50*time.Minute), modified, true},
		{"older", "If-Modified-Since: " + at(-30*time.Minute), modified, true},
		{"newer", "If-Modified-Since: " + at(-51*time.Minute), modified, false},
		{"in another form", "If-Modified-Since: " + now.Add(-50*time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), modified, true},
		{"no date", "If-Modified-Since: 0", modified, false},
		{"as new as its Date (9111, 4.3.2)", "If-Modified-Since: " + at(-time.Minute), []string{"Date: " + at(-2*time.Minute)}, true},
		{"newer by its Date", "If-Modified-Since: " + at(-3*time.Minute), []string{"Date: " + at(-2*time.Minute)}, false},
		{"as new as when it came", "If-Modified-Since: " + at(0), nil, true},
		{"newer by when it came", "If-Modified-Since: " + at(-time.Second), nil, false},
		{"no condition", "Accept: */*", tagged, false},
	} {
		if got := rfc9111.NotModified(header(x.request), header(x.stored...), now); got != x.want {
			t.Errorf("%s: %q of %q: %v", x.name, x.request, x.stored, got)
		}
	}
	both := header(`If-None-Match: "b"`, "If-Modified-Since: "+at(0))
	if rfc9111.NotModified(both, header(`ETag: "a"`, "Last-Modified: "+at(-time.Hour)), now) {
		t.Error("If-Modified-Since counts beside If-None-Match (9110, 13.2.2)")
	}
	if rfc9111.NotModified(header("If-Modified-Since: "+at(0), "If-Modified-Since: "+at(0)), nil, now) {
		t.Error("two dates (9110, 13.1.3)")
	}
	if h := both; !rfc9111.Conditional(h) || rfc9111.ForOrigin(h) || !rfc9111.ForOrigin(header(`If-Match: "a"`)) || rfc9111.Conditional(header(`If-Match: "a"`)) ||
		!rfc9111.ForOrigin(header("If-Unmodified-Since: x")) {
		t.Error("whose conditions they are")
	}
}

// RFC 9110, section 15.4.5.
func TestStripBody(t *testing.T) {
	stored := header("Date: d", `ETag: "a"`, "Last-Modified: l", "Expires: e", "Cache-Control: c", "Vary: v", "Content-Location: /l", "Set-Cookie: a=b",
		"Content-Security-Policy: p", "X: y", "Content-Type: t", "Content-Length: 5", "Content-Encoding: gzip", "Content-Range: r", "Content-Language: de")
	want := header("Date: d", `ETag: "a"`, "Last-Modified: l", "Expires: e", "Cache-Control: c", "Vary: v", "Content-Location: /l", "Set-Cookie: a=b",
		"Content-Security-Policy: p", "X: y")
	rfc9111.StripBody(stored)
	if d := diff.Of(want, stored); d != "" {
		t.Error(d)
	}
}

// RFC 9111, section 4.3.1.
func TestAskValid(t *testing.T) {
	for _, x := range []struct {
		name            string
		request, stored []string
		want            []string
		ok              bool
	}{
		{"both validators", []string{"Foo: 1"}, []string{`ETag: W/"a"`, "Last-Modified: l"}, []string{"Foo: 1", `If-None-Match: W/"a"`, "If-Modified-Since: l"}, true},
		{"in place of the client's", []string{`If-None-Match: "b", "c"`, "If-Modified-Since: m", "Range: bytes=0-1", `If-Range: "b"`}, []string{`ETag: "a"`}, []string{`If-None-Match: "a"`}, true},
		{"none", []string{`If-None-Match: "b"`, "Foo: 1"}, nil, []string{"Foo: 1"}, false},
		{"two tags are none", nil, []string{`ETag: "a"`, `ETag: "b"`}, nil, false},
	} {
		r := header(x.request...)
		ok := rfc9111.AskValid(r, header(x.stored...))
		if d := diff.Of(header(x.want...), r); d != "" || ok != x.ok {
			t.Errorf("%s: %v\n%s", x.name, ok, d)
		}
	}
}

// A list of tags, however broken, is not a match for a tag that is not in it.
func FuzzNotModified(f *testing.F) {
	f.Add(`"a", W/"b"`, `"b"`, at(0))
	f.Add(`"`, `"`, "")
	f.Fuzz(func(t *testing.T, tags, tag, date string) {
		rfc9111.NotModified(http.Header{"If-Modified-Since": {date}}, http.Header{"Last-Modified": {date}}, now)
		if rfc9111.NotModified(http.Header{"If-None-Match": {tags}}, http.Header{"Etag": {`"mayfly"`}}, now) && !containsAny(tags, "mayfly", "*") {
			t.Errorf("%q matches", tags)
		}
		rfc9111.NotModified(http.Header{"If-None-Match": {tags}}, http.Header{"Etag": {tag}}, now)
	})
}
