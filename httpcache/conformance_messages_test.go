package httpcache_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/httpcache"
)

func TestConformanceVary(t *testing.T) {
	play(t, httpcache.Options{AnyLanguageOrder: true}, slices.Concat(vary, varyParsing()))
}

func TestConformanceConditional(t *testing.T) {
	play(t, httpcache.Options{}, slices.Concat(conditionalTag, conditionalTime, updates()))
}

func TestConformanceMessages(t *testing.T) {
	play(t, httpcache.Options{}, slices.Concat(ranges, interim, storedFields()))
}

const freshFor = "Cache-Control: max-age=5000 | Last-Modified: @-3000 | Date: @0 | "

var vary = []behaviour{
	{name: "vary-match", rfc: "4.1", play: []step{{ask: "Foo: 1", give: freshFor + "Vary: Foo"}, {ask: "Foo: 1", want: hit}}},
	{name: "vary-no-match", rfc: "4.1", play: []step{{ask: "Foo: 1", give: freshFor + "Vary: Foo"}, {ask: "Foo: 2", want: miss}}},
	{name: "vary-omit-stored", rfc: "4.1", play: []step{{give: freshFor + "Vary: Foo"}, {ask: "Foo: 1", want: miss}}},
	{name: "vary-omit", rfc: "4.1", play: []step{{ask: "Foo: 1", give: freshFor + "Vary: Foo"}, {want: miss}}},
	{name: "vary-omit-both", rfc: "4.1", play: []step{{give: freshFor + "Vary: Foo"}, {want: hit}}},
	{name: "vary-empty", rfc: "4.1", play: []step{{ask: "Foo: ", give: freshFor + "Vary: Foo"}, {want: miss}, {ask: "Foo: ", want: hit, see: "Made-At: 0"}}},
	{name: "vary-invalidate", rfc: "4.1", play: []step{
		{ask: "Foo: 1", give: freshFor + "Vary: Foo"}, {ask: "Foo: 2", give: freshFor + "Vary: Foo", want: miss}, {ask: "Foo: 1", want: hit, see: "Made-At: 0"}, {ask: "Foo: 2", want: hit, see: "Made-At: 1"}}},
	{name: "vary-cache-key", rfc: "4.1", play: []step{{ask: "Foo: 1 | Other: 2", give: freshFor + "Vary: Foo"}, {ask: "Foo: 1 | Other: 3", want: hit}}},
	{name: "vary-2-match", rfc: "4.1", play: []step{{ask: "Foo: 1 | Bar: abc", give: freshFor + "Vary: Foo, Bar"}, {ask: "Foo: 1 | Bar: abc", want: hit}}},
	{name: "vary-2-no-match", rfc: "4.1", play: []step{{ask: "Foo: 1 | Bar: abc", give: freshFor + "Vary: Foo, Bar"}, {ask: "Foo: 2 | Bar: abc", want: miss}}},
	{name: "vary-2-match-omit", rfc: "4.1", play: []step{{ask: "Foo: 1 | Bar: abc", give: freshFor + "Vary: Foo, Bar"}, {want: miss}}},
	{name: "vary-3-match", rfc: "4.1", play: []step{{ask: "Foo: 1 | Bar: abc | Baz: 789", give: freshFor + "Vary: Foo, Bar, Baz"}, {ask: "Foo: 1 | Bar: abc | Baz: 789", want: hit}}},
	{name: "vary-3-order", rfc: "4.1", play: []step{{ask: "Foo: 1 | Bar: abc | Baz: 789", give: freshFor + "Vary: Foo, Bar, Baz"}, {ask: "Foo: 1 | Baz: 789 | Bar: abcde", want: miss}}},
	{name: "vary-3-omit", rfc: "4.1", play: []step{{ask: "Foo: 1 | Baz: 789", give: freshFor + "Vary: Foo, Bar, Baz"}, {ask: "Foo: 1 | Baz: 789", want: hit}}},
	{name: "vary-normalise-combine", rfc: "4.1", play: []step{{ask: "Foo: 1, 2", give: freshFor + "Vary: Foo"}, {ask: "Foo: 1 | Foo: 2", want: hit}}},
	{name: "vary-normalise-space", rfc: "4.1", play: []step{{ask: "Foo: 1,2", give: freshFor + "Vary: Foo"}, {ask: "Foo:  1, 2 ", want: hit}}},
	{name: "vary-normalise-lang-order", rfc: "4.1", play: []step{{ask: "Accept-Language: en, de", give: freshFor + "Vary: Accept-Language"}, {ask: "Accept-Language: de, en", want: hit}}},
	{name: "vary-normalise-lang-case", rfc: "4.1", play: []step{{ask: "Accept-Language: en, de", give: freshFor + "Vary: Accept-Language"}, {ask: "Accept-Language: eN, De", want: hit}}},
	{name: "vary-normalise-lang-space", rfc: "4.1", play: []step{{ask: "Accept-Language: en, de", give: freshFor + "Vary: Accept-Language"}, {ask: "Accept-Language:  en ,   de", want: hit}}},
	{name: "vary on more with time", rfc: "4.1", play: []step{
		{ask: "Foo: 1", give: "Cache-Control: max-age=2 | Vary: Foo", then: pause}, {ask: "Foo: 1 | Bar: 1", give: freshFor + "Vary: Foo, Bar", want: miss},
		{ask: "Foo: 1 | Bar: 2", want: miss}, {ask: "Foo: 1 | Bar: 1", want: hit, see: "Made-At: 1"}}},
	{name: "vary on nothing any more", rfc: "4.1", play: []step{
		{ask: "Foo: 1", give: "Cache-Control: max-age=2 | Vary: Foo", then: pause}, {ask: "Foo: 2", give: "Cache-Control: max-age=3600", want: miss}, {ask: "Foo: 3", want: hit, see: "Made-At: 1"}}},
	{name: "invalidated, all variants are", rfc: "4.4", play: []step{
		{ask: "Foo: 1", give: freshFor + "Vary: Foo"}, {ask: "Foo: 2", give: freshFor + "Vary: Foo"}, {method: "POST"}, {ask: "Foo: 1", give: freshFor + "Vary: Foo", want: miss}, {ask: "Foo: 2", want: miss}}},
}

