package rfc9111_test

import (
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// May a stored response be used: RFC 9111, sections 4.2, 4.2.4 and 5.2; RFC 5861; RFC 8246.
func TestDecide(t *testing.T) {
	const (
		serve, stale, renew, ask = rfc9111.Serve, rfc9111.ServeStale, rfc9111.Renew, rfc9111.Revalidate
	)
	for _, x := range []struct {
		name    string
		stored  string // its Cache-Control
		asked   string // the request's
		after   time.Duration
		want    rfc9111.Verdict
		onError bool
	}{
		{"fresh (4.2)", "max-age=60", "", 59 * time.Second, serve, true},
		{"a lifetime old is stale (4.2)", "max-age=60", "", 60 * time.Second, ask, true},
		{"stale within the cache's own window", "max-age=60", "", 11*time.Minute - time.Second, ask, true},
		{"stale beyond it", "max-age=60", "", 11 * time.Minute, ask, false},

		{"no-cache (5.2.2.4)", "max-age=60, no-cache", "", time.Second, ask, false},
		{"no-cache, whatever the client takes", "max-age=60, no-cache", "max-stale", time.Second, ask, false},
		{"must-revalidate, fresh (5.2.2.2)", "max-age=60, must-revalidate", "", time.Second, serve, true},
		{"must-revalidate, stale (5.2.2.2)", "max-age=60, must-revalidate", "max-stale", 61 * time.Second, ask, false},
		{"proxy-revalidate, stale (5.2.2.8)", "max-age=60, proxy-revalidate", "max-stale", 61 * time.Second, ask, false},
		{"s-maxage, stale (5.2.2.10)", "s-maxage=60", "max-stale", 61 * time.Second, ask, false},
		{"s-maxage forbids what RFC 5861 allows (4.2.4)", "s-maxage=60, stale-while-revalidate=60, stale-if-error=60", "", 61 * time.Second, ask, false},
		{"so does must-revalidate (4.2.4)", "max-age=60, must-revalidate, stale-while-revalidate=60, stale-if-error=60", "", 61 * time.Second, ask, false},

		{"stale-while-revalidate (RFC 5861, 3)", "max-age=60, stale-while-revalidate=30", "", 89 * time.Second, renew, true},
		{"after its window (RFC 5861, 3)", "max-age=60, stale-while-revalidate=30", "", 90 * time.Second, ask, true},
		{"stale-if-error (RFC 5861, 4)", "max-age=60, stale-if-error=30", "", 89 * time.Second, ask, true},
		{"after its window (RFC 5861, 4)", "max-age=60, stale-if-error=30", "", 90 * time.Second, ask, false},
		{"stale-if-error of the request (RFC 5861, 4)", "max-age=60, stale-if-error=0", "stale-if-error=60", 90 * time.Second, ask, true},
		{"the response allows none", "max-age=60, stale-if-error=0", "", 61 * time.Second, ask, false},

		{"max-age of the request (5.2.1.1)", "max-age=60", "max-age=10", 11 * time.Second, ask, true},
		{"max-age, young enough", "max-age=60", "max-age=10", 10 * time.Second, serve, true},
		{"a reload", "max-age=60", "max-age=0", 0, ask, true},
		{"a reload is not served stale", "max-age=60, stale-while-revalidate=30", "max-age=0", 61 * time.Second, ask, true},
		{"a reload of what is immutable (RFC 8246, 2)", "max-age=60, immutable", "max-age=0", time.Second, serve, true},
		{"a forced reload of it (RFC 8246, 2)", "max-age=60, immutable", "no-cache", time.Second, ask, false},
		{"what was immutable (RFC 8246, 2)", "max-age=60, immutable", "", 61 * time.Second, ask, true},
		{"min-fresh (5.2.1.3)", "max-age=60", "min-fresh=31", 30 * time.Second, ask, false},
		{"min-fresh, enough of it", "max-age=60", "min-fresh=30", 30 * time.Second, serve, true},
		{"max-stale (5.2.1.2)", "max-age=60", "max-stale=10", 70 * time.Second, stale, true},
		{"max-stale, too stale", "max-age=60", "max-stale=10", 71 * time.Second, ask, true},
		{"max-stale without a bound", "max-age=60", "max-stale", 9 * time.Minute, stale, true},
		{"an invalid max-stale allows nothing", "max-age=60", "max-stale=x", 61 * time.Second, ask, true},
		{"no-cache of the request (5.2.1.4)", "max-age=60", "no-cache", 0, ask, false},
		{"no-store of the request (5.2.1.5)", "max-age=60", "no-store", 0, ask, false},
		{"what is no directive", "max-age=60", "nothing-to-see-here", 0, serve, true},
	} {
		p, reason := rules.Judge(exchange(200, "Cache-Control: "+x.stored, `ETag: "a"`))
		if reason != "" {
			t.Errorf("%s: not stored: %s", x.name, reason)
		}
		q := rfc9111.ParseCacheControl(header("Cache-Control: " + x.asked))
		if got := p.Decide(q, now.Add(x.after)); got != x.want {
			t.Errorf("%s: %q, asked %q after %v: verdict %d, want %d", x.name, x.stored, x.asked, x.after, got, x.want)
		}
		if got := p.OnError(q, now.Add(x.after)); got != x.onError {
			t.Errorf("%s: %q, asked %q after %v and an error: %v", x.name, x.stored, x.asked, x.after, got)
		}
	}
}

// For how long a response is kept: freshness and the longest of its windows.
func TestKeep(t *testing.T) {
	tag := `ETag: "a"`
	for _, x := range []struct {
		name string
		x    rfc9111.Exchange
		want time.Duration
	}{
		{"freshness, and the window for errors", exchange(200, "Cache-Control: max-age=60"), 11 * time.Minute},
		{"freshness, and the window to revalidate in", exchange(200, "Cache-Control: max-age=60", tag), 61 * time.Minute},
		{"what its directives say", exchange(200, "Cache-Control: max-age=60, stale-while-revalidate=7200, stale-if-error=9000"), 9060 * time.Second},
		{"its age counts against it", exchange(200, "Cache-Control: max-age=60", "Age: 20"), 10*time.Minute + 40*time.Second},
		{"never stale and no validator: freshness", exchange(200, "Cache-Control: s-maxage=60"), time.Minute},
		{"never unasked", exchange(200, "Cache-Control: no-cache, max-age=60", tag), time.Hour},
	} {
		p, _ := rules.Judge(x.x)
		if got := p.Keep(now); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
		if got := p.Keep(now.Add(time.Second)); got != x.want-time.Second {
			t.Errorf("%s: a second later %v", x.name, got)
		}
	}
}

// A clock that goes back makes nothing younger than it came.
func TestClockGoesBack(t *testing.T) {
	p, _ := rules.Judge(exchange(200, "Cache-Control: max-age=60", "Age: 20"))
	if got := p.Age(now.Add(-time.Hour)); got != 20*time.Second {
		t.Errorf("age %v", got)
	}
}

func TestDecideAllocatesNothing(t *testing.T) {
	p, _ := rules.Judge(exchange(200, "Cache-Control: max-age=60"))
	h := header("Cache-Control: max-age=3600", "Accept: */*")
	if n := testing.AllocsPerRun(100, func() { p.Decide(rfc9111.ParseCacheControl(h), now) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever the header, a response is not fresh for longer than 68 years, nor kept as if it were nothing.
func FuzzJudge(f *testing.F) {
	f.Add(200, "max-age=60", "Sat, 21 Nov 2026 09:30:00 GMT", "12", "max-age=5", "Accept")
	f.Add(599, "no-store, must-understand", "x", "99999999999", "private=\"a\"", "*")
	f.Fuzz(func(t *testing.T, status int, cc, date, age, targeted, vary string) {
		x := exchange(status)
		x.Header = map[string][]string{"Cache-Control": {cc}, "Date": {date}, "Expires": {date}, "Last-Modified": {date},
			"Age": {age}, "Cdn-Cache-Control": {targeted}, "Vary": {vary}}
		p, reason := rules.Judge(x)
		if reason != "" {
			return
		}
		if left := p.Left(now); left > (1<<31)*time.Second || p.Keep(now) <= 0 || p.Age(now) < 0 {
			t.Errorf("%v left, kept %v, age %v", left, p.Keep(now), p.Age(now))
		}
		if p.Decide(rfc9111.Directives{}, now.Add((1<<31)*time.Second)) == rfc9111.Serve {
			t.Error("fresh for ever")
		}
	})
}
