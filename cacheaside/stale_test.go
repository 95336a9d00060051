package cacheaside_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

func staleWhileRevalidate(t *testing.T, rdb redis.UniversalClient) {
	ns := namespace(t, rdb)
	var events expect.Events
	ns.Observer = &events
	var loads atomic.Int32
	var down atomic.Bool
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
		if n := int(loads.Add(1)); !down.Load() {
			return user{Version: n}, nil
		}
		return user{}, errors.New("down")
	}, cacheaside.Options{StaleWhile: 30 * time.Second, RenewThrottle: time.Hour, RedisTimeout: patient}))
	ctx, full := t.Context(), ns.Prefix+"7"
	c.Get(ctx, 7)
	if ttl := rdb.PTTL(ctx, full).Val(); ttl <= 80*time.Second || ttl > 90*time.Second {
		t.Errorf("kept for %v, want TTL and window", ttl)
	}
	rdb.PExpire(ctx, full, 25*time.Second)
	if e, ok, err := c.Lookup(ctx, 7); !ok || err != nil || e.Outcome != mayfly.OutcomeStale || e.Fresh > 0 || e.Age < time.Minute {
		t.Errorf("Lookup: %+v, %v, %v", e, ok, err)
	}
	if u, err := c.Get(ctx, 7); u.Version != 1 || err != nil {
		t.Errorf("stale: %+v, %v", u, err)
	}
	expect.Eventually(t, "it is renewed", func() bool { e, _, _ := c.Lookup(ctx, 7); return e.Value.Version == 2 })
	down.Store(true)
	rdb.PExpire(ctx, full, 25*time.Second)
	for range 20 { // one attempt, and then none for an hour
		if u, err := c.Get(ctx, 7); u.Version != 2 || err != nil {
			t.Errorf("stale, the origin is down: %+v, %v", u, err)
		}
	}
	expect.Eventually(t, "the renewal fails", func() bool { return events.Count(mayfly.KindRefresh, mayfly.OutcomeFailed) == 1 })
	if loads.Load() != 3 {
		t.Errorf("%d loads", loads.Load())
	}
	if n := events.Count(mayfly.KindRead, mayfly.OutcomeStale); n != 21 {
		t.Errorf("%d stale reads told", n)
	}
}

// Over an hour of virtual time there is exactly one load per TTL, and nobody waits.
func TestStaleWhileRevalidateInTime(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var loads atomic.Int32
		down := false
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			time.Sleep(time.Second)
			n := int(loads.Add(1))
			if down {
				return user{}, errors.New("down")
			}
			return user{Version: n}, nil
		}, cacheaside.Options{Early: earlyrefresh.Never, StaleWhile: 30 * time.Second, RenewThrottle: 5 * time.Second}))
		ctx := t.Context()
		get := func(want int, waits bool) {
			t.Helper()
			begun := time.Now()
			if u, err := c.Get(ctx, 7); u.Version != want || err != nil {
				t.Errorf("got %+v, %v, want version %d", u, err, want)
			}
			if !waits && time.Since(begun) > 10*time.Millisecond {
				t.Errorf("it took %v", time.Since(begun))
			}
		}
		get(1, true)
		time.Sleep(65 * time.Second)
		get(1, false)
		time.Sleep(2 * time.Second)
		get(2, false)

		// The origin is down: stale until the window ends, and one attempt per Throttle.
		down = true
		time.Sleep(60 * time.Second)
		before := loads.Load()
		for range 250 {
			get(2, false)
			time.Sleep(100 * time.Millisecond)
		}
		if n := loads.Load() - before; n < 3 || n > 6 {
			t.Errorf("%d attempts in 25 s", n)
		}
		time.Sleep(10 * time.Second)
		if _, err := c.Get(ctx, 7); err == nil {
			t.Error("served past its window")
		}
		synctest.Wait()
	})
}

func staleIfError(t *testing.T, rdb redis.UniversalClient) {
	ns := namespace(t, rdb)
	var loads atomic.Int32
	var fails atomic.Bool
	load := func(context.Context, int) (user, error) {
		if n := int(loads.Add(1)); !fails.Load() {
			return user{Version: n}, nil
		}
		return user{}, errors.New("down")
	}
	o := cacheaside.Options{Early: earlyrefresh.Never, StaleIfError: time.Hour, RenewThrottle: time.Hour, RedisTimeout: patient}
	a := must[int, user](t)(cacheaside.New(ns, load, o))
	b := must[int, user](t)(cacheaside.New(ns, load, o))
	ctx := t.Context()
	a.Get(ctx, 7)
	rdb.PExpire(ctx, ns.Prefix+"7", 30*time.Minute)
	fails.Store(true)
	for _, c := range []*cacheaside.Cache[int, user]{a, b, a} { // one load fails, and nobody tries again yet
		if u, err := c.Get(ctx, 7); u.Version != 1 || err != nil || loads.Load() != 2 {
			t.Errorf("got %+v, %v after %d loads", u, err, loads.Load())
		}
	}
}