func varyParsing() (all []behaviour) {
	for name, lines := range map[string]string{
		"star": "Vary: *", "star-star": "Vary: *, *", "star-star-lines": "Vary: * | Vary: *", "empty-star": "Vary: , *",
		"empty-star-lines": "Vary:  | Vary: *", "star-foo": "Vary: *, Foo", "foo-star": "Vary: Foo, *",
	} {
		all = append(all, behaviour{name: "vary-syntax-" + name, rfc: "4.1", play: []step{{ask: "Foo: 1 | Baz: 789", give: freshFor + lines}, {ask: "Foo: 1 | Baz: 789", want: miss}}})
	}
	return all
}

// tagged is a fresh answer with a tag, and then a request with a condition.
func tagged(tag, match string, want int) []step {
	first, second := step{give: "Cache-Control: max-age=3600 | ETag: " + tag, then: pause}, step{ask: "If-None-Match: " + match, want: hit, code: want}
	if want == 304 {
		second.see, second.miss = "Age: > 2 | ETag: "+tag, "Content-Type Content-Length"
	}
	return []step{first, second}
}

var conditionalTag = []behaviour{
	{name: "conditional-etag-strong-respond", rfc: "4.3.2", play: tagged(`"abcdef"`, `"abcdef"`, 304)},
	{name: "conditional-etag of another", rfc: "4.3.2", play: tagged(`"abcdef"`, `"abc"`, 200)},
	{name: "conditional-etag of any", rfc: "4.3.2", play: tagged(`"abcdef"`, `*`, 304)},
	{name: "conditional-etag-precedence", rfc: "4.3.2", play: []step{
		{give: `Cache-Control: max-age=3600 | Last-Modified: @-5000 | ETag: "abcdef"`}, {ask: `If-None-Match: "abcdef" | If-Modified-Since: @-6000`, want: hit, code: 304}}},
	{name: "conditional-etag-precedence, the other way", rfc: "4.3.2", play: []step{
		{give: `Cache-Control: max-age=3600 | Last-Modified: @-5000 | ETag: "abcdef"`}, {ask: `If-None-Match: "x" | If-Modified-Since: @-1`, want: hit}}},
	{name: "conditional-etag-strong-respond-obs-text", rfc: "9110 8.8.3", play: tagged("\"abcdef\u00fc\"", "\"abcdef\u00fc\"", 304)},
	{name: "conditional-etag-quoted-respond-unquoted", rfc: "9110 8.8.3", play: tagged(`"abcdef"`, `abcdef`, 200)},
	{name: "conditional-etag-unquoted-respond-unquoted", rfc: "9110 8.8.3", play: tagged(`abcdef`, `abcdef`, 304)},
	{name: "conditional-etag-unquoted-respond-quoted", rfc: "9110 8.8.3", play: tagged(`abcdef`, `"abcdef"`, 200)},
	{name: "conditional-etag-weak-respond", rfc: "9110 13.1.2", play: tagged(`W/"abcdef"`, `W/"abcdef"`, 304)},
	{name: "conditional-etag-weak-respond, of a strong one", rfc: "9110 13.1.2", play: tagged(`"abcdef"`, `W/"abcdef"`, 304)},
	{name: "conditional-etag-strong-respond-multiple-first", rfc: "9110 13.1.2", play: tagged(`"abcdef"`, `"abcdef", "1234", "5678"`, 304)},
	{name: "conditional-etag-strong-respond-multiple-second", rfc: "9110 13.1.2", play: tagged(`"abcdef"`, `"1234", "abcdef", "5678"`, 304)},
	{name: "conditional-etag-strong-respond-multiple-last", rfc: "9110 13.1.2", play: tagged(`"abcdef"`, `"1234", "5678", "abcdef"`, 304)},
	{name: "conditional of a head", rfc: "9110 13.1.2", play: []step{{give: `Cache-Control: max-age=3600 | ETag: "a"`}, {method: "HEAD", ask: `If-None-Match: "a"`, want: hit, code: 304}}},
	{name: "conditional of an error does not count", rfc: "9110 13.2.1", play: []step{
		{status: 404, give: `Cache-Control: max-age=3600 | ETag: "a"`}, {ask: `If-None-Match: "a"`, want: hit, code: 404}}},
	{name: "conditional-etag-vary-headers", rfc: "4.3.1", play: []step{
		{ask: "Abc: 123", give: `Expires: @1 | ETag: "abcdef" | Date: @0 | Vary: Abc`, then: pause}, {ask: "Abc: 123", want: valid, forwarded: `Abc: 123 | If-None-Match: "abcdef"`}}},
	{name: "conditional-etag-vary-headers-mismatch", rfc: "4.1", play: []step{
		{ask: "Abc: 123", give: `Expires: @10000 | ETag: "abcdef" | Date: @0 | Vary: Abc`, then: pause}, {ask: "Abc: 456", want: miss, withheld: "If-None-Match"}}},
	{name: "conditional-etag-strong-generate", rfc: "4.3.1", play: []step{{give: `Cache-Control: max-age=2 | ETag: "abcdef"`, then: pause}, {want: valid, forwarded: `If-None-Match: "abcdef"`}}},
	{name: "conditional-etag-weak-generate-weak", rfc: "4.3.1", play: []step{{give: `Cache-Control: max-age=2 | ETag: W/"abcdef"`, then: pause}, {want: valid, forwarded: `If-None-Match: W/"abcdef"`}}},
	{name: "conditional-etag, of its own", rfc: "4.3.1", play: []step{
		{give: `Cache-Control: max-age=2 | ETag: "abcdef"`, then: pause}, {ask: `If-None-Match: "other"`, want: valid, forwarded: `If-None-Match: "abcdef"`}}},
	{name: "conditional-etag, of its own, which the client has too", rfc: "4.3.2", play: []step{
		{give: `Cache-Control: max-age=2 | ETag: "abcdef"`, then: pause}, {ask: `If-None-Match: "abcdef"`, want: valid, code: 304}}},
	{name: "a new one, which the client has", rfc: "4.3.3", play: []step{
		{give: `Cache-Control: max-age=2 | ETag: "a"`, then: pause}, {ask: `If-None-Match: "b"`, give: `Cache-Control: max-age=60 | ETag: "b"`, code: 304}, {want: hit, see: "Made-At: 1"}}},
	{name: "if-match is the origin's", rfc: "4.3.2", play: []step{{give: `Cache-Control: max-age=60 | ETag: "a"`}, {ask: `If-Match: "b"`, status: 412, want: miss}, {want: hit}}},
	{name: "several users of a 304", rfc: "4.3.4", play: []step{
		{give: `Cache-Control: max-age=2 | ETag: "a"`, then: pause}, {give: `Cache-Control: max-age=60 | ETag: "a"`, want: valid, then: pause}, {want: hit, see: "Made-At: 1 | Age: 3", text: "made at step 0"}}},
}

