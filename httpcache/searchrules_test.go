package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/httpcache"
)

// A handler's rule for queries applies to its own path, until it declares another one, and to the query that the handler sees.
func TestRulesOfPaths(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		rule := `params=("a")`
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=5", "No-Vary-Search: " + rule})
			if strings.HasPrefix(r.URL.Path, "/plain") {
				w.Header().Del("No-Vary-Search")
			}
			fmt.Fprint(w, r.URL)
		}))
		see := func(url, want string, hit bool) {
			t.Helper()
			if body, status := get(t, h, url); body != want || isHit(status) != hit {
				t.Errorf("%s: %q, %q, want %q, hit %v", url, body, status, want, hit)
			}
			synctest.Wait()
		}
		see("http://a.example/x?a=1", "http://a.example/x?a=1", false)
		see("http://a.example/x?a=2", "http://a.example/x?a=1", true)
		see("http://a.example/x/?a=2", "http://a.example/x/?a=2", false)
		see("http://b.example/x?a=2", "http://b.example/x?a=2", false)
		see("https://a.example/x?a=2", "https://a.example/x?a=2", false)
		see("http://a.example/plain?a=1", "http://a.example/plain?a=1", false)
		see("http://a.example/plain?a=2", "http://a.example/plain?a=2", false)
		rule = `params=("b")` // from now on
		time.Sleep(11 * time.Second)
		see("http://a.example/x?a=3", "http://a.example/x?a=3", false) // which learns it
		see("http://a.example/x?a=3", "http://a.example/x?a=3", false)
		see("http://a.example/x?a=3&b=1", "http://a.example/x?a=3", true)
		see("http://a.example/x?a=4&b=1", "http://a.example/x?a=4&b=1", false)
	})
}

// An answer without the rule of its path's other answers is for its own URL alone, and requests for that URL find it.
func TestAnswersWithoutTheRuleOfTheirPath(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		c := opened(t, opt)
		ruled, version := map[string]bool{"id=9": true}, 1
		h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			if ruled[r.URL.RawQuery] {
				w.Header().Set("No-Vary-Search", `params=("utm")`)
			}
			fmt.Fprint(w, r.URL.RawQuery, " v", version)
		}))
		see := func(query, want string, hit bool) {
			t.Helper()
			body, status := get(t, h, shopPath+"?"+query)
			if body != want || isHit(status) != hit {
				t.Errorf("%s: %q: %s, want %q, hit %v", query, body, status, want, hit)
			}
			synctest.Wait()
		}
		see("id=9", "id=9 v1", false)
		see("id=9&utm=1", "id=9 v1", true)
		for _, hit := range []bool{false, true, true} {
			for _, query := range []string{"id=1&utm=1", "id=1&utm=2", "id=1"} {
				see(query, query+" v1", hit)
			}
		}
		// An answer stored elsewhere than its rule leads would escape a purge, so it is not stored.
		ruled["id=1&utm=3"] = true
		see("id=1&utm=3", "id=1&utm=3 v1", false)
		version = 2
		if err := c.Purge(context.Background(), httpcache.Target{URL: shopPath + "?id=1&utm=4"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		see("id=1&utm=1", "id=1&utm=1 v2", false) // it lay where the purged URL leads
		see("id=1&utm=2", "id=1&utm=2 v1", true)
		see("id=1&utm=3", "id=1&utm=3 v2", false)
	})
}

// The record of a path in use stays alive, so that the answers it leads to stay reachable.
func TestARuleLivesOn(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		opt.Namespace.TTL = 10 * time.Minute
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=300", `No-Vary-Search: params=("utm")`})
			fmt.Fprint(w, "page")
		}}
		h := opened(t, opt).Handler(o)
		for range 9 {
			get(t, h, shopPath+"?id=0")
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		get(t, h, shopPath+"?id=1")
		time.Sleep(90 * time.Second)
		if _, status := get(t, h, shopPath+"?id=1&utm=3"); !isHit(status) {
			t.Error(status)
		}
	})
}

