package cacheaside_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// However Redis is gone, all callers are served, also with go-redis's defaults. TestRedisIsGoneInTime checks how long they wait.
func TestRedisIsGone(t *testing.T) {
	const callers = 200
	for name, gone := range map[string]func(t *testing.T) *redis.Options{
		"closed": func(t *testing.T) *redis.Options {
			return &redis.Options{Addr: "127.0.0.1:1"}
		},
		"blackholed": func(t *testing.T) *redis.Options { return &redis.Options{Addr: listen(t).Addr().String()} },
		"hung": func(t *testing.T) *redis.Options {
			srv := realredis.Start(t, realredis.Options{})
			srv.Pause()
			t.Cleanup(srv.Resume)
			return srv.Options()
		},
	} {
		t.Run(name, func(t *testing.T) {
			rdb := redis.NewClient(gone(t))
			defer rdb.Close()
			var events expect.Events
			var running, most atomic.Int32
			ns := namespace(t, rdb)
			ns.Observer = &events
			c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
				n := running.Add(1)
				for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
				}
				defer running.Add(-1)
				<-time.After(time.Millisecond)
				return user{Version: key}, nil
			}, cacheaside.Options{LoadLimit: 16}))
			for range 2 { // once with Redis to be found dead, and once with its death known
				var wg sync.WaitGroup
				for i := range callers {
					wg.Go(func() {
						if u, err := c.Get(t.Context(), i); u.Version != i || err != nil {
							t.Errorf("got %+v, %v", u, err)
						}
					})
				}
				wg.Wait()
			}
			if most.Load() > 16 {
				t.Errorf("%d loads at once", most.Load())
			}
			if events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed) != 1 || events.Count(mayfly.KindRead, mayfly.OutcomeBypass) != 2*callers {
				t.Errorf("%d breaker events, %d bypasses", events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed), events.Count(mayfly.KindRead, mayfly.OutcomeBypass))
			}
			if _, _, err := c.Lookup(t.Context(), 1); err == nil {
				t.Error("Lookup takes a Redis that is gone for an absent key")
			}
			if err := c.Set(t.Context(), 1, user{}); err == nil {
				t.Error("Set succeeded")
			}
		})
	}
}

func TestAFailedDeleteIsNotForgotten(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	var events expect.Events
	ns := namespace(t, srv.Client())
	ns.Observer = &events
	var version atomic.Int32
	version.Store(1)
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
		return user{Version: int(version.Load())}, nil
	}, cacheaside.Options{Unremoved: 2}))
	ctx := t.Context()
	get := func() int { u, _ := c.Get(ctx, 7); return u.Version }
	expect.Eventually(t, "it is stored", func() bool { get(); return events.Count(mayfly.KindRead, mayfly.OutcomeHitRedis) > 0 })
	srv.Pause()
	version.Store(2)
	if err := c.Delete(ctx, 7); err == nil {
		t.Fatal("Delete of a hung server succeeded")
	}
	var many *cacheaside.ManyError[int]
	if err := c.Delete(ctx, 8, 9, 10); !errors.As(err, &many) || len(many.Errs) != 3 {
		t.Errorf("got error %v", err)
	}
	if events.Count(mayfly.KindRemoval, mayfly.OutcomeDropped) != 1 {
		t.Error("what the queue had no room for is not told")
	}
	if get() != 2 {
		t.Error("the old value was served")
	}
	srv.Resume()
	// Redis is back, still with the old value: it must not come through before it is deleted.
	expect.Eventually(t, "the deletion is repeated", func() bool {
		if v := get(); v != 2 {
			t.Fatalf("version %d was served", v)
		}
		return events.Count(mayfly.KindRemoval, mayfly.OutcomeOK) > 0
	})
	events.Forget()
	expect.Eventually(t, "Redis is read again", func() bool { get(); return events.Count(mayfly.KindRead, mayfly.OutcomeHitRedis) > 0 })
	if get() != 2 {
		t.Error("the old value came back")
	}
}

// Close tries once more, and reports what it could not do.
func TestCloseWithDeletesInDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := nobodyThere()
		defer func() { rdb.Close(); time.Sleep(2 * time.Second) }() // go-redis's own goroutines look once a second
		var events expect.Events
		ns := namespace(t, rdb)
		ns.Observer = &events
		c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
		c.Delete(t.Context(), 7)
		begun := time.Now()
		if err := c.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "1 removals") || time.Since(begun) > 150*time.Millisecond {
			t.Errorf("Close: %v after %v", err, time.Since(begun))
		}
		if events.Count(mayfly.KindRemoval, mayfly.OutcomeDropped) != 1 {
			t.Errorf("got %+v", events.All())
		}
	})
}

// nobodyThere is a client, fit for bubbles, of a closed port.
func nobodyThere() *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1,
		Dialer: func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nobody there") },
	})
}

// most records how many calls work at once.
type most struct {
	mu            sync.Mutex
	running, seen int
}

// during is work that takes d.
func (m *most) during(d time.Duration) {
	m.mu.Lock()
	m.running++
	m.seen = max(m.seen, m.running)
	m.mu.Unlock()
	time.Sleep(d)
	m.mu.Lock()
	m.running--
	m.mu.Unlock()
}

func TestABoundOnLoadsIsAQueueNotARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := nobodyThere()
		defer func() { rdb.Close(); time.Sleep(2 * time.Second) }() // go-redis's own goroutines look once a second
		var atOnce most
		c := must[int, int](t)(cacheaside.New(
			mayfly.Namespace[int, int]{Name: "n", Redis: rdb, Prefix: "p:", TTL: time.Minute},
			func(_ context.Context, key int) (int, error) {
				atOnce.during(time.Second)
				return key, nil
			}, cacheaside.Options{LoadTimeout: 4500 * time.Millisecond, LoadLimit: 2}))
		var served, refused atomic.Int32
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), i); err == nil {
					served.Add(1)
				} else {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		if atOnce.seen != 2 || served.Load() != 10 || refused.Load() != 10 {
			t.Errorf("%d at once, %d served, %d refused; want 2 at once, and those refused whose turn did not come in time", atOnce.seen, served.Load(), refused.Load())
		}
	})
}
