package httpcache_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/httpcache"
)

func TestConformanceControl(t *testing.T) {
	play(t, httpcache.Options{}, slices.Concat(responseDirectives, requestDirectives, pragma, authorization, cookies, methods, heads, invalidation(), keys))
}

func TestConformanceStale(t *testing.T) {
	play(t, httpcache.Options{}, stale)
	play(t, httpcache.Options{StaleOn: []int{500, 503}}, []behaviour{
		{name: "stale-503", rfc: "4.2.4", play: []step{becomesStale, {status: 503, want: hit, code: 200}}},
		{name: "stale-500", rfc: "4.2.4", play: []step{becomesStale, {status: 500, want: hit, code: 200}}},
		{name: "stale-504, which is not in the list", rfc: "4.2.4", play: []step{becomesStale, {status: 504, want: miss}}},
	})
}

// By the letter of the RFC, a response that sets a cookie is a response.
func TestConformanceCookiesByTheLetter(t *testing.T) {
	play(t, httpcache.Options{StoreSetCookie: true}, []behaviour{
		{name: "other-set-cookie", rfc: "7.3", play: []step{{give: "Cache-Control: max-age=3600 | Set-Cookie: a=b", then: pause}, {want: hit, see: "Set-Cookie: a=b"}}}})
}

const tag = ` | ETag: "abcd"`

var responseDirectives = []behaviour{
	{name: "cc-resp-private-shared", rfc: "5.2.2.7", play: refuse("Cache-Control: private, max-age=3600")},
	{name: "cc-resp-no-store", rfc: "5.2.2.5", play: refuse("Cache-Control: no-store")},
	{name: "cc-resp-no-store-case-insensitive", rfc: "5.2.2.5", play: refuse("Cache-Control: No-StOrE")},
	{name: "cc-resp-no-store-fresh", rfc: "5.2.2.5", play: refuse("Cache-Control: max-age=10000, no-store | Expires: @10000 | Date: @0")},
	{name: "cc-resp-no-store-old-new", rfc: "5.2.2.5", play: []step{
		{give: "Cache-Control: max-age=10000 | A: 1", then: pause}, {give: "Cache-Control: no-store | A: 2", want: hit, then: pause}, {want: hit, see: "A: 1"}}},
	{name: "cc-resp-no-cache", rfc: "5.2.2.4", play: refuse("Cache-Control: max-age=10000, no-cache | Expires: @10000 | Date: @0")},
	{name: "cc-resp-no-cache-case-insensitive", rfc: "5.2.2.4", play: refuse("Cache-Control: max-age=10000, No-CaChE | Expires: @10000 | Date: @0")},
	{name: "cc-resp-no-cache-revalidate", rfc: "5.2.2.4", play: []step{{give: "Cache-Control: no-cache" + tag}, {want: valid}}},
	{name: "cc-resp-no-cache-revalidate-fresh", rfc: "5.2.2.4", play: []step{{give: "Cache-Control: max-age=10000, no-cache | Expires: @10000" + tag}, {want: valid}}},
	{name: "headers-omit-headers-listed-in-Cache-Control-no-cache-single", rfc: "5.2.2.4", play: []step{
		{give: `Cache-Control: no-cache="a" | A: 1 | B: 2 | Cache-Control: max-age=3600`, see: "A: 1", then: pause}, {want: hit, see: "B: 2", miss: "A"}}},
	{name: "headers-omit-headers-listed-in-Cache-Control-no-cache", rfc: "5.2.2.4", play: []step{
		{give: `Cache-Control: no-cache="a, b" | A: 1 | B: 2 | C: 3 | Cache-Control: max-age=3600`, then: pause}, {want: hit, see: "C: 3", miss: "A B"}}},
	{name: "headers listed in private", rfc: "5.2.2.7", play: []step{
		{give: `Cache-Control: private="Set-Cookie", max-age=3600 | Set-Cookie: a=b`, see: "Set-Cookie: a=b", then: pause}, {want: hit, miss: "Set-Cookie"}}},
	{name: "cc-resp-must-revalidate-fresh", rfc: "5.2.2.2", play: reuse("Cache-Control: max-age=10000, must-revalidate" + tag)},
	{name: "cc-resp-must-revalidate-stale", rfc: "5.2.2.2", play: []step{
		{give: "Cache-Control: max-age=2, must-revalidate" + tag}, {give: "Cache-Control: max-age=2, must-revalidate" + tag, want: hit, then: pause}, {want: valid}}},
	{name: "cc-resp-immutable-reload", rfc: "8246 2", play: []step{
		{give: "Cache-Control: max-age=10000, immutable" + tag, then: pause}, {ask: "Cache-Control: max-age=0", want: hit}}},
	{name: "cc-resp-immutable-stale", rfc: "8246 2", play: []step{
		{give: "Cache-Control: max-age=2, immutable" + tag, then: pause}, {ask: "Cache-Control: max-age=0", want: valid}}},
}

