package httpcache_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/httpcache"
)

func TestConformanceFreshness(t *testing.T) {
	play(t, httpcache.Options{}, slices.Concat(freshness, directiveParsing, expires, expiresParsing, ageParsing, heuristics(), statuses(), ages))
}

func TestConformanceTargeted(t *testing.T) {
	play(t, httpcache.Options{Targeted: []string{"CDN-Cache-Control"}}, targeted)
}

var freshness = []behaviour{
	{name: "freshness-none", rfc: "3", play: refuse("")},
	{name: "freshness-max-age", rfc: "4.2.1", play: reuse("Cache-Control: max-age=3600")},
	{name: "freshness-max-age-stale", rfc: "4.2", play: refuse("Cache-Control: max-age=2")},
	{name: "freshness-max-age-0", rfc: "4.2", play: refuse("Cache-Control: max-age=0")},
	{name: "freshness-max-age-max-minus-1", rfc: "1.2.2", play: reuse("Cache-Control: max-age=2147483647")},
	{name: "freshness-max-age-max", rfc: "1.2.2", play: reuse("Cache-Control: max-age=2147483648")},
	{name: "freshness-max-age-max-plus-1", rfc: "1.2.2", play: reuse("Cache-Control: max-age=2147483649")},
	{name: "freshness-max-age-max-plus", rfc: "1.2.2", play: reuse("Cache-Control: max-age=99999999999")},
	{name: "freshness-max-age-age", rfc: "4.2.3", play: refuse("Date: @0 | Cache-Control: max-age=3600 | Age: 7200")},
	{name: "freshness-max-age-date", rfc: "4.2.3", play: refuse("Date: @-7200 | Cache-Control: max-age=3600")},
	{name: "freshness-max-age-expires", rfc: "4.2.1", play: reuse("Cache-Control: max-age=3600 | Expires: @-7200 | Date: @0")},
	{name: "freshness-max-age-expires-invalid", rfc: "4.2.1", play: reuse("Cache-Control: max-age=3600 | Expires: 0 | Date: @0")},
	{name: "freshness-max-age-0-expires", rfc: "4.2.1", play: refuse("Cache-Control: max-age=0 | Expires: @3600 | Date: @0")},
	{name: "freshness-max-age-extension", rfc: "5.2.3", play: reuse("Cache-Control: foobar, max-age=3600")},
	{name: "freshness-max-age-case-insensitive", rfc: "5.2", play: reuse("Cache-Control: MaX-aGe=3600")},
	{name: "freshness-max-age-negative", rfc: "4.2.1", play: refuse("Cache-Control: max-age=-3600")},
	{name: "freshness-s-maxage-shared", rfc: "5.2.2.10", play: reuse("Cache-Control: s-maxage=3600")},
	{name: "freshness-max-age-s-maxage-shared-longer", rfc: "5.2.2.10", play: refuse("Cache-Control: max-age=3600, s-maxage=1")},
	{name: "freshness-max-age-s-maxage-shared-longer-reversed", rfc: "5.2.2.10", play: refuse("Cache-Control: s-maxage=1, max-age=3600")},
	{name: "freshness-max-age-s-maxage-shared-longer-multiple", rfc: "5.2.2.10", play: refuse("Cache-Control: max-age=3600 | Cache-Control: s-maxage=1")},
	{name: "freshness-max-age-s-maxage-shared-shorter", rfc: "5.2.2.10", play: reuse("Cache-Control: max-age=1, s-maxage=3600")},
	{name: "freshness-max-age-s-maxage-shared-shorter-expires", rfc: "5.2.2.10", play: reuse("Expires: @-10 | Cache-Control: max-age=0, s-maxage=3600")},
}

