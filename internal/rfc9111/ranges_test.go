package rfc9111_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// RFC 9110, section 14.
func TestRange(t *testing.T) {
	const whole, single, none = rfc9111.Whole, rfc9111.Single, rfc9111.Unsatisfiable
	stored := []string{`ETag: "a"`, "Last-Modified: " + at(-time.Hour), "Date: " + at(0)}
	for _, x := range []struct {
		name    string
		asked   string // Range, then If-Range
		stored  []string
		size    int64
		want    rfc9111.Part
		content string // Content-Range
	}{
		{"first and last (14.1.2)", "bytes=0-1", nil, 11, single, "bytes 0-1/11"},
		{"one byte", "bytes=10-10", nil, 11, single, "bytes 10-10/11"},
		{"no last", "bytes=1-", nil, 11, single, "bytes 1-10/11"},
		{"a last beyond the end", "bytes=5-99999999999999999999999", nil, 11, single, "bytes 5-10/11"},
		{"a suffix", "bytes=-1", nil, 11, single, "bytes 10-10/11"},
		{"a suffix longer than all", "bytes=-99999999999999999999", nil, 11, single, "bytes 0-10/11"},
		{"the unit's case (14.1)", "Bytes=0-1", nil, 11, single, "bytes 0-1/11"},
		{"a first beyond the end", "bytes=11-", nil, 11, none, ""},
		{"a first far beyond the end", "bytes=99999999999999999999999-", nil, 11, none, ""},
		{"a suffix of nothing", "bytes=-0", nil, 11, none, ""},
		{"anything of an empty body", "bytes=0-", nil, 0, whole, ""},
		{"the beginning of an empty body", "bytes=0-9", nil, 0, whole, ""},
		{"a part of an empty body that it never had", "bytes=5-9", nil, 0, whole, ""},
		{"the end of an empty body", "bytes=-5", nil, 0, whole, ""},
		{"nothing of an empty body", "bytes=-0", nil, 0, whole, ""},
		{"none", "", nil, 11, whole, ""},
		{"another unit", "lines=0-1", nil, 11, whole, ""},
		{"several (14.2: may be ignored)", "bytes=0-1,3-4", nil, 11, whole, ""},
		{"backwards", "bytes=2-1", nil, 11, whole, ""},
		{"no positions", "bytes=-", nil, 11, whole, ""},
		{"no dash", "bytes=1", nil, 11, whole, ""},
		{"no =", "bytes 0-1", nil, 11, whole, ""},
		{"a sign", "bytes=+0-1", nil, 11, whole, ""},
		{"two dashes", "bytes=0--1", nil, 11, whole, ""},
		{"words", "bytes=a-b", nil, 11, whole, ""},

		{"If-Range, its tag (13.1.5)", `bytes=0-1|"a"`, stored, 11, single, "bytes 0-1/11"},
		{"If-Range, another tag", `bytes=0-1|"b"`, stored, 11, whole, ""},
		{"If-Range, a weak tag", `bytes=0-1|W/"a"`, []string{`ETag: W/"a"`}, 11, whole, ""},
		{"If-Range, strong for weak", `bytes=0-1|"a"`, []string{`ETag: W/"a"`}, 11, whole, ""},
		{"If-Range, its time", "bytes=0-1|" + at(-time.Hour), stored, 11, single, "bytes 0-1/11"},
		{"If-Range, a later time: it must be exactly it", "bytes=0-1|" + at(0), stored, 11, whole, ""},
		{"If-Range, a time that is weak (9110, 8.8.2.2)", "bytes=0-1|" + at(0), []string{"Last-Modified: " + at(0), "Date: " + at(0)}, 11, whole, ""},
		{"If-Range, a time where there is none", "bytes=0-1|" + at(0), nil, 11, whole, ""},
		{"If-Range, neither", "bytes=0-1|foo", stored, 11, whole, ""},
		{"If-Range does not make a bad range good", `bytes=11-|"a"`, stored, 11, none, ""},
	} {
		h := http.Header{}
		if asked, cond, ok := strings.Cut(x.asked, "|"); asked != "" {
			h.Set("Range", asked)
			if ok {
				h.Set("If-Range", cond)
			}
		}
		span, part := rfc9111.Range(h, header(x.stored...), x.size, now)
		if part != x.want || part == single && span.ContentRange(x.size) != x.content {
			t.Errorf("%s: %q: %d %+v, want %d %s", x.name, x.asked, part, span, x.want, x.content)
		}
	}
	if got := rfc9111.Unsatisfied(11); got != "bytes */11" {
		t.Error(got)
	}
}

// A part is inside the body.
func FuzzRange(f *testing.F) {
	f.Add("bytes=0-1", int64(11))
	f.Add("bytes=-9223372036854775807", int64(1))
	f.Add("bytes=9223372036854775807-9223372036854775807", int64(1<<62))
	f.Fuzz(func(t *testing.T, s string, size int64) {
		if size < 0 {
			return
		}
		span, part := rfc9111.Range(http.Header{"Range": {s}}, nil, size, now)
		if part == rfc9111.Single && (span.First < 0 || span.First > span.Last || span.Last >= size) {
			t.Errorf("%q of %d bytes: %+v", s, size, span)
		}
	})
}
