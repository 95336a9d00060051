package rfc9111_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

var rules = rfc9111.Rules{Targeted: []string{"CDN-Cache-Control"}, Validate: time.Hour, StaleIfError: 10 * time.Minute}

// exchange is a GET, answered at once with status and lines.
func exchange(status int, lines ...string) rfc9111.Exchange {
	return rfc9111.Exchange{Request: &http.Request{Method: "GET", Header: http.Header{}}, Status: status, Header: header(lines...), Sent: now, Received: now}
}

// may is a case of TestJudge: what must be of a response, if not refused for a reason.
type may struct {
	name   string
	x      rfc9111.Exchange
	reason rfc9111.Reason
	left   time.Duration // of freshness
}

func request(method string, lines ...string) *http.Request {
	return &http.Request{Method: method, Header: header(lines...)}
}

func asked(x rfc9111.Exchange, r *http.Request) rfc9111.Exchange {
	x.Request = r
	return x
}

// Which response may be stored: RFC 9111, section 3.
func TestStorable(t *testing.T) {
	fresh, cookie := "Cache-Control: max-age=60", "Set-Cookie: a=b"
	post := asked(exchange(200, fresh), request("POST"))
	self := post
	self.Self = true
	guessed := asked(exchange(200, "Last-Modified: "+at(-time.Hour)), request("POST"))
	guessed.Self = true
	wild := exchange(200, fresh)
	wild.Header["set-cookie"] = []string{"a=b"} // past Header.Set, as net/http would send it
	judge(t, rules, []may{
		{"GET (3)", exchange(200, fresh), "", time.Minute},
		{"another method (3)", asked(exchange(200, fresh), request("PUT")), rfc9111.Method, 0},
		{"HEAD has no body to store", asked(exchange(200, fresh), request("HEAD")), rfc9111.Method, 0},
		{"POST (9110, 9.3.3)", post, rfc9111.Method, 0},
		{"POST about itself (9110, 9.3.3)", self, "", time.Minute},
		{"POST about itself, not explicitly fresh", guessed, rfc9111.Method, 0},
		{"1xx are not final (3)", exchange(103, fresh), rfc9111.Interim, 0},
		{"206 is a part (3.3)", exchange(206, fresh), rfc9111.Partial, 0},
		{"304 is about something stored", exchange(304, fresh), rfc9111.Partial, 0},
		{"416 depends on Range", exchange(416, fresh), rfc9111.Partial, 0},
		{"412 depends on a condition", exchange(412, fresh), rfc9111.Partial, 0},
		{"no-store (5.2.2.5)", exchange(200, "Cache-Control: max-age=60, no-store"), rfc9111.NoStore, 0},
		{"no-store of the request (5.2.1.5)", asked(exchange(200, fresh), request("GET", "Cache-Control: no-store")), rfc9111.RequestNoStore, 0},
		{"private (5.2.2.7)", exchange(200, "Cache-Control: max-age=60, private"), rfc9111.Private, 0},
		{"qualified private (5.2.2.7)", exchange(200, `Cache-Control: max-age=60, private="a"`), "", time.Minute},
		{"Authorization (3.5)", asked(exchange(200, fresh), request("GET", "Authorization: x")), rfc9111.Authorization, 0},
		{"Authorization, public (3.5)", asked(exchange(200, "Cache-Control: max-age=60, public"), request("GET", "Authorization: x")), "", time.Minute},
		{"Authorization, must-revalidate (3.5)", asked(exchange(200, "Cache-Control: max-age=60, must-revalidate"), request("GET", "Authorization: x")), "", time.Minute},
		{"Authorization, s-maxage (3.5)", asked(exchange(200, "Cache-Control: s-maxage=60"), request("GET", "Authorization: x")), "", time.Minute},
		{"Authorization, proxy-revalidate is not enough (3.5)", asked(exchange(200, "Cache-Control: max-age=60, proxy-revalidate"), request("GET", "Authorization: x")), rfc9111.Authorization, 0},
		{"Cookie of the request does not count", asked(exchange(200, fresh), request("GET", "Cookie: a=b")), "", time.Minute},
		{"Set-Cookie is somebody's (7.3)", exchange(200, fresh, cookie), rfc9111.SetCookie, 0},
		{"Set-Cookie, public all the same", exchange(200, "Cache-Control: public, s-maxage=60", cookie), rfc9111.SetCookie, 0},
		{"Set-Cookie in any spelling", wild, rfc9111.SetCookie, 0},
		{"Set-Cookie that no-cache keeps back (5.2.2.4)", exchange(200, `Cache-Control: max-age=60, no-cache="Set-Cookie"`, cookie), "", time.Minute},
		{"Vary: * (4.1)", exchange(200, fresh, "Vary: a, *"), rfc9111.VaryAny, 0},
		{"must-understand what is known (5.2.2.3)", exchange(200, "Cache-Control: max-age=60, no-store, must-understand"), "", time.Minute},
		{"must-understand what is not (5.2.2.3)", exchange(599, "Cache-Control: max-age=60, must-understand"), rfc9111.NotUnderstood, 0},
		{"nothing said (3)", exchange(200), rfc9111.NoFreshness, 0},
		{"nothing but public", exchange(200, "Cache-Control: public"), rfc9111.NoFreshness, 0},
		{"nothing but an ETag: kept, to be revalidated", exchange(200, `ETag: "a"`), "", 0},
		{"max-age=0 and nothing to revalidate with", exchange(200, "Cache-Control: max-age=0"), rfc9111.Expired, 0},
		{"max-age=0 and an ETag", exchange(200, "Cache-Control: max-age=0", `ETag: "a"`), "", 0},
		{"max-age=0, served stale while revalidating (RFC 5861, 3)", exchange(200, "Cache-Control: max-age=0, stale-while-revalidate=9"), "", 0},
		{"no-cache and nothing to revalidate with (5.2.2.4)", exchange(200, "Cache-Control: no-cache, max-age=60"), rfc9111.Expired, 0},
		{"no-cache and an ETag (5.2.2.4)", exchange(200, "Cache-Control: no-cache, max-age=60", `ETag: "a"`), "", 0},
		{"stale beyond all windows on arrival", exchange(200, fresh, "Age: 3600"), rfc9111.Expired, 0},
	})

	open := rules
	open.StoreSetCookie = true
	judge(t, open, []may{{"Set-Cookie, by the letter", exchange(200, fresh, cookie), "", time.Minute}})
}