var requestDirectives = []behaviour{
	{name: "ccreq-ma0", rfc: "5.2.1.1", play: []step{{give: "Cache-Control: max-age=3600", then: pause}, {ask: "Cache-Control: max-age=0", want: miss}}},
	{name: "ccreq-ma1", rfc: "5.2.1.1", play: []step{{give: "Cache-Control: max-age=3600", then: pause}, {ask: "Cache-Control: max-age=1", want: miss}}},
	{name: "ccreq-magreaterage", rfc: "5.2.1.1", play: []step{{give: "Cache-Control: max-age=3600 | Age: 1800"}, {ask: "Cache-Control: max-age=600", want: miss}}},
	{name: "ccreq-max-stale", rfc: "5.2.1.2", play: []step{{give: "Cache-Control: max-age=1", then: pause}, {ask: "Cache-Control: max-stale=1000", want: hit}}},
	{name: "ccreq-max-stale-age", rfc: "5.2.1.2", play: []step{{give: "Cache-Control: max-age=1500 | Age: 2000"}, {ask: "Cache-Control: max-stale=1000", want: hit}}},
	{name: "ccreq-min-fresh", rfc: "5.2.1.3", play: []step{{give: "Cache-Control: max-age=1500"}, {ask: "Cache-Control: min-fresh=2000", want: miss}}},
	{name: "ccreq-min-fresh-age", rfc: "5.2.1.3", play: []step{{give: "Cache-Control: max-age=1500 | Age: 1000"}, {ask: "Cache-Control: min-fresh=1000", want: miss}}},
	{name: "ccreq-no-cache", rfc: "5.2.1.4", play: []step{{give: "Cache-Control: max-age=3600"}, {ask: "Cache-Control: no-cache", want: miss}}},
	{name: "ccreq-no-cache-lm", rfc: "5.2.1.4", play: []step{
		{give: "Cache-Control: max-age=3600 | Last-Modified: Sat, 21 Nov 2026 06:00:00 GMT"}, {ask: "Cache-Control: no-cache", want: valid}}},
	{name: "ccreq-no-cache-etag", rfc: "5.2.1.4", play: []step{{give: "Cache-Control: max-age=3600" + tag}, {ask: "Cache-Control: no-cache", want: valid}}},
	{name: "ccreq-no-store", rfc: "5.2.1.5", play: []step{{give: "Cache-Control: max-age=3600"}, {ask: "Cache-Control: no-store", want: miss}}},
	{name: "ccreq-no-store, of the first", rfc: "5.2.1.5", play: []step{{ask: "Cache-Control: no-store", give: "Cache-Control: max-age=3600"}, {want: miss}}},
	{name: "ccreq-oic", rfc: "5.2.1.7", play: []step{{ask: "Cache-Control: only-if-cached", code: 504, text: "Gateway Timeout\n"}}},
	{name: "ccreq-oic, of what is there", rfc: "5.2.1.7", play: []step{{give: "Cache-Control: max-age=3600"}, {ask: "Cache-Control: only-if-cached", want: hit}}},
}

// Pragma: no-cache in a message without Cache-Control never arrives here: net/http turns it into Cache-Control: no-cache.
var pragma = []behaviour{
	{name: "pragma-request-no-cache", rfc: "5.4", play: []step{{give: "Cache-Control: max-age=3600"}, {ask: "Pragma: no-cache", want: miss}}},
	{name: "pragma-request-extension", rfc: "5.4", play: []step{{give: "Cache-Control: max-age=3600"}, {ask: "Pragma: foo", want: hit}}},
	{name: "pragma-response-no-cache", rfc: "5.4", play: reuse("Cache-Control: max-age=3600 | Pragma: no-cache")},
	{name: "pragma-response-extension", rfc: "5.4", play: reuse("Cache-Control: max-age=3600 | Pragma: foo")},
}

var authorization = []behaviour{
	{name: "other-authorization", rfc: "3.5", play: []step{{ask: "Authorization: FOO", give: "Cache-Control: max-age=3600", forwarded: "Authorization: FOO", then: pause}, {want: miss}}},
	{name: "other-authorization-public", rfc: "5.2.2.9", play: []step{{ask: "Authorization: FOO", give: "Cache-Control: max-age=3600, public", then: pause}, {want: hit}}},
	{name: "other-authorization-must-revalidate", rfc: "3.5", play: []step{{ask: "Authorization: FOO", give: "Cache-Control: max-age=3600, must-revalidate", then: pause}, {want: hit}}},
	{name: "other-authorization-smaxage", rfc: "3.5", play: []step{{ask: "Authorization: FOO", give: "Cache-Control: s-maxage=3600", then: pause}, {want: hit}}},
}