// Local hits stay local on paths without a rule for queries, long after the first request looked for one.
func TestLocalHitsOfAPathWithoutARule(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		if opt.Namespace.Local == nil {
			return
		}
		c := opened(t, opt)
		h := c.Handler(searched(""))
		for _, wait := range []time.Duration{0, 2 * time.Minute} {
			time.Sleep(wait)
			was := c.Stats()
			for range 5 {
				get(t, h, shopPath)
				synctest.Wait()
			}
			if now := c.Stats(); now.Local < was.Local+3 {
				t.Errorf("after %v: %+v", wait, now)
			}
		}
	})
}

// The answer to a POST that may serve GETs is stored where a GET looks for it.
func TestThePostOfARuledPath(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: " + fresh, `No-Vary-Search: params=("utm")`, "Content-Location: " + r.URL.RequestURI()})
			fmt.Fprint(w, r.Method)
		}))
		get(t, h, shopPath+"?utm=1")
		ask(h, http.MethodPost, shopPath+"?utm=2")
		synctest.Wait()
		if body, status := get(t, h, shopPath+"?utm=3"); !isHit(status) || body != "POST" {
			t.Errorf("%q: %s", body, status)
		}
	})
}

// An answer stored under a rule can be validated, renewed and confirmed by a 304 with any equivalent query, even if the 304 does not repeat the
// rule.
func TestValidationUnderARule(t *testing.T) {
	for name, x := range map[string]struct {
		control string
		wait    time.Duration // after which the second request comes
		second  string        // what its Cache-Status begins with
		third   string
		calls   int // of the handler in the end
	}{
		"expired":                {"max-age=5", 6 * time.Second, "mayfly; fwd=stale; fwd-status=304; ttl=5; stored", "mayfly; hit; ttl=4", 2},
		"to be validated":        {"no-cache", time.Second, "mayfly; fwd=stale; fwd-status=304; ttl=0; stored", "mayfly; fwd=stale; fwd-status=304", 3},
		"stale, and renewed":     {"max-age=5, stale-while-revalidate=60", 6 * time.Second, "mayfly; hit; ttl=-", "mayfly; hit; ttl=4", 2},
		"stale, where it failed": {"max-age=5, stale-if-error=60", 6 * time.Second, "mayfly; fwd=stale; fwd-status=500; ", "mayfly; fwd=stale; fwd-status=500", 3},
	} {
		t.Run(name, func(t *testing.T) {
			for _, vary := range []string{"", "X-Color"} {
				searching(t, func(t *testing.T, opt setup) {
					opt.RenewThrottle = time.Millisecond
					o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
						set(w.Header(), []string{"Cache-Control: " + x.control, `Etag: "1"`, "Vary: " + vary})
						switch {
						case r.Header.Get("If-None-Match") == "":
							w.Header().Set("No-Vary-Search", `params=("utm")`)
							fmt.Fprint(w, "page")
						case strings.Contains(name, "failed"):
							w.WriteHeader(http.StatusInternalServerError)
						default:
							w.WriteHeader(http.StatusNotModified)
						}
					}}
					h := opened(t, opt).Handler(o)
					for i, want := range []string{"mayfly; fwd=uri-miss", x.second, x.third} {
						body, status := get(t, h, fmt.Sprint(shopPath, "?utm=", i), "X-Color: red")
						if body != "page" || !strings.HasPrefix(status, want) {
							t.Errorf("by %q: request %d: %q, %s, want %s", vary, i, body, status, want)
						}
						if synctest.Wait(); i == 0 {
							time.Sleep(x.wait)
						}
						time.Sleep(10 * time.Millisecond)
					}
					if n := o.called(); n != x.calls {
						t.Errorf("by %q: %d calls, want %d", vary, n, x.calls)
					}
				})
			}
		})
	}
}
