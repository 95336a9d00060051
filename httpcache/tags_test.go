package httpcache_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// A purge by tag outlasts the pages of processes with another TTL: during a deployment that changes the TTL both run side by side.
func TestATagPurgeOutlivesPagesOfAnotherTTL(t *testing.T) {
	for name, targets := range map[string][]httpcache.Target{"Tag": {{Tag: "p-1"}}, "Group": {{URL: failedURL, Group: "g-1"}}} {
		for _, purgedBefore := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				long, short := options(t, srv.Client()), options(t, srv.Client())
				long.Namespace.TTL, short.Namespace.TTL = 600*time.Second, time.Second
				v := newVersions("Cache-Control: max-age=600", "Surrogate-Key: p-1", `Cache-Groups: "g-1"`)
				c, other := opened(t, long), opened(t, short)
				h := c.Handler(v)
				if purgedBefore {
					expect.OK(t, other.Purge(t.Context(), httpcache.Target{Tag: "any"}))
				}
				get(t, h, failedURL)
				if _, status := get(t, h, failedURL); !isHit(status) {
					t.Fatalf("it is not stored: %s", status)
				}
				v.version++
				expect.OK(t, other.Purge(t.Context(), targets...))
				time.Sleep(100 * time.Second) // the purger's own pages are long gone
				if body, status := get(t, h, failedURL); body != "/p/1 v1 " {
					t.Errorf("%s, purged before %v: the page is back: %s: %s", name, purgedBefore, body, status)
				}
			})
		}
	}
}

// Namespace.TTL bounds the age of the answers that a process serves, even of answers that another process stored for longer.
func TestNoPageIsServedForLongerThanTheReadersTTL(t *testing.T) {
	for _, vary := range []string{"", "X-Color"} {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			long, short := options(t, srv.Client()), options(t, srv.Client())
			long.Namespace.TTL, short.Namespace.TTL = 600*time.Second, 10*time.Second
			header := []string{"Cache-Control: max-age=600"}
			if vary != "" {
				header = append(header, "Vary: "+vary)
			}
			v := newVersions(header...)
			h, theirs := opened(t, long).Handler(v), opened(t, short).Handler(v)
			get(t, h, failedURL)
			v.version++
			if body, status := get(t, theirs, failedURL); !isHit(status) {
				t.Errorf("Vary %q: at first: %s: %s", vary, body, status)
			}
			time.Sleep(11 * time.Second)
			if body, status := get(t, theirs, failedURL); body != "/p/1 v1 " {
				t.Errorf("Vary %q: after its TTL: %s: %s", vary, body, status)
			}
			if _, status := get(t, theirs, failedURL); !isHit(status) {
				t.Errorf("Vary %q: what it stored itself: %s", vary, status)
			}
		})
	}
}

