package httpcache_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/redistest"
)

// A request that meets the same cache again further in goes straight to the handler, because it would wait for itself.
func TestARequestThatMeetsItsCacheAgain(t *testing.T) {
	for name, around := range map[string]func(h http.Handler, decorate func(http.Handler) http.Handler) http.Handler{
		"mounted twice": func(h http.Handler, decorate func(http.Handler) http.Handler) http.Handler {
			return decorate(decorate(h))
		},
		"an error page through the router": func(h http.Handler, decorate func(http.Handler) http.Handler) http.Handler {
			var router http.Handler
			router = decorate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Failed") == "" {
					r.Header.Set("X-Failed", "1")
					router.ServeHTTP(w, r)
					return
				}
				h.ServeHTTP(w, r)
			}))
			return router
		},
		"a middleware between that rewrites the path": func(h http.Handler, decorate func(http.Handler) http.Handler) http.Handler {
			return decorate(http.StripPrefix("/a", decorate(h)))
		},
		"a time limit between": func(h http.Handler, decorate func(http.Handler) http.Handler) http.Handler {
			return decorate(http.TimeoutHandler(decorate(h), time.Hour, ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				for _, caches := range []string{"one", "two", "renewed from outside"} {
					opt := options(t, srv.Client())
					var h http.Handler
					if caches == "renewed from outside" {
						opt.Renew = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) })
					}
					opt.Namespace.Prefix += caches + ":"
					c := must(t)(opt.New())
					inner := c
					if caches == "two" { // on the same Redis and prefix
						inner = must(t)(opt.New())
					}
					calls := 0
					decorate := func(next http.Handler) http.Handler {
						if calls++; calls == 1 {
							return inner.Handler(next)
						}
						return c.Handler(next)
					}
					o := says("page", "Cache-Control: max-age=2, stale-while-revalidate=60", "Vary: X-Color")
					h = around(o, decorate)
					begun := time.Now()
					for i, want := range []int{1, 1} {
						if body, status := get(t, h, "http://a.example/a/page", "X-Color: red"); body != "page" || o.called() != want {
							t.Errorf("%s: request %d: %q, %q, %d calls, want %d", caches, i, body, status, o.called(), want)
						}
					}
					time.Sleep(3 * time.Second) // it is renewed after it was served stale
					get(t, h, "http://a.example/a/page", "X-Color: red")
					synctest.Wait()
					if n := o.called(); n != 2 {
						t.Errorf("%s: %d calls after a renewal, want 2", caches, n)
					}
					if _, status := get(t, h, "http://a.example/a/page", "X-Color: red"); status[:12] != "mayfly; hit;" || time.Since(begun) != 3*time.Second {
						t.Errorf("%s: %q, and it took %v, want 3s", caches, status, time.Since(begun))
					}
				}
			})
		})
	}
}