var directiveParsing = []behaviour{
	{name: "freshness-max-age-two-fresh-stale-sameline", rfc: "4.2.1", play: reuse("Cache-Control: max-age=1800, max-age=1")},
	{name: "freshness-max-age-two-fresh-stale-sepline", rfc: "4.2.1", play: reuse("Cache-Control: max-age=1800 | Cache-Control: max-age=1")},
	{name: "freshness-max-age-two-stale-fresh-sameline", rfc: "4.2.1", play: refuse("Cache-Control: max-age=1, max-age=1800")},
	{name: "freshness-max-age-two-stale-fresh-sepline", rfc: "4.2.1", play: refuse("Cache-Control: max-age=1 | Cache-Control: max-age=1800")},
	{name: "freshness-max-age-quoted", rfc: "5.2", play: reuse(`Cache-Control: max-age="3600"`)},
	{name: "freshness-max-age-ignore-quoted", rfc: "5.2", play: refuse(`Cache-Control: extension="max-age=3600", max-age=1`)},
	{name: "freshness-max-age-ignore-quoted-rev", rfc: "5.2", play: refuse(`Cache-Control: max-age=1, extension="max-age=3600"`)},
	{name: "freshness-max-age-space-before-equals", rfc: "5.2", play: refuse("Cache-Control: max-age =3600")},
	{name: "freshness-max-age-space-after-equals", rfc: "5.2", play: refuse("Cache-Control: max-age= 3600")},
	{name: "freshness-max-age-leading-zero", rfc: "1.2.2", play: reuse("Cache-Control: max-age=003600")},
	{name: "freshness-max-age-single-quoted", rfc: "5.2", play: refuse("Cache-Control: max-age='3600'")},
	{name: "freshness-max-age-decimal-zero", rfc: "4.2.1", play: refuse("Cache-Control: max-age=3600.0")},
	{name: "freshness-max-age-decimal-five", rfc: "4.2.1", play: refuse("Cache-Control: max-age=3600.5")},
	{name: "freshness-max-age-a100", rfc: "4.2.1", play: refuse("Cache-Control: max-age=a3600")},
	{name: "freshness-max-age-100a", rfc: "4.2.1", play: refuse("Cache-Control: max-age=3600a")},
}

var expires = []behaviour{
	{name: "freshness-expires-future", rfc: "5.3", play: reuse("Expires: @2592000 | Date: @0")},
	{name: "freshness-expires-past", rfc: "4.2.1", play: refuse("Expires: @-2592000 | Date: @0")},
	{name: "freshness-expires-present", rfc: "4.2.1", play: refuse("Expires: @0 | Date: @0")},
	{name: "freshness-expires-old-date", rfc: "4.2.1", play: refuse("Expires: @300 | Date: @400")},
	{name: "freshness-expires-invalid", rfc: "5.3", play: refuse("Expires: 0 | Date: @0")},
	{name: "freshness-expires-invalid-date", rfc: "9110 6.6.1", play: reuse("Date: foo | Expires: @10")},
	{name: "freshness-expires-age-slow-date", rfc: "4.2.3", play: refuse("Date: @-10 | Expires: @10 | Age: 25")},
	{name: "freshness-expires-age-fast-date", rfc: "4.2.3", play: refuse("Date: @10 | Expires: @20 | Age: 15")},
}