var cookies = []behaviour{
	{name: "other-set-cookie, the careful way", rfc: "7.3", play: []step{{give: "Cache-Control: max-age=3600 | Set-Cookie: a=b", see: "Set-Cookie: a=b"}, {want: miss, miss: "Set-Cookie"}}},
	{name: "other-cookie", rfc: "3", play: []step{{give: "Cache-Control: max-age=3600"}, {ask: "Cookie: a=b", want: hit}}},
	{name: "other-fresh-content-disposition-attachment", rfc: "3", play: reuse("Cache-Control: max-age=3600 | Content-Disposition: attachment; filename=example.txt")},
	{name: "other-heuristic-content-disposition-attachment", rfc: "4.2.2", play: reuse("Last-Modified: @-100000 | Content-Disposition: attachment; filename=example.txt")},
}

var methods = []behaviour{
	{name: "method-POST", rfc: "9110 9.3.3", play: []step{
		{method: "POST", give: "Expires: @2592000 | Content-Location: /page | Date: @0", want: miss, then: pause}, {want: hit}}},
	{name: "POST elsewhere", rfc: "9110 9.3.3", play: []step{{method: "POST", give: "Expires: @2592000 | Content-Location: /other"}, {want: miss}}},
	{name: "POST is not answered", rfc: "9110 9.3.3", play: []step{{give: "Cache-Control: max-age=3600"}, {method: "POST", want: miss}}},
	{name: "OPTIONS is not answered", rfc: "9110 9.3.7", play: []step{{give: "Cache-Control: max-age=3600"}, {method: "OPTIONS", want: miss}, {want: hit}}},
}

// becomesStale is the first step of many plays.
var becomesStale = step{give: "Cache-Control: max-age=2 | Template-A: 1", then: pause}

var heads = []behaviour{
	{name: "head of a stored get", rfc: "9110 9.3.2", play: []step{
		{give: "Cache-Control: max-age=3600 | A: 1", body: "0123456789"}, {method: "HEAD", want: hit, see: "A: 1 | Content-Length: 10"}}},
	{name: "a head is no get", rfc: "9110 9.3.2", play: []step{{method: "HEAD", give: "Cache-Control: max-age=3600"}, {want: miss}}},
	{name: "head-writethrough", rfc: "4.3.5", play: []step{becomesStale, {method: "HEAD", forwarded: "Method: HEAD"}}},
	{name: "head-200-freshness-update, by the length", rfc: "4.3.5", play: []step{becomesStale, {method: "HEAD", give: "Cache-Control: max-age=1000 | Content-Length: 14"}, {want: miss}}},
	{name: "head-200-freshness-update, by a strong tag", rfc: "4.3.5", play: []step{
		{give: "Cache-Control: max-age=2" + tag, then: pause}, {method: "HEAD", give: "Cache-Control: max-age=1000" + tag}, {want: hit, text: "made at step 0"}}},
	{name: "head-200-update, by a strong tag", rfc: "4.3.5", play: []step{
		{give: "Cache-Control: max-age=2 | Template-A: 1" + tag, then: pause}, {method: "HEAD", give: "Template-A: 2 | Cache-Control: max-age=1000" + tag},
		{want: hit, text: "made at step 0", see: "Template-A: 2"}}},
	{name: "head of a tag that is weak", rfc: "4.3.5", play: []step{
		{give: `Cache-Control: max-age=2 | ETag: W/"a"`, then: pause}, {method: "HEAD", give: `Cache-Control: max-age=1000 | ETag: W/"a"`}, {want: miss}}},
	{name: "head of another length", rfc: "4.3.5", play: []step{becomesStale, {method: "HEAD", give: "Cache-Control: max-age=1000 | Content-Length: 99"}, {want: miss}}},
	{name: "head of another tag", rfc: "4.3.5", play: []step{
		{give: "Cache-Control: max-age=2" + tag, then: pause}, {method: "HEAD", give: `Cache-Control: max-age=1000 | ETag: "b"`}, {want: miss}}},
	{name: "head of what is gone", rfc: "4.3.5", play: []step{becomesStale, {method: "HEAD", status: 410, give: "Cache-Control: max-age=1000"}, {want: miss}}},
}