// modified is an answer of some age, and then a request with a time.
var conditionalTime = []behaviour{
	{name: "conditional-lm-fresh", rfc: "4.3.2", play: []step{{give: "Cache-Control: max-age=100000 | Last-Modified: @-3000 | Date: @0", then: pause}, {ask: "If-Modified-Since: @-3003", want: hit, code: 304}}},
	{name: "conditional-lm-fresh-earlier", rfc: "4.3.2", play: []step{{give: "Cache-Control: max-age=100000 | Last-Modified: @-3000 | Date: @0", then: pause}, {ask: "If-Modified-Since: @-2000", want: hit, code: 304}}},
	{name: "conditional-lm-fresh-later", rfc: "4.3.2", play: []step{{give: "Cache-Control: max-age=100000 | Last-Modified: @-3000 | Date: @0", then: pause}, {ask: "If-Modified-Since: @-4000", want: hit}}},
	{name: "conditional-lm-stale", rfc: "4.3.2", play: []step{
		{give: "Cache-Control: max-age=2 | Last-Modified: Sat, 21 Nov 2026 06:00:00 GMT | Date: @0", then: pause}, {ask: "If-Modified-Since: Sat, 21 Nov 2026 06:00:00 GMT", want: valid, code: 304}}},
	{name: "conditional-lm-no-lm, by its Date", rfc: "4.3.2", play: []step{{give: "Cache-Control: max-age=10000 | Date: @0", then: pause}, {ask: "If-Modified-Since: @-3", want: hit, code: 304}}},
	{name: "conditional-lm-no-lm, older than its Date", rfc: "4.3.2", play: []step{{give: "Cache-Control: max-age=10000 | Date: @0", then: pause}, {ask: "If-Modified-Since: @-3000", want: hit}}},
	{name: "conditional-lm-fresh-rfc850", rfc: "9110 5.6.7", play: []step{
		{give: "Cache-Control: max-age=10000 | Last-Modified: Sat, 21 Nov 2026 06:00:00 GMT", then: pause}, {ask: "If-Modified-Since: Saturday, 21-Nov-26 06:00:00 GMT", want: hit, code: 304}}},
}

