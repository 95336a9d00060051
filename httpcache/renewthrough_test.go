package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// A renewal through the outermost handler has everything that routers and middlewares add to a request.
func TestARenewalThroughTheOutermostHandler(t *testing.T) {
	for name, x := range map[string]struct {
		around  func(w http.ResponseWriter, r *http.Request, next http.Handler) // of a renewal
		renewed bool
	}{
		"as clients":      {func(w http.ResponseWriter, r *http.Request, next http.Handler) { next.ServeHTTP(w, r) }, true},
		"refused outside": {func(w http.ResponseWriter, r *http.Request, next http.Handler) { w.WriteHeader(401) }, false},
		"a panic outside": {func(w http.ResponseWriter, r *http.Request, next http.Handler) { panic("outside") }, false},
		"another path": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.URL.Path = "/users/8"
			next.ServeHTTP(w, r)
		}, false},
		"another host": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.Host = "b.example"
			next.ServeHTTP(w, r)
		}, false},
		"another variant": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			r.Header.Del("X-Color")
			next.ServeHTTP(w, r)
		}, false},
		"twice": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			next.ServeHTTP(w, r)
			next.ServeHTTP(w, r)
		}, true},
		"a header is added": {func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			w.Header().Set("X-Outer", "renewal")
			next.ServeHTTP(w, r)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, rdb *redis.Client) {
				var events expect.Events
				var site http.Handler
				opt := options(t, rdb)
				opt.Namespace.Observer = &events
				opt.Renew = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { site.ServeHTTP(w, r) })
				calls := 0
				cache := opened(t, opt)
				cached := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if calls++; calls > 1 && (r.Header["Range"] != nil || r.Header["If-None-Match"] != nil || r.Header["Cache-Control"] != nil) {
						t.Errorf("the renewal has conditions: %v", r.Header)
					}
					set(w.Header(), []string{"Cache-Control: max-age=10, stale-while-revalidate=60", "Vary: X-Color"})
					fmt.Fprintf(w, "user %s, version %d", *r.Context().Value(stateKey{}).(*string), calls)
				}))
				mux := http.NewServeMux()
				mux.HandleFunc("/users/{id}", func(w http.ResponseWriter, r *http.Request) {
					id := r.PathValue("id")
					cached.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), stateKey{}, &id)))
					id = "of another request"
				})
				site = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					switch {
					case cache.Renews(r):
						x.around(w, r, mux)
					case r.Header.Get("Authorization") == "":
						w.WriteHeader(http.StatusUnauthorized)
					default:
						r.Header.Del("Authorization") // the request is accepted
						mux.ServeHTTP(w, r)
					}
				})
				visit := func() (body, status string, took time.Duration) {
					begun := time.Now()
					body, status = get(t, site, "/users/7?q", "X-Color: red", "Authorization: Basic YTpi", `If-None-Match: "x"`, "Range: bytes=0-99", "Cache-Control: max-stale")
					took = time.Since(begun)
					synctest.Wait()
					return body, status, took
				}
				get(t, site, "/users/7?q", "X-Color: red", "Authorization: Basic YTpi")
				time.Sleep(20 * time.Second)
				if body, status, took := visit(); body != "user 7, version 1" || !isHit(status) || took > 0 {
					t.Errorf("while it is renewed: %q after %v: %s", body, took, status)
				}
				want := map[bool]string{true: "user 7, version 2", false: "user 7, version 1"}[x.renewed]
				if body, status, _ := visit(); body != want || !isHit(status) {
					t.Errorf("later: %q, want %q: %s", body, want, status)
				}
				if res := ask(site, "GET", "/users/7?q", "X-Color: red", "Authorization: x"); res.Header.Get("X-Outer") != "" {
					t.Errorf("what was set around the cache for a renewal is stored: %v", res.Header)
				}
				if failed := events.Count(mayfly.KindRefresh, mayfly.OutcomeFailed); (failed == 0) != x.renewed {
					t.Errorf("%d renewals failed", failed)
				}
				if want := map[bool]int{true: 2, false: 1}[x.renewed]; calls != want {
					t.Errorf("the handler was asked %d times", calls)
				}
			})
		})
	}
}

// The two options for renewals exclude each other.
func TestOneWayToRenew(t *testing.T) {
	opt := options(t, nil)
	opt.Namespace.Redis = redis.NewClient(&redis.Options{})
	opt.Renew, opt.RenewBackground = http.NotFoundHandler(), true
	if _, err := opt.New(); err == nil || !strings.Contains(err.Error(), "RenewBackground") {
		t.Errorf("%v", err)
	}
}