var expiresParsing = []behaviour{
	{name: "freshness-expires-32bit", rfc: "5.3", play: reuse("Expires: Tue, 19 Jan 2038 14:14:08 GMT | Date: @0")},
	{name: "freshness-expires-far-future", rfc: "5.3", play: reuse("Expires: Sun, 21 Nov 2286 04:46:39 GMT | Date: @0")},
	{name: "freshness-expires-rfc850", rfc: "9110 5.6.7", play: reuse("Expires: Thursday, 18-Aug-50 02:01:18 GMT | Date: @0")},
	{name: "freshness-expires-ansi-c", rfc: "9110 5.6.7", play: reuse("Expires: Thu Aug  8 02:01:18 2050 | Date: @0")},
	{name: "freshness-expires-wrong-case-weekday", rfc: "4.2", play: reuse("Expires: THU, 18 Aug 2050 02:01:18 GMT | Date: @0")},
	{name: "freshness-expires-wrong-case-month", rfc: "4.2", play: reuse("Expires: Thu, 18 AUG 2050 02:01:18 GMT | Date: @0")},
	{name: "freshness-expires-wrong-case-tz", rfc: "4.2", play: reuse("Expires: Thu, 18 Aug 2050 02:01:18 gMT | Date: @0")},
	{name: "freshness-expires-invalid-utc", rfc: "5.3", play: refuse("Expires: Thu, 18 Aug 2050 02:01:18 UTC | Date: @0")},
	{name: "freshness-expires-invalid-aest", rfc: "5.3", play: refuse("Expires: Thu, 18 Aug 2050 02:01:18 AEST | Date: @0")},
	{name: "freshness-expires-invalid-2-digit-year", rfc: "5.3", play: refuse("Expires: Thu, 18 Aug 50 02:01:18 GMT | Date: @0")},
	{name: "freshness-expires-invalid-no-comma", rfc: "5.3", play: refuse("Expires: Thu 18 Aug 2050 02:01:18 GMT | Date: @0")},
	{name: "freshness-expires-invalid-multiple-spaces", rfc: "5.3", play: refuse("Expires: Thu, 18  Aug  2050 02:01:18 GMT | Date: @0")},
	{name: "freshness-expires-invalid-date-dashes", rfc: "5.3", play: refuse("Expires: Thu, 18-Aug-2050 02:01:18 GMT | Date: @0")},
	{name: "freshness-expires-invalid-time-periods", rfc: "5.3", play: refuse("Expires: Thu, 18 Aug 2050 02.01.18 GMT | Date: @0")},
	{name: "freshness-expires-invalid-1-digit-hour", rfc: "5.3", play: refuse("Expires: Thu, 18 Aug 2050 2:01:18 GMT | Date: @0")},
	{name: "freshness-expires-invalid-multiple-lines", rfc: "5.3", play: refuse("Expires: Thu, 18 Aug 2050 02:01:18 GMT | Expires: Thu, 18 Aug 2050 02:01:19 GMT | Date: @0")},
}

