package rfc9111_test

import (
	"testing"

	"github.com/mayflycache/mayfly/internal/rfc9111"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

type directives = rfc9111.Directives

func given(n int64) rfc9111.Delta { return rfc9111.Delta{Seconds: n, Given: true} }

// RFC 9111, section 5.2, and where a case says so.
func TestParseCacheControlOfResponses(t *testing.T) {
	for _, x := range []struct {
		name  string
		lines []string
		want  directives
	}{
		{"none", nil, directives{}},
		{"empty", []string{"Cache-Control: "}, directives{}},
		{"max-age", []string{"Cache-Control: max-age=3600"}, directives{MaxAge: given(3600)}},
		{"in any order, on several lines", []string{"Cache-Control: s-maxage=1, max-age=2", "Cache-Control: public"},
			directives{SMaxAge: given(1), MaxAge: given(2), Public: true}},
		{"letter case does not count", []string{"Cache-Control: MaX-aGe=3600, No-StOrE"}, directives{MaxAge: given(3600), NoStore: true}},
		{"whitespace and empty elements", []string{"Cache-Control: ,, public ,\tmax-age=1 ,"}, directives{Public: true, MaxAge: given(1)}},
		{"a quoted number (section 5.2: both forms)", []string{`Cache-Control: max-age="3600"`}, directives{MaxAge: given(3600)}},
		{"a number in single quotes", []string{`Cache-Control: max-age='3600'`}, directives{MaxAge: given(0)}},
		{"unknown ones do not count", []string{"Cache-Control: foobar, foo=bar, max-age=3600"}, directives{MaxAge: given(3600)}},
		{"in a string of another directive", []string{`Cache-Control: extension="max-age=3600, no-store", max-age=1`}, directives{MaxAge: given(1)}},
		{"a quoted quote", []string{`Cache-Control: e="\", no-store, \"", max-age=1`}, directives{MaxAge: given(1)}},
		{"a quote that never closes hides nothing", []string{`Cache-Control: e="a, no-store`, "Cache-Control: private"}, directives{NoStore: true, Private: true}},
		{"leading zeros (section 1.2.2)", []string{"Cache-Control: max-age=003600"}, directives{MaxAge: given(3600)}},
		{"2^31 and more (section 1.2.2)", []string{"Cache-Control: max-age=2147483648, s-maxage=99999999999999999999999"},
			directives{MaxAge: given(1 << 31), SMaxAge: given(1 << 31)}},
		{"negative", []string{"Cache-Control: max-age=-3600"}, directives{MaxAge: given(0)}},
		{"with letters", []string{"Cache-Control: max-age=3600a"}, directives{MaxAge: given(0)}},
		{"a fraction", []string{"Cache-Control: max-age=3600.0"}, directives{MaxAge: given(0)}},
		{"without a number", []string{"Cache-Control: max-age"}, directives{MaxAge: given(0)}},
		{"space before =", []string{"Cache-Control: max-age =3600"}, directives{MaxAge: given(0)}},
		{"space after =", []string{"Cache-Control: max-age= 3600"}, directives{MaxAge: given(0)}},
		{"the first of two counts (section 4.2.1)", []string{"Cache-Control: max-age=1800, max-age=1"}, directives{MaxAge: given(1800)}},
		{"the first of two lines counts", []string{"Cache-Control: max-age=1", "Cache-Control: max-age=1800"}, directives{MaxAge: given(1)}},
		{"no-cache (5.2.2.4)", []string{"Cache-Control: no-cache"}, directives{NoCache: true}},
		{"qualified no-cache (5.2.2.4)", []string{`Cache-Control: no-cache="set-cookie, B"`}, directives{Fields: []string{"Set-Cookie", "B"}}},
		{"qualified private (5.2.2.7)", []string{`Cache-Control: private="a"`}, directives{Fields: []string{"A"}}},
		{"both", []string{`Cache-Control: private="a", no-cache="b", no-cache`}, directives{Fields: []string{"A", "B"}, NoCache: true}},
		{"qualified by a token: about all", []string{`Cache-Control: no-cache=a, private=b`}, directives{NoCache: true, Private: true}},
		{"qualified by nothing: about all", []string{`Cache-Control: no-cache="", private=" , "`}, directives{NoCache: true, Private: true}},
		{"qualified by what is no field: about all", []string{`Cache-Control: private="a b"`}, directives{Private: true, Fields: []string{"a b"}}},
		{"the rest", []string{"Cache-Control: must-revalidate, proxy-revalidate, must-understand, immutable, private, no-store"},
			directives{MustRevalidate: true, ProxyRevalidate: true, MustUnderstand: true, Immutable: true, Private: true, NoStore: true}},
		{"RFC 5861", []string{"Cache-Control: stale-while-revalidate=30, stale-if-error=60"},
			directives{StaleWhileRevalidate: given(30), StaleIfError: given(60)}},
	} {
		if d := diff.Of(x.want, rfc9111.ParseCacheControl(header(x.lines...))); d != "" {
			t.Errorf("%s: %q%s", x.name, x.lines, d)
		}
	}
}

// RFC 9111, section 5.2.1.
func TestParseCacheControlOfRequests(t *testing.T) {
	for _, x := range []struct {
		name string
		line string
		want directives
	}{
		{"max-age, min-fresh", "Cache-Control: max-age=0, min-fresh=5", directives{MaxAge: given(0), MinFresh: given(5)}},
		{"max-stale", "Cache-Control: max-stale=5", directives{MaxStale: given(5)}},
		{"any max-stale (5.2.1.2)", "Cache-Control: max-stale", directives{MaxStale: given(1 << 31)}},
		{"flags", "Cache-Control: no-cache, no-store, only-if-cached", directives{NoCache: true, NoStore: true, OnlyIfCached: true}},
		{"Pragma is of the past (5.4)", "Pragma: no-cache", directives{}},
	} {
		if d := diff.Of(x.want, rfc9111.ParseCacheControl(header(x.line))); d != "" {
			t.Errorf("%s: %q%s", x.name, x.line, d)
		}
	}
}

func FuzzParseCacheControl(f *testing.F) {
	for _, s := range []string{`max-age=60, private="a, b"`, `e="\", no-store, \"`, `no-cache=",`, "max-stale", ",=,\"", `"`} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		d := rfc9111.ParseCacheControl(map[string][]string{"Cache-Control": {a, b}})
		for _, n := range []rfc9111.Delta{d.MaxAge, d.SMaxAge, d.MinFresh, d.MaxStale, d.StaleIfError, d.StaleWhileRevalidate} {
			if n.Seconds < 0 || n.Seconds > 1<<31 || !n.Given && n.Seconds != 0 {
				t.Errorf("%q %q: %+v", a, b, n)
			}
		}
		if alone := rfc9111.ParseCacheControl(map[string][]string{"Cache-Control": {a}}); alone.NoStore && !d.NoStore || alone.Private && !d.Private {
			t.Errorf("a second line %q hides what %q forbids", b, a)
		}
	})
}