// updates are what a 304 makes of the stored fields: sections 3.2 and 4.3.4. (Content-Type is not among them: net/http cuts
// it from a 304.)
func updates() []behaviour {
	const lm = "Last-Modified: Wed, 01 Jan 2020 00:00:00 GMT"
	all := []behaviour{{name: "304-lm-use-stored-Test-Header", rfc: "4.3.4", play: []step{
		{give: "Cache-Control: max-age=2 | Date: @0 | Test-Header: A | " + lm, then: pause}, {give: "Date: @0 | " + lm, want: valid, see: "Test-Header: A"}}}}
	for _, field := range []string{"Test-Header", "X-Test-Header", "Content-Foo", "X-Content-Foo", "Content-Location", "Content-MD5", "Content-Security-Policy",
		"Clear-Site-Data", "Expires", "Public-Key-Pins", "X-Frame-Options", "X-XSS-Protection"} {
		all = append(all, update(field, "A", "B", "B"))
	}
	return append(all, update("Cache-Control", "max-age=1", "max-age=2", "max-age=2"), update("Content-Length", "14", "10", "14"),
		update("Content-Encoding", "A", "B", "A"), update("Content-Range", "A", "B", "A"))
}

func update(field, before, in304, after string) behaviour {
	give := func(value string) string {
		if field == "Cache-Control" {
			return field + ": " + value + tag
		}
		return "Cache-Control: max-age=2 | " + field + ": " + value + tag
	}
	third := step{want: hit, see: field + ": " + after, text: "made at step 0"}
	first := step{give: give(before), then: pause}
	second := third
	second.give, second.want = give(in304), valid
	return behaviour{name: "304-etag-update-response-" + field, rfc: "3.2", play: []step{first, second, third}}
}

