package httpcache_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// A report names the routes on which a cache would serve one user another's page, while every user still gets the right one.
func TestReport(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		var events expect.Events
		opt := options(t, rdb)
		opt.Report, opt.Namespace.Observer = true, &events
		mux := http.NewServeMux()
		page := func(control, vary string, text func(r *http.Request) string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(10 * time.Millisecond)
				w.Header().Set("Cache-Control", control)
				w.Header().Set("Vary", vary)
				w.Header().Set("Etag", `"1"`)
				if r.Header["If-None-Match"] != nil {
					t.Error("the handler was asked to find something unchanged")
				}
				if r.Method != http.MethodHead {
					fmt.Fprint(w, text(r))
				}
			}
		}
		user := func(r *http.Request) string { return r.Header.Get("Cookie") }
		mux.Handle("GET /public/{page}", page(fresh, "", func(r *http.Request) string { return r.URL.Path }))
		mux.Handle("GET /varies", page(fresh, "Cookie", user))
		mux.Handle("GET /leaks", page(fresh, "", user))
		mux.Handle("GET /private", page("private", "", user))
		mux.HandleFunc("GET /aborts", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		c := opened(t, opt)
		h := c.Handler(mux)
		cookie := func(i int) []string { return []string{fmt.Sprint("Cookie: u", i)} }
		for range 3 {
			for _, path := range []string{"/public/1", "/varies", "/leaks", "/private"} {
				for i, body := range crowd(t, 10, h, "http://a.example"+path, cookie) {
					if want := fmt.Sprint("u", i); body != want && path != "/public/1" {
						t.Errorf("%s: %s got %q", path, want, body)
					}
				}
				synctest.Wait()
			}
		}
		for range 2 {
			func() {
				defer func() { recover() }()
				get(t, h, "http://a.example/aborts")
			}()
		}
		if _, status := get(t, h, "http://a.example/public/1"); isHit(status) || !strings.Contains(strings.Join(ask(h, "GET", "http://a.example/public/1").Header["Cache-Status"], ", "), "mayfly-report; hit") {
			t.Errorf("a would-be hit: %s", status)
		}
		ask(h, "GET", "http://a.example/public/1", "Range: bytes=0-1")
		ask(h, "HEAD", "http://a.example/public/1")
		want := []httpcache.RouteReport{
			{Route: "GET /leaks", Requests: 30, Shared: 29, Differ: 27, Example: "http://a.example/leaks"},
			{Route: "GET /private", Requests: 30},
			{Route: "GET /public/{page}", Requests: 34, Shared: 33},
			{Route: "GET /varies", Requests: 30, Shared: 11}, // a request that waits in vain stores nothing
		}
		if d := diff.Of(want, c.Report()); d != "" {
			t.Errorf("%s", d)
		}
		if n := events.Count(mayfly.KindWarning, mayfly.OutcomeFailed); n != 27 {
			t.Errorf("%d warnings", n)
		}
		if s := c.Stats(); s.Redis+s.Local+s.Stale+s.Collapsed != 0 {
			t.Errorf("something was served from the cache: %+v", s)
		}
	})
}

// Where a serving cache would serve a stale answer and renew it, a report renews it with the answer that its client gets. Otherwise it would
// compare with an answer that a serving cache has long replaced.
func TestAReportRenews(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.Report = true
		version, fails := 1, false
		c := opened(t, opt)
		h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=2, stale-while-revalidate=600")
			if fails {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			fmt.Fprint(w, "version ", version)
		}))
		see := func(shared, differ int) {
			t.Helper()
			get(t, h, "http://a.example/page")
			if r := c.Report()[0]; r.Shared != shared || r.Differ != differ {
				t.Errorf("%+v, want %d shared, %d that differ", r, shared, differ)
			}
		}
		see(0, 0)
		time.Sleep(3 * time.Second)
		version = 2
		see(1, 1) // and renews it
		see(2, 1)
		fails = true
		time.Sleep(3 * time.Second)
		see(3, 2) // a failure renews nothing
		fails = false
		time.Sleep(3 * time.Second)
		ask(h, http.MethodHead, "http://a.example/page")
		see(5, 2)
		if body, status := get(t, h, "http://a.example/page"); body != "version 2" || isHit(status) {
			t.Errorf("%q: %s", body, status)
		}
	})
}