// Concurrent purges do not disturb each other, and their cost for Redis grows only linearly with their number.
func TestManyTagPurgesAtOnce(t *testing.T) {
	const purges = 50
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var caches [2]*httpcache.Cache
		for i := range caches {
			opt := options(t, srv.Client())
			opt.RedisTimeout = 150 * time.Millisecond
			caches[i] = opened(t, opt)
			expect.OK(t, caches[i].Purge(t.Context(), httpcache.Target{Tag: "first"}))
		}
		srv.Latency(4 * time.Millisecond)
		srv.ClearLog()
		var all sync.WaitGroup
		for i := range purges {
			all.Go(func() {
				if err := caches[i%2].Purge(t.Context(), httpcache.Target{Tag: fmt.Sprint("p-", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		n := 0
		for _, line := range srv.Log() {
			if strings.Contains(strings.ToLower(line), "eval") || strings.Contains(strings.ToLower(line), "get") {
				n++
			}
		}
		if n == 0 || n > 2*purges {
			t.Errorf("%d purges took %d commands", purges, n)
		}
	})
}

// After another process's purge, a process that still knows the previous version stores one page in vain, not those of a whole second.
func TestAfterAnothersPurgePagesAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		page := says("page", "Cache-Control: max-age=600", "Surrogate-Key: x")
		c, other := opened(t, options(t, srv.Client())), opened(t, options(t, srv.Client()))
		h := c.Handler(page)
		get(t, h, "http://a.example/warm")
		expect.OK(t, other.Purge(t.Context(), httpcache.Target{Tag: "x"}))
		before := page.called()
		for range 10 {
			get(t, h, "http://a.example/page")
			time.Sleep(20 * time.Millisecond)
		}
		if n := page.called() - before; n > 2 {
			t.Errorf("the handler was called %d times", n)
		}
	})
}

// The version of the purges that an earlier program has left is read, and the next one is greater.
func TestAVersionFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		opt := options(t, srv.Client())
		c := opened(t, opt)
		key := opt.Namespace.Prefix + "purges"
		expect.OK(t, c.Purge(t.Context(), httpcache.Target{Tag: "x"}))
		rec := []byte(srv.Client().Get(t.Context(), key).Val())
		copy(rec[len(rec)-8:], "\x00\x7f\xff\xff\xff\xff\xff\xff") // by a clock that is wrong: more than a float64 holds
		expect.OK(t, srv.Client().Set(t.Context(), key, rec, time.Hour).Err())
		expect.OK(t, c.Purge(t.Context(), httpcache.Target{Tag: "x"}))
		if got := srv.Client().Get(t.Context(), key).Val(); !strings.HasSuffix(got, "\x00\x80\x00\x00\x00\x00\x00\x00") {
			t.Errorf("it is now %x", got[len(got)-8:])
		}
		v := newVersions("Cache-Control: max-age=600", "Surrogate-Key: x")
		h := c.Handler(v)
		get(t, h, failedURL)
		if _, status := get(t, h, failedURL); !isHit(status) {
			t.Errorf("what is stored then: %s", status)
		}
		v.version++
		expect.OK(t, c.Purge(t.Context(), httpcache.Target{Tag: "x"}))
		if body, _ := get(t, h, failedURL); body != "/p/1 v1 " {
			t.Error(body)
		}
		for _, garbage := range []string{"", "x", strings.Repeat("\xff", 65)} {
			expect.OK(t, srv.Client().Set(t.Context(), key, garbage, time.Hour).Err())
			expect.OK(t, c.Purge(t.Context(), httpcache.Target{Tag: "y"}))
		}
	})
}

// The version of the purges may be lost, by a FLUSHALL, an eviction or a restart. Purges after that hold nevertheless, however many there were
// before and whatever the purgers' clocks say.
func TestAPurgeHoldsAfterItsVersionWasLost(t *testing.T) {
	for _, lose := range []string{"FLUSHALL", "DEL"} {
		for _, loadedBefore := range []bool{true, false} {
			srv := redistest.Start(t)
			v := newVersions("Cache-Control: max-age=600", "Surrogate-Key: start")
			job, h, admin := opened(t, options(t, srv.Client())), opened(t, options(t, srv.Client())).Handler(v), opened(t, options(t, srv.Client()))
			for i := range 300 { // many more than there are milliseconds
				expect.OK(t, job.Purge(t.Context(), httpcache.Target{Tag: fmt.Sprint("product-", i)}))
			}
			get(t, h, failedURL+"/other") // learns the version
			if loadedBefore {
				get(t, h, failedURL)
			}
			if lose == "DEL" {
				srv.Del(options(t, nil).Namespace.Prefix + "purges")
			} else {
				srv.FlushAll()
			}
			get(t, h, failedURL)
			v.version++
			expect.OK(t, admin.Purge(t.Context(), httpcache.Target{Tag: "start"}))
			if body, status := get(t, h, failedURL); isHit(status) {
				t.Errorf("%s, loaded before %v: after the purge %s is a hit: %s", lose, loadedBefore, body, status)
			}
		}
	}
}

// A page that its handler has confirmed as unchanged has the tags it had before, beside those that it has now: a purge of them, while the handler
// was asked or later, voids it.
func TestAPageKeepsTheTagsOfItsBody(t *testing.T) {
	for name, targets := range map[string][]httpcache.Target{"Tag": {{Tag: "a"}}, "Group": {{URL: failedURL, Group: "a"}}} {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			tag, during := "a", func() {}
			c := opened(t, options(t, srv.Client()))
			h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				set(w.Header(), []string{"Cache-Control: max-age=1", `Etag: "1"`, "Surrogate-Key: " + tag, `Cache-Groups: "` + tag + `"`})
				if r.Header.Get("If-None-Match") == "" {
					fmt.Fprint(w, "the page of tag ", tag)
					return
				}
				w.WriteHeader(http.StatusNotModified)
				during()
			}))
			get(t, h, failedURL)
			tag, during = "b", func() { expect.OK(t, c.Purge(t.Context(), targets...)) }
			time.Sleep(2 * time.Second)
			get(t, h, failedURL) // asks whether it has changed
			if body, status := get(t, h, failedURL); body != "the page of tag b" {
				t.Errorf("%s: purged while its handler was asked: %s: %s", name, body, status)
			}
		})
	}
}
