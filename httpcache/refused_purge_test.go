package httpcache_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

const noScan = "NOPERM User pages has no permissions to run the 'scan' command"

// A purge that the server will always refuse is not repeated, and does not keep pages out of the cache: an error and an event report it.
func TestAPurgeThatIsForbiddenIsNotRemembered(t *testing.T) {
	for name, why := range map[string]string{"forbidden": noScan, "unknown": "ERR unknown command 'scan', with args beginning with: '0'", "not now": "ERR not now"} {
		for _, later := range []bool{false, true} { // refused at once, or only when repeated
			synctest.Test(t, func(t *testing.T) {
				srv, opt, events := impatient(t)
				h := opened(t, opt)
				page := h.Handler(newVersions("Cache-Control: max-age=600"))
				get(t, page, failedURL)
				get(t, page, failedURL)
				if srv.FailNext("scan", why); later {
					srv.Refuse(true)
					srv.KillConnections()
				}
				err := h.Purge(t.Context(), httpcache.Target{Prefix: "http://shop.example/p/"}, httpcache.Target{Tag: "x"})
				if err == nil || !later && name != "not now" && (!strings.Contains(err.Error(), "refuses 4 of its keys permanently") || !strings.Contains(err.Error(), why)) {
					t.Errorf("%s: the error is %v", name, err)
				}
				srv.Refuse(false)
				if later {
					time.Sleep(3 * time.Second)
				}
				_, status := get(t, page, failedURL)
				if forGood := name != "not now"; forGood != isHit(status) {
					t.Errorf("%s, later %v: %s", name, later, status)
				}
				srv.ClearLog()
				time.Sleep(3 * time.Second)
				if scans := strings.Contains(strings.Join(srv.Log(), "\n"), "scan"); scans && name != "not now" {
					t.Errorf("%s, later %v: it is repeated", name, later)
				}
				n := 0
				for _, e := range events.All() {
					if e.Kind == mayfly.KindRemoval && e.Outcome == mayfly.OutcomeDropped {
						n += e.N
					}
				}
				if want := map[bool]int{true: 0, false: 4}[name == "not now"]; n != want {
					t.Errorf("%s, later %v: events tell of %d", name, later, n)
				}
			})
		}
	}
}

// Close reports how many purges it could not do.
func TestCloseSaysWhatItCouldNotDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, opt, _ := impatient(t)
		c := opened(t, opt)
		srv.Refuse(true)
		if c.Purge(t.Context(), httpcache.Target{Tag: "x"}, httpcache.Target{Tag: "y"}, httpcache.Target{Prefix: "http://a.example/"}) == nil {
			t.Error("the purge did not fail")
		}
		for range 2 {
			if err := c.Close(context.Background()); err == nil || !strings.Contains(err.Error(), "6 removals") {
				t.Errorf("close: %v", err)
			}
		}
		srv.Refuse(false)
		time.Sleep(10 * time.Second) // dials end
	})
}

// An error that affects many keys is reported once.
func TestTheErrorOfAPurgeOfManyIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, opt, _ := impatient(t)
		opt.Unremoved = 1 << 20
		c := opened(t, opt)
		expect.OK(t, c.Purge(t.Context(), httpcache.Target{Tag: "x"}))
		srv.Hang()
		var targets []httpcache.Target
		for i := range 200 {
			targets = append(targets, httpcache.Target{URL: fmt.Sprint("http://a.example/", i)}, httpcache.Target{Tag: fmt.Sprint(i)})
		}
		err := c.Purge(t.Context(), targets...)
		if err == nil || len(err.Error()) > 1000 || !strings.Contains(err.Error(), "(800 times)") {
			t.Errorf("the error is %.2000v", err)
		}
		srv.Thaw()
	})
}

// One invalid target fails the call before anything is done.
func TestNothingIsPurgedBesideAMalformedTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, opt, _ := impatient(t)
		c := opened(t, opt)
		h := c.Handler(newVersions("Cache-Control: max-age=600"))
		get(t, h, failedURL)
		for _, bad := range []httpcache.Target{{}, {URL: "://"}, {Prefix: "ftp://a.example/"}, {Tag: "a b"}} {
			if err := c.Purge(t.Context(), httpcache.Target{URL: failedURL}, bad); err == nil || !strings.Contains(err.Error(), "nothing was purged") {
				t.Errorf("%+v: %v", bad, err)
			}
			if _, status := get(t, h, failedURL); !isHit(status) {
				t.Errorf("%+v: %s", bad, status)
			}
		}
	})
}
