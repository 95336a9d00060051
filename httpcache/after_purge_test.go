package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// slowPage is an origin that takes a second between reading its version and answering.
func slowPage(version *atomic.Int64, header ...string) *origin {
	return &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		v := version.Load()
		if r.Method != http.MethodGet {
			return
		}
		time.Sleep(time.Second)
		set(w.Header(), header)
		fmt.Fprintf(w, "v%d", v)
	}}
}

// After Purge returned nil in one process, no later request in another process gets an answer that its handler began before.
func TestARequestAfterPurgeJoinsNoOlderOne(t *testing.T) {
	const url = "http://a.example/blog/1"
	for name, purge := range map[string]func(t *testing.T, c *httpcache.Cache, h http.Handler){
		"URL": func(t *testing.T, c *httpcache.Cache, _ http.Handler) {
			expect.OK(t, c.Purge(t.Context(), httpcache.Target{URL: url}))
		},
		"Prefix": func(t *testing.T, c *httpcache.Cache, _ http.Handler) {
			expect.OK(t, c.Purge(t.Context(), httpcache.Target{Prefix: "http://a.example/blog/"}))
		},
		"Tag": func(t *testing.T, c *httpcache.Cache, _ http.Handler) {
			expect.OK(t, c.Purge(t.Context(), httpcache.Target{Tag: "blog"}))
		},
		"an unsafe method": func(t *testing.T, _ *httpcache.Cache, h http.Handler) { ask(h, "DELETE", url) },
	} {
		for kind, header := range map[string][]string{
			"one for all":      {"Cache-Control: max-age=600", "Surrogate-Key: blog"},
			"varies":           {"Cache-Control: max-age=600", "Surrogate-Key: blog", "Vary: X-Color"},
			"not to be stored": {"Cache-Control: no-store"},
		} {
			for _, known := range []bool{false, true} { // that it varies
				t.Run(fmt.Sprintf("%s, %s, %v", name, kind, known), func(t *testing.T) {
					inBubble(t, func(t *testing.T, rdb *redis.Client) {
						var version atomic.Int64
						page := slowPage(&version, header...)
						reader, writer := opened(t, options(t, rdb)), opened(t, options(t, rdb))
						h, theirs := reader.Handler(page), writer.Handler(page)
						color := "X-Color: red"
						if known {
							get(t, h, url, "X-Color: blue")
						}
						var all sync.WaitGroup
						all.Go(func() { get(t, h, url, color) })
						time.Sleep(500 * time.Millisecond)
						synctest.Wait() // the handler has read
						version.Add(1)
						purge(t, writer, theirs)
						begun := time.Now()
						for range 3 {
							all.Go(func() {
								if body, status := get(t, h, url, color); body != "v1" {
									t.Errorf("began after the purge, and got %s: %s", body, status)
								}
								if took := time.Since(begun); took > 2500*time.Millisecond {
									t.Errorf("waited %v", took)
								}
							})
						}
						all.Wait()
						if body, status := get(t, h, url, color); body != "v1" {
							t.Errorf("then got %s: %s", body, status)
						}
					})
				})
			}
		}
	}
}

// Requests that come while the handler runs share its answer if nothing was purged.
func TestLateRequestsShare(t *testing.T) {
	for kind, header := range map[string][]string{
		"one for all": {"Cache-Control: max-age=600"},
		"tagged":      {"Cache-Control: max-age=600", "Surrogate-Key: blog"},
		"varies":      {"Cache-Control: max-age=600", "Vary: X-Color"},
	} {
		for _, known := range []bool{false, true} {
			inBubble(t, func(t *testing.T, rdb *redis.Client) {
				var version atomic.Int64
				page := slowPage(&version, header...)
				h := opened(t, options(t, rdb)).Handler(page)
				if known {
					get(t, h, "http://a.example/", "X-Color: blue")
					version.Add(1)
				}
				asked := page.called()
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() { get(t, h, "http://a.example/", "X-Color: red") })
					time.Sleep(50 * time.Millisecond)
				}
				all.Wait()
				if n := page.called() - asked; n > 1 {
					t.Errorf("%s, known %v: the handler was asked %d times", kind, known, n)
				}
			})
		}
	}
}

// A reload needs an answer that the handler made for it.
func TestAReloadJoinsNoOlderRequest(t *testing.T) {
	for _, directive := range []string{"no-cache", "max-age=0"} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			var version atomic.Int64
			h := opened(t, options(t, rdb)).Handler(slowPage(&version, "Cache-Control: max-age=600"))
			var all sync.WaitGroup
			all.Go(func() { get(t, h, "http://a.example/") })
			time.Sleep(500 * time.Millisecond)
			version.Add(1)
			if body, status := get(t, h, "http://a.example/", "Cache-Control: "+directive); body != "v1" {
				t.Errorf("%s got %s: %s", directive, body, status)
			}
			all.Wait()
		})
	}
}

// Two purges of one tag: the first one's barrier is written after the second's.
func TestABarrierIsNotLowered(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		var version atomic.Int64
		opt := options(t, rdb)
		key := opt.Namespace.Prefix + "tag blog"
		held := &holding{key: key, arrived: make(chan struct{}), release: make(chan struct{})}
		slow := redis.NewClient(rdb.Options())
		defer slow.Close()
		slow.AddHook(held)
		first, second := opened(t, options(t, slow)), opened(t, opt)
		page := second.Handler(slowPage(&version, "Cache-Control: max-age=600", "Surrogate-Key: blog"))
		get(t, page, "http://a.example/")
		done := make(chan error)
		go func() { done <- first.Purge(t.Context(), httpcache.Target{Tag: "blog"}) }()
		<-held.arrived
		get(t, page, "http://a.example/") // is void when the first purge is through, and was asked for before the second
		version.Add(1)
		expect.OK(t, second.Purge(t.Context(), httpcache.Target{Tag: "blog"}))
		is := expect.Value(rdb.Get(t.Context(), key).Bytes())(t)
		close(held.release)
		expect.OK(t, <-done)
		if now := expect.Value(rdb.Get(t.Context(), key).Bytes())(t); string(now) != string(is) {
			t.Error("an older barrier took the place of a newer one")
		}
		if body, status := get(t, page, "http://a.example/"); body != "v1" {
			t.Errorf("got %s: %s", body, status)
		}
	})
}

// holding holds the first write of a key until it is released.
type holding struct {
	key              string
	arrived, release chan struct{}
	once             sync.Once
}

func (h *holding) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *holding) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "get" && slices.Contains(cmd.Args(), any(h.key)) {
			h.once.Do(func() { close(h.arrived); <-h.release })
		}
		return next(ctx, cmd)
	}
}

func (h *holding) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