var ageParsing = []behaviour{
	{name: "age-parse-nonnumeric", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: abc")},
	{name: "age-parse-negative", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: -7200")},
	{name: "age-parse-float", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: 7200.0")},
	{name: "age-parse-large-minus-one", rfc: "5.1", play: refuse("Date: @0 | Cache-Control: max-age=3600 | Age: 2147483647")},
	{name: "age-parse-large", rfc: "1.2.2", play: refuse("Date: @0 | Cache-Control: max-age=3600 | Age: 2147483648")},
	{name: "age-parse-larger", rfc: "1.2.2", play: refuse("Date: @0 | Cache-Control: max-age=3600 | Age: 2147483649")},
	{name: "age-parse-largest-of-both", rfc: "1.2.2", play: refuse("Date: @0 | Cache-Control: max-age=99999999999 | Age: 99999999999")},
	{name: "age-parse-suffix", rfc: "5.1", play: refuse("Date: @0 | Cache-Control: max-age=3600 | Age: 7200, 0")},
	{name: "age-parse-prefix", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: 0, 7200")},
	{name: "age-parse-suffix-twoline", rfc: "5.1", play: refuse("Date: @0 | Cache-Control: max-age=3600 | Age: 7200 | Age: 0")},
	{name: "age-parse-prefix-twoline", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: 0 | Age: 7200")},
	{name: "age-parse-dup-0", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: 0, 0")},
	{name: "age-parse-dup-0-twoline", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: 0 | Age: 0")},
	{name: "age-parse-dup-old", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=10000 | Age: 3600 | Age: 3600")},
	{name: "age-parse-parameter", rfc: "5.1", play: reuse("Date: @0 | Cache-Control: max-age=3600 | Age: 7200;foo=bar")},
}

var ages = []behaviour{
	{name: "other-age-gen", rfc: "5.1", play: []step{{give: "Cache-Control: max-age=3600", then: pause}, {want: hit, see: "Age: > 2"}}},
	{name: "other-age-update-expires", rfc: "5.1", play: []step{{give: "Expires: @2592000 | Date: @0 | Age: 30", then: pause}, {want: hit, see: "Age: > 32"}}},
	{name: "other-age-update-max-age", rfc: "5.1", play: []step{{give: "Cache-Control: max-age=3600 | Age: 30", then: pause}, {want: hit, see: "Age: > 32"}}},
	{name: "other-date-update", rfc: "9110 6.6.1", play: []step{{give: "Cache-Control: max-age=3600 | Date: @0", then: pause}, {want: hit, see: "Date: @-3"}}},
	{name: "other-date-update-expires", rfc: "9110 6.6.1", play: []step{{give: "Expires: @3600 | Date: @0", then: pause}, {want: hit, see: "Date: @-3 | Expires: @3597"}}},
	{name: "an age of its own for each user", rfc: "5.1", play: []step{{give: "Cache-Control: max-age=3600", then: pause}, {want: hit, see: "Age: 3", then: pause}, {want: hit, see: "Age: 6"}}},
}

// heuristics are the guesses from Last-Modified: section 4.2.2.
func heuristics() (all []behaviour) {
	for status, guessed := range map[int]bool{200: true, 201: false, 202: false, 203: true, 204: true, 302: false, 403: false, 404: true, 405: true, 410: true,
		414: true, 501: true, 502: false, 503: false, 504: false, 599: false} {
		want := miss
		if guessed {
			want = hit
		}
		all = append(all, behaviour{name: fmt.Sprint("heuristic-", status), rfc: "4.2.2", play: []step{
			{status: status, give: "Last-Modified: @-86400 | Date: @0"}, {status: status, want: want}}})
	}
	all = append(all, behaviour{name: "heuristic-599-public", rfc: "5.2.2.9", play: []step{
		{status: 599, give: "Last-Modified: @-86400 | Date: @0 | Cache-Control: public"}, {status: 599, want: hit}}})
	for _, ago := range []int{5, 10, 30, 60, 300, 3600, 86400} {
		want := miss
		if ago/10 > 3 {
			want = hit
		}
		all = append(all, behaviour{name: fmt.Sprint("heuristic-delta-", ago), rfc: "4.2.2", play: []step{
			{give: fmt.Sprintf("Last-Modified: @-%d | Date: @0", ago), then: pause + time.Second/2}, {want: want}}})
	}
	return all
}

// statuses are reused while explicitly fresh, and not after: section 3.
func statuses() (all []behaviour) {
	for _, status := range []int{200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 404, 410, 499, 500, 502, 503, 504, 599} {
		all = append(all,
			behaviour{name: fmt.Sprintf("status-%d-fresh", status), rfc: "3", play: []step{
				{status: status, give: "Cache-Control: max-age=3600 | Date: @0", then: pause}, {status: status, want: hit}}},
			behaviour{name: fmt.Sprintf("status-%d-stale", status), rfc: "4.2", play: []step{
				{status: status, give: "Expires: @-5000 | Last-Modified: @-100000 | Date: @0"}, {want: miss}}})
	}
	return append(all,
		behaviour{name: "status-599-must-understand", rfc: "5.2.2.3", play: []step{
			{status: 599, give: "Cache-Control: max-age=3600, no-store, must-understand"}, {want: miss}}},
		behaviour{name: "status-200-must-understand", rfc: "5.2.2.3", play: reuse("Cache-Control: max-age=3600, no-store, must-understand")})
}

var targeted = []behaviour{
	{name: "cdn-max-age", rfc: "9213 2.2", play: reuse("CDN-Cache-Control: max-age=3600")},
	{name: "cdn-max-age-max", rfc: "9213 2.2", play: reuse("CDN-Cache-Control: max-age=2147483648")},
	{name: "cdn-max-age-max-plus", rfc: "9213 2.2", play: reuse("CDN-Cache-Control: max-age=99999999999")},
	{name: "cdn-max-age-age", rfc: "9213 2.2", play: refuse("Date: @0 | CDN-Cache-Control: max-age=3600 | Age: 7200")},
	{name: "cdn-max-age-space-before-equals", rfc: "9213 2.1", play: refuse("Cache-Control: max-age=1 | CDN-Cache-Control: max-age =100")},
	{name: "cdn-max-age-space-after-equals", rfc: "9213 2.1", play: refuse("Cache-Control: max-age=1 | CDN-Cache-Control: max-age= 100")},
	{name: "cdn-max-age-0", rfc: "9213 2.2", play: refuse("CDN-Cache-Control: max-age=0")},
	{name: "cdn-max-age-extension", rfc: "9213 2.2", play: reuse("CDN-Cache-Control: foobar, max-age=3600")},
	{name: "cdn-max-age-case-insensitive", rfc: "8941 3.2", play: refuse("CDN-Cache-Control: MaX-aGe=3600")},
	{name: "cdn-max-age-expires", rfc: "9213 2.2", play: reuse("CDN-Cache-Control: max-age=3600 | Expires: @-10000 | Date: @0")},
	{name: "cdn-max-age-cc-max-age-invalid-expires", rfc: "9213 2.2", play: reuse("CDN-Cache-Control: max-age=3600 | Expires: 0 | Date: @0")},
	{name: "cdn-max-age-0-expires", rfc: "9213 2.2", play: refuse("CDN-Cache-Control: max-age=0 | Expires: @10000 | Date: @0")},
	{name: "cdn-max-age-short-cc-max-age", rfc: "9213 2.2", play: reuse("Cache-Control: max-age=1 | CDN-Cache-Control: max-age=3600")},
	{name: "cdn-max-age-long-cc-max-age", rfc: "9213 2.2", play: refuse("Cache-Control: max-age=3600 | CDN-Cache-Control: max-age=1")},
	{name: "cdn-private", rfc: "9213 2.2", play: refuse("CDN-Cache-Control: private | Cache-Control: max-age=10000 | Expires: @10000 | Date: @0")},
	{name: "cdn-no-cache", rfc: "9213 2.2", play: refuse("CDN-Cache-Control: no-cache | Cache-Control: max-age=10000 | Expires: @10000 | Date: @0")},
	{name: "cdn-no-store-cc-fresh", rfc: "9213 2.2", play: refuse("CDN-Cache-Control: no-store | Cache-Control: max-age=10000 | Expires: @10000 | Date: @0")},
	{name: "cdn-fresh-cc-nostore", rfc: "9213 2.2", play: reuse("Cache-Control: no-store | CDN-Cache-Control: max-age=10000")},
	{name: "cdn-cc-invalid-sh-type-unknown", rfc: "9213 2.1", play: refuse("CDN-Cache-Control: max-age=10000, &&&&& | Cache-Control: no-store")},
	{name: "cdn-cc-invalid-sh-type-wrong", rfc: "9213 2.1", play: refuse(`CDN-Cache-Control: max-age="10000" | Cache-Control: no-store`)},
	{name: "cdn-remove-header", rfc: "9213 2", play: []step{{give: "CDN-Cache-Control: foo", see: "CDN-Cache-Control: foo"}}},
	{name: "cdn-remove-age-exceed", rfc: "9213 2.2", play: []step{
		{give: "Cache-Control: max-age=1 | CDN-Cache-Control: max-age=10000 | Date: @0 | Expires: @1", then: pause}, {want: hit, see: "Age: 3 | Date: @-3 | Expires: @-2"}}},
}