func TestStaleIfErrorAndSoftTimeout(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var loads atomic.Int32
		var takes atomic.Int64
		var fails atomic.Bool
		load := func(context.Context, int) (user, error) {
			n := int(loads.Add(1))
			time.Sleep(time.Duration(takes.Load()))
			if fails.Load() {
				return user{}, errors.New("down")
			}
			return user{Version: n}, nil
		}
		o := cacheaside.Options{Early: earlyrefresh.Never, LoadSoftTimeout: 200 * time.Millisecond,
			StaleIfError: time.Hour, RenewThrottle: 10 * time.Second}
		a := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, o))
		b := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, o))
		ctx := t.Context()
		get := func(c *cacheaside.Cache[int, user], want int, within time.Duration) {
			t.Helper()
			begun := time.Now()
			if u, err := c.Get(ctx, 7); u.Version != want || err != nil || time.Since(begun) > within {
				t.Errorf("got %+v, %v after %v; want version %d within %v", u, err, time.Since(begun), want, within)
			}
		}
		get(a, 1, 0)

		time.Sleep(61 * time.Second)
		fails.Store(true)
		get(a, 1, 10*time.Millisecond) // the load fails: stale
		get(b, 1, 10*time.Millisecond) // nobody tries again yet
		if loads.Load() != 2 {
			t.Errorf("%d loads", loads.Load())
		}
		time.Sleep(11 * time.Second)
		fails.Store(false)
		takes.Store(int64(time.Second))
		get(a, 1, 200*time.Millisecond) // too slow: stale, and the load goes on
		get(b, 1, 200*time.Millisecond) // the other process loads: too slow as well
		time.Sleep(time.Second)
		get(b, 3, 10*time.Millisecond)
		get(a, 3, 10*time.Millisecond)
		if loads.Load() != 3 {
			t.Errorf("%d loads", loads.Load())
		}
		synctest.Wait()
	})
}

func theOriginForgot(t *testing.T, rdb redis.UniversalClient) {
	var gone atomic.Bool
	ns := namespace(t, rdb)
	c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
		if gone.Load() {
			return user{}, mayfly.ErrNotFound
		}
		return user{Version: 1}, nil
	}, cacheaside.Options{StaleWhile: time.Hour, RedisTimeout: patient}))
	c.Get(t.Context(), 7)
	gone.Store(true)
	rdb.PExpire(t.Context(), ns.Prefix+"7", 30*time.Minute) // stale
	c.Get(t.Context(), 7)
	expect.Eventually(t, "the stale copy of what no longer exists goes", func() bool { return !exists(t, rdb, ns.Prefix+"7") })
}

// The loader may change the previous value: what was stored stays as it is.
func TestThePreviousValueIsTheLoadersOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		loads := 0
		c := must[int, user](t)(cacheaside.NewEntry(namespace(t, redistest.Start(t).Client()), func(_ context.Context, _ int, previous *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
			if loads++; previous == nil {
				return cacheaside.Loaded[user]{Value: user{Name: "right"}}, nil
			}
			previous.Value.Name = "scratch"
			return cacheaside.Loaded[user]{NotModified: true}, nil
		}, cacheaside.Options{StaleWhile: time.Hour}))
		c.Get(t.Context(), 1)
		time.Sleep(70 * time.Second)
		c.Get(t.Context(), 1) // stale, and renewed
		time.Sleep(time.Second)
		if u, err := c.Get(t.Context(), 1); u.Name != "right" || err != nil || loads != 2 {
			t.Errorf("%+v, %v after %d loads", u, err, loads)
		}
	})
}

// The bytes under a renewal's lock are never taken for a value.
func TestALockIsNoValue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ns := namespace(t, srv.Client())
		fails := false
		c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			if fails {
				return user{}, errors.New("down")
			}
			return user{Name: "right"}, nil
		}, cacheaside.Options{Early: earlyrefresh.Never, StaleIfError: time.Hour, LoadTimeout: 3 * time.Second}))
		c.Get(t.Context(), 1)
		full, _ := ns.FullKey(1)
		raw, _ := srv.Get(full)
		_, h, _ := record.Parse([]byte(raw))
		time.Sleep(70 * time.Second)
		fails = true
		srv.Set(lease.LockName(full, h.ID[:]), `{"Name":"the lock"}`)
		if u, err := c.Get(t.Context(), 1); u.Name != "right" || err != nil {
			t.Errorf("%+v, %v", u, err)
		}
	})
}
