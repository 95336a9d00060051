package httpcache_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// Nobody gets another's page. The handlers here distinguish users by their cookie without naming it in Vary; instead they declare that each
// answer must be validated.

// mine is a handler with a page for each user, and a validator of that page.
func mine(header ...string) *origin {
	return &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		user := r.Header.Get("Cookie")
		time.Sleep(30 * time.Millisecond)
		if user == "u=broken" {
			panic(http.ErrAbortHandler)
		}
		set(w.Header(), header)
		tag := fmt.Sprintf("%q", "page of "+user)
		w.Header().Set("Etag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, "page of ", user)
	}}
}

func TestAnAnswerThatMustBeValidatedIsNotShared(t *testing.T) {
	for _, control := range []string{"no-cache", "max-age=0", "max-age=0, must-revalidate", "", "no-cache, max-age=60", "s-maxage=0"} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			var header []string
			if control != "" {
				header = []string{"Cache-Control: " + control}
			}
			h := opened(t, options(t, rdb)).Handler(mine(header...))
			for round := range 3 {
				begun := time.Now()
				cookie := func(i int) string { return fmt.Sprint("u=", i%20) }
				for i, body := range crowd(t, 60, h, "http://a.example/", func(i int) []string { return []string{"Cookie: " + cookie(i)} }) {
					if body != "page of "+cookie(i) {
						t.Errorf("%q: user %d got %q", control, i%20, body)
					}
				}
				if took := time.Since(begun); round > 0 && took > 40*time.Millisecond {
					t.Errorf("%q: crowd %d took %v: they waited for each other", control, round, took)
				}
			}
		})
	}
}

// Waiters learn from the header that the answer cannot be shared.
func TestNobodyWaitsForABodyThatIsNotForHim(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		h := opened(t, options(t, rdb)).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Millisecond) // until all wait: a request after the header finds a lease, and waits for the body as other processes do
			set(w.Header(), []string{"Cache-Control: no-cache", `Etag: "1"`})
			w.(http.Flusher).Flush()
			time.Sleep(time.Second)
		}})
		begun := time.Now()
		crowd(t, 20, h, "http://a.example/", nil)
		if took := time.Since(begun); took > 1100*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

// A waiter's own demands are checked as they are for a hit.
func TestAWaiterMayDemandMore(t *testing.T) {
	for demand, want := range map[string]int{"min-fresh=30": 1, "min-fresh=100": 2, "max-age=5": 2, "max-age=20": 1} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
				time.Sleep(time.Second)
				set(w.Header(), []string{"Cache-Control: max-age=60", "Age: 10"})
				w.WriteHeader(http.StatusOK)
			}}
			h := opened(t, options(t, rdb)).Handler(o)
			var all sync.WaitGroup
			all.Go(func() { get(t, h, "http://a.example/") })
			time.Sleep(time.Millisecond)
			all.Go(func() { get(t, h, "http://a.example/", "Cache-Control: "+demand) })
			all.Wait()
			if n := o.called(); n != want {
				t.Errorf("%s: the handler was asked %d times, want %d", demand, n, want)
			}
		})
	}
}

// An answer that was never fresh does not stand in for a failure, unless it allows that itself.
func TestWhatWasNeverFreshIsNotServedStale(t *testing.T) {
	for control, want := range map[string]bool{"max-age=0": false, "": false, "max-age=0, stale-if-error=60": true, "max-age=1": true} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			var header []string
			if control != "" {
				header = []string{"Cache-Control: " + control}
			}
			h := opened(t, options(t, rdb)).Handler(mine(header...))
			get(t, h, "http://a.example/", "Cookie: u=ada")
			time.Sleep(2 * time.Second)
			for _, cookie := range []string{"u=broken", "u=broken"} {
				body := func() (body string) {
					defer func() { recover() }()
					body, _ = get(t, h, "http://a.example/", "Cookie: "+cookie)
					return body
				}()
				if got := body == "page of u=ada"; got != want {
					t.Errorf("%q: %s got %q", control, cookie, body)
				}
			}
			if body, _ := get(t, h, "http://a.example/", "Cookie: u=bob"); !want && body != "page of u=bob" {
				t.Errorf("%q: bob got %q", control, body)
			}
			if body, _ := get(t, h, "http://a.example/", "Cookie: u=eve", "Cache-Control: max-stale"); !want && body != "page of u=eve" {
				t.Errorf("%q: a client that accepts stale answers got %q", control, body)
			}
		})
	}
}

// Waiters get the answer that may stand in when the handler fails.
func TestWaitersForAFailureAreServedStale(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		fails := false
		o := &origin{}
		o.serve = func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			if fails {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			set(w.Header(), []string{"Cache-Control: " + fresh})
			fmt.Fprint(w, "a page")
		}
		h := opened(t, options(t, rdb)).Handler(o)
		was, _ := get(t, h, "http://a.example/")
		fails = true
		time.Sleep(5 * time.Minute)
		called := o.called()
		for _, body := range crowd(t, 20, h, "http://a.example/", nil) {
			if body != was {
				t.Errorf("one of many got %q", body)
			}
		}
		if n := o.called() - called; n != 1 {
			t.Errorf("the handler was asked %d times", n)
		}
	})
}

// A handler's changes to its request do not affect the cache's decisions.
func TestAHandlerMayChangeItsRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			secret, encoding, path := r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding"), r.URL.Path
			r.Header.Del("Authorization")
			r.Header.Del("Accept-Encoding")
			r.URL.Path = "/"
			if r.Method != http.MethodGet {
				return
			}
			set(w.Header(), []string{"Cache-Control: max-age=60", "Vary: Accept-Encoding"})
			fmt.Fprint(w, secret, encoding, path)
		}}
		h := opened(t, options(t, rdb)).Handler(o)
		for _, x := range []struct{ header, want string }{
			{"Authorization: Bearer a", "Bearer a/page"}, {"Authorization: Bearer b", "Bearer b/page"},
			{"Accept-Encoding: gzip", "gzip/page"}, {"X: y", "/page"}, {"Accept-Encoding: gzip", "gzip/page"},
		} {
			if body, status := get(t, h, "http://a.example/page", x.header); body != x.want {
				t.Errorf("%s: got %q: %s", x.header, body, status)
			}
		}
		if _, status := get(t, h, "http://a.example/page"); !isHit(status) {
			t.Errorf("nothing was stored: %s", status)
		}
		ask(h, "POST", "http://a.example/page")
		if _, status := get(t, h, "http://a.example/page"); isHit(status) {
			t.Errorf("a POST has not voided its URL: %s", status)
		}
	})
}

// A slow body may be too old when it is complete. It was fresh when it came, so it still serves those who waited.
func TestASlowBodyIsStillForMany(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=1"})
			fmt.Fprint(w, "slow")
			w.(http.Flusher).Flush()
			time.Sleep(1500 * time.Millisecond)
		}}
		h := opened(t, options(t, rdb)).Handler(o)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				if body, _ := get(t, h, "http://a.example/"); body != "slow" {
					t.Errorf("got %q", body)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if n := o.called(); n != 1 {
			t.Errorf("the handler was asked %d times for 50", n)
		}
	})
}