// invalidation: section 4.4.
func invalidation() (all []behaviour) {
	for _, method := range []string{"POST", "PUT", "DELETE", "M-SEARCH"} {
		first := step{give: "Cache-Control: max-age=3600", then: pause}
		there := step{query: "/there", give: "Cache-Control: max-age=3600", then: pause}
		for _, x := range []struct {
			name string
			play []step
		}{
			{"invalidate-" + method, []step{first, {method: method}, {want: miss}}},
			{"invalidate-" + method + "-failed", []step{first, {method: method, status: 500}, {want: hit}}},
			{"invalidate-" + method + "-location", []step{there, {method: method, give: "Location: /page/there"}, {query: "/there", want: miss}}},
			{"invalidate-" + method + "-cl", []step{there, {method: method, give: "Content-Location: page/there"}, {query: "/there", want: miss}}},
			{"invalidate-" + method + ", not another host's", []step{there, {method: method, give: "Location: http://other/page/there"}, {query: "/there", want: hit}}},
		} {
			all = append(all, behaviour{name: x.name, rfc: "4.4", play: x.play})
		}
	}
	return append(all, behaviour{name: "a safe method", rfc: "4.4", play: []step{{give: "Cache-Control: max-age=3600"}, {method: http.MethodOptions}, {want: hit}}})
}

var keys = []behaviour{
	{name: "query-args-different", rfc: "2", play: []step{{query: "?test=1", give: "Cache-Control: max-age=3600", then: pause}, {query: "?test=2", want: miss}}},
	{name: "query-args-same", rfc: "2", play: []step{{query: "?test=1", give: "Cache-Control: max-age=3600", then: pause}, {query: "?test=1", want: hit}}},
	{name: "query-args in another order", rfc: "2", play: []step{{query: "?a&b", give: "Cache-Control: max-age=3600"}, {query: "?b&a", want: miss}}},
	{name: "a path spelled otherwise", rfc: "3986 6.2.2.2", play: []step{{query: "/%7ea", give: "Cache-Control: max-age=3600"}, {query: "/~%61", want: hit}}},
	{name: "an encoded slash", rfc: "3986 6.2.2.2", play: []step{{query: "/a/b", give: "Cache-Control: max-age=3600"}, {query: "/a%2Fb", want: miss}}},
}

var stale = slices.Concat([]behaviour{
	{name: "stale-close", rfc: "4.2.4", play: []step{becomesStale, {fails: true, want: hit, code: 200, see: "Age: 3"}}},
	{name: "stale-404 is an answer", rfc: "4.2.4", play: []step{becomesStale, {status: 404, want: miss}}},
	{name: "stale-sie-close", rfc: "5861 4", play: []step{{give: "Cache-Control: max-age=2, stale-if-error=60", then: pause}, {fails: true, want: hit, code: 200}}},
	{name: "stale-sie-503", rfc: "5861 4", play: []step{{give: "Cache-Control: max-age=2, stale-if-error=60", then: pause}, {status: 503, want: hit, code: 200}}},
	{name: "stale-sie-after-window", rfc: "5861 4", play: []step{{give: "Cache-Control: max-age=2, stale-if-error=60", then: time.Minute + pause}, {status: 503, want: miss}}},
	{name: "stale-while-revalidate", rfc: "5861 3", play: []step{{give: "Cache-Control: max-age=1, stale-while-revalidate=3600" + tag, then: pause}, {give: "Cache-Control: max-age=1", want: hit}}},
	{name: "stale-while-revalidate renews", rfc: "5861 3", play: []step{
		{give: "Cache-Control: max-age=1, stale-while-revalidate=3600", then: pause}, {give: "Cache-Control: max-age=3600", want: hit, see: "Made-At: 0"}, {want: hit, see: "Made-At: 1"}}},
	{name: "stale-while-revalidate-window", rfc: "5861 3", play: []step{
		{give: "Cache-Control: max-age=1, stale-while-revalidate=4" + tag, then: pause}, {give: `Cache-Control: no-cache | ETag: "def"`, want: hit, then: pause}, {want: miss}}},
}, forbidden())

// forbidden are the directives that keep a stale answer from standing in: section 4.2.4.
func forbidden() (all []behaviour) {
	for _, cc := range []string{"must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2", "s-maxage=2, stale-if-error=60", "must-revalidate, stale-while-revalidate=60"} {
		for _, x := range []step{{fails: true, miss: "Made-At"}, {status: 503, want: miss}} {
			all = append(all, behaviour{name: "stale-close-" + cc, rfc: "4.2.4", play: []step{{give: "Cache-Control: max-age=2, " + cc, then: pause}, x}})
		}
	}
	return all
}
