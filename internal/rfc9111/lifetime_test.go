package rfc9111_test

import (
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// For how long a response is fresh: RFC 9111, section 4.2.
func TestLifetime(t *testing.T) {
	const forever = (1 << 31) * time.Second
	date, expires := "Date: "+at(0), "Expires: "+at(time.Minute)
	tag := `ETag: "a"` // so that what is stale is stored
	judge(t, rules, []may{
		{"max-age over Expires (4.2.1)", exchange(200, "Cache-Control: max-age=10", expires), "", 10 * time.Second},
		{"max-age over an invalid Expires", exchange(200, "Cache-Control: max-age=10", "Expires: 0"), "", 10 * time.Second},
		{"max-age=0 over a later Expires", exchange(200, "Cache-Control: max-age=0", expires, tag), "", 0},
		{"s-maxage over max-age (5.2.2.10)", exchange(200, "Cache-Control: max-age=1, s-maxage=60"), "", time.Minute},
		{"a short s-maxage too", exchange(200, "Cache-Control: s-maxage=1", "Cache-Control: max-age=60"), "", time.Second},
		{"an invalid max-age (4.2.1: stale)", exchange(200, "Cache-Control: max-age=x", expires, tag), "", 0},
		{"an invalid s-maxage", exchange(200, "Cache-Control: max-age=60, s-maxage=x", tag), "", 0},
		{"2^31 (1.2.2)", exchange(200, "Cache-Control: max-age=99999999999"), "", forever},

		{"Expires - Date (4.2.1)", exchange(200, "Date: "+at(-10*time.Second), expires), "", time.Minute},
		{"Expires - Date, of a clock ahead", exchange(200, "Date: "+at(10*time.Second), expires), "", 50 * time.Second},
		{"Expires without Date", exchange(200, expires), "", time.Minute},
		{"Expires with an invalid Date (9110, 6.6.1)", exchange(200, "Date: foo", expires), "", time.Minute},
		{"Expires of the past", exchange(200, date, "Expires: "+at(-time.Minute), tag), "", 0},
		{"Expires of now", exchange(200, date, "Expires: "+at(0), tag), "", 0},
		{"Expires before a Date ahead", exchange(200, "Date: "+at(2*time.Minute), expires, tag), "", 0},
		{"an invalid Expires is of the past (5.3)", exchange(200, "Expires: 0", tag), "", 0},
		{"two Expires", exchange(200, expires, expires, tag), "", 0},
		{"Expires after 32 bits", exchange(200, date, "Expires: Sun, 21 Nov 2286 04:46:39 GMT"), "", forever},

		{"a tenth of the age (4.2.2)", exchange(200, date, "Last-Modified: "+at(-time.Hour)), "", 6 * time.Minute},
		{"a tenth, by the origin's clock", exchange(200, "Date: "+at(time.Minute), "Last-Modified: "+at(-time.Hour)), "", 6*time.Minute + 6*time.Second},
		{"not modified since the future", exchange(200, "Last-Modified: "+at(time.Hour)), "", 0},
		{"no guess beside an explicit time (4.2.2)", exchange(200, "Cache-Control: max-age=0", "Last-Modified: "+at(-time.Hour)), "", 0},
		{"no guess beside an invalid one", exchange(200, "Expires: x", "Last-Modified: "+at(-time.Hour)), "", 0},
		{"an invalid Last-Modified is none", exchange(200, "Last-Modified: yesterday"), rfc9111.NoFreshness, 0},
	})

	strict := rules
	strict.NoHeuristic = true
	judge(t, strict, []may{{"no guesses", exchange(200, "Last-Modified: "+at(-time.Hour)), "", 0}})
}

// How old a response is: RFC 9111, sections 4.2.3 and 5.1.
func TestAge(t *testing.T) {
	fresh := "Cache-Control: max-age=3600"
	slow := exchange(200, fresh, "Age: 10")
	slow.Sent = now.Add(-5 * time.Second)
	fraction := exchange(200, fresh, "Date: "+at(0))
	fraction.Received = now.Add(900 * time.Millisecond)
	fraction.Sent = fraction.Received
	for _, x := range []struct {
		name string
		x    rfc9111.Exchange
		want time.Duration
	}{
		{"none", exchange(200, fresh), 0},
		{"Age", exchange(200, fresh, "Age: 30"), 30 * time.Second},
		{"Date is older than Age (apparent_age)", exchange(200, fresh, "Age: 30", "Date: "+at(-time.Minute)), time.Minute},
		{"Date is younger than Age", exchange(200, fresh, "Age: 30", "Date: "+at(-time.Second)), 30 * time.Second},
		{"Date ahead", exchange(200, fresh, "Date: "+at(time.Hour)), 0},
		{"the way counts (response_delay)", slow, 15 * time.Second},
		{"the fraction of a second that Date has not", fraction, 0},
		{"a word", exchange(200, fresh, "Age: abc"), 0},
		{"negative", exchange(200, fresh, "Age: -7200"), 0},
		{"a fraction", exchange(200, fresh, "Age: 7200.0"), 0},
		{"with a parameter", exchange(200, fresh, "Age: 7200;foo=111"), 0},
		{"the first of a line", exchange(200, fresh, "Age: 0, 7200"), 0},
		{"the first of a line, old", exchange(200, fresh, "Age: 1200, 0"), 1200 * time.Second},
		{"the first line", exchange(200, fresh, "Age: 0", "Age: 7200"), 0},
		{"the first line, old", exchange(200, fresh, "Age: 1200", "Age: 0"), 1200 * time.Second},
	} {
		p, reason := rules.Judge(x.x)
		if p.InitialAge != x.want || reason != "" {
			t.Errorf("%s: %v: %v %q, want %v", x.name, x.x.Header, p.InitialAge, reason, x.want)
		}
		if got := p.Age(x.x.Received.Add(time.Minute)); got != x.want+time.Minute {
			t.Errorf("%s: after a minute %v", x.name, got)
		}
	}
	for _, age := range []string{"2147483647", "2147483648", "2147483649", "99999999999999999999"} {
		p, reason := rules.Judge(exchange(200, "Cache-Control: max-age=2147483648", `ETag: "a"`, "Age: "+age))
		if p.Left(now) > time.Second || reason != "" && reason != rfc9111.Expired {
			t.Errorf("Age: %s: %v left, %q", age, p.Left(now), reason)
		}
	}
}

// RFC 9213, section 2.
func TestTargeted(t *testing.T) {
	never := []string{"Cache-Control: no-store", "Expires: 0"}
	judge(t, rules, []may{
		{"replaces Cache-Control and Expires", exchange(200, append(never, "CDN-Cache-Control: max-age=60")...), "", time.Minute},
		{"is not added to", exchange(200, "Cache-Control: s-maxage=1", "CDN-Cache-Control: max-age=60"), "", time.Minute},
		{"is shorter", exchange(200, "Cache-Control: max-age=60", "CDN-Cache-Control: max-age=1"), "", time.Second},
		{"forbids", exchange(200, "Cache-Control: max-age=60", "CDN-Cache-Control: no-store"), rfc9111.NoStore, 0},
		{"is private", exchange(200, "Cache-Control: max-age=60", "CDN-Cache-Control: private"), rfc9111.Private, 0},
		{"is to be revalidated", exchange(200, "Cache-Control: max-age=60", "CDN-Cache-Control: no-cache", `ETag: "a"`), "", 0},
		{"says nothing of freshness: Expires neither", exchange(200, "Expires: "+at(time.Hour), "CDN-Cache-Control: foo", `ETag: "a"`), "", 0},
		{"Age counts", exchange(200, "CDN-Cache-Control: max-age=60", "Age: 20"), "", 40 * time.Second},
		{"on two lines", exchange(200, "CDN-Cache-Control: foo", "CDN-Cache-Control: max-age=60"), "", time.Minute},
		{"parameters", exchange(200, "CDN-Cache-Control: max-age=60;a=b, bar=(1 2);x"), "", time.Minute},
		{"15 digits", exchange(200, "CDN-Cache-Control: max-age=99999999999"), "", (1 << 31) * time.Second},
		{"no-store=?0 is none", exchange(200, "CDN-Cache-Control: no-store=?0, max-age=60"), "", time.Minute},
		{"qualified", exchange(200, `CDN-Cache-Control: max-age=60, private="a"`), "", time.Minute},
		{"a number of another type", exchange(200, `CDN-Cache-Control: max-age="60"`, `ETag: "a"`), "", 0},
		{"a token", exchange(200, `CDN-Cache-Control: max-age=a60`, `ETag: "a"`), "", 0},
		{"negative", exchange(200, `CDN-Cache-Control: max-age=-60`, `ETag: "a"`), "", 0},

		{"malformed: as if absent", exchange(200, "CDN-Cache-Control: max-age=60, &&&&&", "Cache-Control: no-store"), rfc9111.NoStore, 0},
		{"upper case is malformed (RFC 8941, 3.2)", exchange(200, "CDN-Cache-Control: MaX-aGe=60", "Cache-Control: max-age=1"), "", time.Second},
		{"space before =", exchange(200, "CDN-Cache-Control: max-age =60", "Cache-Control: max-age=1"), "", time.Second},
		{"space after =", exchange(200, "CDN-Cache-Control: max-age= 60", "Cache-Control: max-age=1"), "", time.Second},
		{"16 digits", exchange(200, "CDN-Cache-Control: max-age=9999999999999999", "Cache-Control: max-age=1"), "", time.Second},
		{"empty: as if absent", exchange(200, "CDN-Cache-Control: ", "Cache-Control: max-age=1"), "", time.Second},
		{"another's field", exchange(200, "Other-Cache-Control: max-age=60", "Cache-Control: max-age=1"), "", time.Second},
	})

	two := rules
	two.Targeted = []string{"mayfly-cache-control", "CDN-Cache-Control"}
	judge(t, two, []may{
		{"the most specific", exchange(200, "CDN-Cache-Control: max-age=60", "Mayfly-Cache-Control: max-age=5"), "", 5 * time.Second},
		{"the next if that is malformed", exchange(200, "CDN-Cache-Control: max-age=60", "Mayfly-Cache-Control: =5"), "", time.Minute},
	})
}
