package httpcache_test

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/httpcache"
)

// Other processes learn that an answer is for its client alone as soon as its header is written, not at the end of its body.
func TestOtherProcessesHearTheHeader(t *testing.T) {
	for name, x := range map[string]struct {
		before, says string // Cache-Control of the first answer, which has expired, and of the slow one
		vary         string
	}{
		"nothing is stored":            {"", "no-cache", ""},
		"of a lifetime of zero":        {"", "max-age=0", ""},
		"what is stored has expired":   {"max-age=1", "no-cache", ""},
		"it varies":                    {"", "no-cache", "X-User"},
		"it is one of several":         {"max-age=1", "no-cache", "X-User"},
		"it varies otherwise":          {"max-age=1", "no-cache", "X-User, X-Color"},
		"it is renewed, and sets what": {"max-age=1", "private", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, rdb *redis.Client) {
				slow := false
				var mu sync.Mutex
				o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					takes, control := time.Duration(0), x.before
					if slow {
						takes, control = 5*time.Second, x.says
					}
					mu.Unlock()
					set(w.Header(), []string{"Cache-Control: " + control, `Etag: "1"`})
					if x.vary != "" {
						w.Header().Set("Vary", x.vary)
					}
					w.(http.Flusher).Flush()
					time.Sleep(takes)
					io.WriteString(w, r.Header.Get("X-User"))
				}}
				hs := []http.Handler{opened(t, options(t, rdb)).Handler(o), opened(t, options(t, rdb)).Handler(o)}
				if x.before != "" {
					get(t, hs[0], "http://a.example/", "X-User: a")
					time.Sleep(2 * time.Second)
				}
				mu.Lock()
				slow = true
				mu.Unlock()
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 50 * time.Millisecond)
						begun := time.Now()
						body, status := get(t, hs[i%2], "http://a.example/", "X-User: a")
						if took := time.Since(begun); body != "a" || took > 5500*time.Millisecond {
							t.Errorf("request %d, after %v: %q, %s", i, took, body, status)
						}
					})
				}
				all.Wait()
			})
		})
	}
}

// An answer that could not be shared when its header came, and is stored in the end, serves the next request unless it was purged meanwhile.
func TestWhatMustBeValidatedIsStoredInTheEnd(t *testing.T) {
	for _, vary := range []string{"", "X-Color"} {
		for _, purged := range []time.Duration{0, 500 * time.Millisecond, 1500 * time.Millisecond} { // never, before its header, after it
			inBubble(t, func(t *testing.T, rdb *redis.Client) {
				version := "1"
				var mu sync.Mutex
				o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					now := version
					mu.Unlock()
					set(w.Header(), []string{"Cache-Control: no-cache", fmt.Sprintf("Etag: %q", now), "Vary: " + vary})
					if r.Header.Get("If-None-Match") == fmt.Sprintf("%q", now) {
						w.WriteHeader(http.StatusNotModified)
						return
					}
					time.Sleep(time.Second)
					w.(http.Flusher).Flush()
					time.Sleep(time.Second)
					io.WriteString(w, now)
				}}
				c := opened(t, options(t, rdb))
				h := c.Handler(o)
				var all sync.WaitGroup
				all.Go(func() { get(t, h, "http://a.example/") })
				if time.Sleep(purged); purged > 0 {
					if err := c.Purge(t.Context(), httpcache.Target{URL: "http://a.example/"}); err != nil {
						t.Fatal(err)
					}
				}
				all.Wait()
				synctest.Wait()
				_, status := get(t, opened(t, options(t, rdb)).Handler(o), "http://a.example/")
				if want := `mayfly; fwd=stale; fwd-status=304; ttl=0; stored; key="http://a.example/"`; (status == want) != (purged == 0) {
					t.Errorf("purged after %v, by %q: %s", purged, vary, status)
				}
			})
		}
	}
}

// Close hands back the leases of requests whose handlers run: their clients get their answers, which are not stored, and other processes
// need not wait for them, nor for the lease to end.
func TestCloseHandsBackWhatHandlersHold(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		takes := 10 * time.Second
		page := func(name string, takes *time.Duration) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=1, stale-while-revalidate=60")
				time.Sleep(*takes)
				io.WriteString(w, name)
			})
		}
		opt := options(t, rdb)
		opt.SharedWait = time.Minute
		closes, at := opened(t, opt), new(time.Duration)
		first, second := closes.Handler(page("first", at)), opened(t, opt).Handler(page("second", new(time.Duration)))
		get(t, first, "http://a.example/expired")
		time.Sleep(90 * time.Second)
		*at = takes
		var all sync.WaitGroup
		for _, url := range []string{"http://a.example/missing", "http://a.example/expired"} {
			all.Go(func() {
				if body, status := get(t, first, url); body != "first" {
					t.Errorf("%s: %q, %s", url, body, status)
				}
			})
		}
		time.Sleep(time.Second)
		begun := time.Now()
		if err := closes.Close(t.Context()); err != nil || time.Since(begun) > 0 {
			t.Error(err, time.Since(begun))
		}
		for _, url := range []string{"http://a.example/missing", "http://a.example/expired"} {
			if body, status := get(t, second, url); body != "second" || time.Since(begun) > 100*time.Millisecond {
				t.Errorf("%s: %q after %v: %s", url, body, time.Since(begun), status)
			}
		}
		all.Wait()
		synctest.Wait()
		for _, url := range []string{"http://a.example/missing", "http://a.example/expired"} {
			if body, status := get(t, second, url); body != "second" || !isHit(status) {
				t.Errorf("later, %s: %q: %s", url, body, status)
			}
		}
	})
}