// Each final status with explicit freshness is storable, by a guess only some: RFC 9110, section 15.1.
func TestStatuses(t *testing.T) {
	modified := "Last-Modified: " + at(-100*time.Second)
	for _, status := range []int{200, 203, 204, 299, 300, 301, 302, 303, 307, 308, 400, 403, 404, 405, 410, 414, 451, 499, 500, 501, 502, 503, 504, 599, 999} {
		guessed := may{"guessed", exchange(status, modified), rfc9111.NoFreshness, 0}
		switch status {
		case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
			guessed.reason, guessed.left = "", 10*time.Second
		}
		judge(t, rules, []may{
			{"explicit", exchange(status, "Cache-Control: max-age=60"), "", time.Minute},
			{"expires", exchange(status, "Expires: "+at(time.Minute)), "", time.Minute},
			{"public (RFC 9111, 5.2.2.9)", exchange(status, "Cache-Control: public", modified), "", 10 * time.Second},
			guessed,
		})
	}
	for _, status := range []int{500, 503, 404} {
		p, _ := rules.Judge(exchange(status, "Cache-Control: max-age=1, stale-if-error=60"))
		if ok := p.OnError(directives{}, now.Add(2*time.Second)); ok != (status < 500) {
			t.Errorf("a stale %d stands in for another error: %v", status, ok)
		}
	}
}

func judge(t *testing.T, r rfc9111.Rules, cases []may) {
	t.Helper()
	for _, x := range cases {
		p, reason := r.Judge(x.x)
		if reason != x.reason || reason == "" && p.Left(now) != x.left {
			t.Errorf("%s: %d %v: %q, %v left, want %q, %v", x.name, x.x.Status, x.x.Header, reason, p.Left(now), x.reason, x.left)
		}
		if reason == "" && p.Keep(now) <= 0 {
			t.Errorf("%s: nothing to keep", x.name)
		}
	}
}