var ranges = []behaviour{
	{name: "partial-store-complete-reuse-partial", rfc: "9110 14.2", play: []step{
		{give: "Cache-Control: max-age=3600", body: "01234567890"}, {ask: "Range: bytes=0-1", want: hit, code: 206, text: "01", see: "Content-Range: bytes 0-1/11 | Content-Length: 2"}}},
	{name: "partial-store-complete-reuse-partial-no-last", rfc: "9110 14.2", play: []step{
		{give: "Cache-Control: max-age=3600", body: "01234567890"}, {ask: "Range: bytes=1-", want: hit, code: 206, text: "1234567890"}}},
	{name: "partial-store-complete-reuse-partial-suffix", rfc: "9110 14.2", play: []step{
		{give: "Cache-Control: max-age=3600", body: "0123456789A"}, {ask: "Range: bytes=-1", want: hit, code: 206, text: "A"}}},
	{name: "partial-use-stored-headers", rfc: "9110 15.3.7", play: []step{
		{give: "Cache-Control: max-age=3600 | A: 1", body: "01234567890"}, {ask: "Range: bytes=0-1", want: hit, code: 206, text: "01", see: "A: 1"}}},
	{name: "several parts are the whole", rfc: "9110 14.2", play: []step{
		{give: "Cache-Control: max-age=3600", body: "01234567890"}, {ask: "Range: bytes=0-1,4-5", want: hit, text: "01234567890"}}},
	{name: "beyond the end", rfc: "9110 15.5.17", play: []step{
		{give: "Cache-Control: max-age=3600", body: "01234567890"}, {ask: "Range: bytes=11-", want: hit, code: 416, see: "Content-Range: bytes */11"}, {want: hit}}},
	{name: "if-range", rfc: "9110 13.1.5", play: []step{
		{give: `Cache-Control: max-age=3600 | ETag: "a"`, body: "01234567890"}, {ask: `Range: bytes=0-1 | If-Range: "a"`, want: hit, code: 206, text: "01"},
		{ask: `Range: bytes=0-1 | If-Range: "b"`, want: hit, text: "01234567890"}}},
	{name: "a condition comes before a range", rfc: "9110 13.2.2", play: []step{
		{give: `Cache-Control: max-age=3600 | ETag: "a"`, body: "01234567890"}, {ask: `Range: bytes=0-1 | If-None-Match: "a"`, want: hit, code: 304}}},
	{name: "a range of a head does not count", rfc: "9110 14.2", play: []step{
		{give: "Cache-Control: max-age=3600", body: "01234567890"}, {method: "HEAD", ask: "Range: bytes=0-1", want: hit, see: "Content-Length: 11"}}},
	{name: "a part is passed on, and is not the whole", rfc: "3.3", play: []step{
		{ask: "Range: bytes=-5", status: 206, give: "Cache-Control: max-age=3600 | Content-Range: bytes 5-9/10", body: "01234", see: "Content-Range: bytes 5-9/10", forwarded: "Range: bytes=-5"}, {want: miss}}},
	{name: "a refused part is not the whole", rfc: "3.3", play: []step{
		{ask: "Range: bytes=99-", status: 416, give: "Cache-Control: max-age=3600 | Content-Range: bytes */10"}, {want: miss}}},
}

var interim = []behaviour{
	{name: "interim-103", rfc: "9110 15.2", play: []step{{hints: "Link: </a.css>; rel=preload; as=style | X-My-Header: test", give: "Cache-Control: max-age=100000 | Date: @0", miss: "X-My-Header Link", then: pause}, {want: hit, miss: "X-My-Header Link"}}},
}

// storedFields are those that are kept, and those that are not: section 3.1.
func storedFields() []behaviour {
	all := []behaviour{{name: "headers-omit-headers-listed-in-Connection", rfc: "3.1", play: []step{
		{give: "Cache-Control: max-age=3600 | Connection: a, b | A: 1 | B: 2 | C: 3", then: pause}, {want: hit, see: "C: 3", miss: "A B"}}}}
	for field, value := range map[string]string{"Test-Header": "x", "X-Test-Header": "x", "Content-Foo": "x", "X-Content-Foo": "x", "Content-Encoding": "x", "Content-Location": "/bar",
		"Content-MD5": "N7UdGUp1E+RbVvZSTy1R8g==", "Content-Range": "x", "Content-Security-Policy": "default-src 'self'", "Clear-Site-Data": "cookies", "ETag": `"ghijkl"`,
		"Expires": "Mon, 11 Jan 2038 11:11:11 GMT", "Public-Key-Pins": "x", "Set-Cookie2": "a=c", "X-Frame-Options": "deny", "X-XSS-Protection": "1", "Strict-Transport-Security": "x",
		"WWW-Authenticate": "x", "CDN-Cache-Control": "foo", "Last-Modified": "Mon, 11 Jan 2021 11:11:11 GMT"} {
		all = append(all, behaviour{name: "headers-store-" + field, rfc: "3.1", play: []step{
			{give: "Cache-Control: max-age=3600 | " + field + ": " + value, then: pause}, {want: hit, see: field + ": " + value}}})
	}
	for _, field := range []string{"Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization", "Proxy-Connection", "TE", "Upgrade"} {
		all = append(all, behaviour{name: "headers-store-" + field, rfc: "3.1", play: []step{
			{give: "Cache-Control: max-age=3600 | " + field + ": x", then: pause}, {want: hit, miss: field}}})
	}
	slices.SortFunc(all, func(a, b behaviour) int { return strings.Compare(a.name, b.name) })
	return all
}
