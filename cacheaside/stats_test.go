package cacheaside_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// A cache counts what it does, with or without an observer, and as its observer counts it.
func TestStats(t *testing.T) {
	for _, observed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, srv := t.Context(), redistest.Start(t)
			ns := namespace(t, srv.Client())
			var counters mayfly.Counters
			if observed {
				ns.Observer = &counters
			}
			withLocal(t, &ns, mayfly.LocalOptions{})
			inRedis := ns
			inRedis.Local = nil
			down := errors.New("down")
			fails := func(_ context.Context, key int) (user, error) {
				switch key {
				case 404:
					return user{}, mayfly.ErrNotFound
				case 500:
					return user{}, down
				}
				return user{Version: key}, nil
			}
			o := cacheaside.Options{MissTTL: time.Minute, StaleWhile: time.Hour}
			near, far := must[int, user](t)(cacheaside.New(ns, fails, o)), must[int, user](t)(cacheaside.New(inRedis, fails, o))
			get := func(c *cacheaside.Cache[int, user], key int) { c.Get(ctx, key); synctest.Wait() }

			get(far, 1)   // loads
			get(far, 1)   // finds
			get(far, 404) // loads
			get(far, 404) // remembers
			get(far, 500) // fails
			get(near, 1)  // copies
			get(near, 1)  // has a copy
			get(near, 1)
			near.Lookup(ctx, 1)
			if got, want := near.Stats(), (cacheaside.Stats{Local: 3, Redis: 1}); got != want {
				t.Errorf("observed %v: with a local tier %+v, want %+v", observed, got, want)
			}
			time.Sleep(ns.TTL + time.Minute)
			get(far, 1) // is stale, and renewed
			get(far, 1) // finds
			want := cacheaside.Stats{Redis: 2, Stale: 1, Negative: 1, Missed: 2, Failed: 1, Loads: 4, LoadErrors: 1, Renewals: 1}
			if got := far.Stats(); got != want {
				t.Errorf("observed %v: %+v, want %+v", observed, got, want)
			}
			srv.Hang()
			get(far, 2)
			srv.Thaw()
			want.Bypassed, want.Loads, want.RedisErrors = 1, 5, 1
			if got := far.Stats(); got != want {
				t.Errorf("observed %v, Redis hung: %+v, want %+v", observed, got, want)
			}
			if observed {
				far, near := far.Stats(), near.Stats()
				for _, n := range counters.Snapshot() {
					if n.Kind == "read" && n.Outcome == mayfly.OutcomeHitRedis && n.Events != far.Redis+near.Redis ||
						n.Kind == "read" && n.Outcome == mayfly.OutcomeHitLocal && n.Events != near.Local ||
						n.Kind == "load" && n.Outcome == mayfly.OutcomeOK && n.Events != far.Loads-2 {
						t.Errorf("the observer counted %+v, the caches %+v and %+v", n, far, near)
					}
				}
			}
		})
	}
}

// A read that fails is counted and told, by whichever call.
func TestStatsCountReadsThatFail(t *testing.T) {
	const down, absent = 500, 404
	for _, batch := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var events expect.Events
			ns := namespace(t, redistest.Start(t).Client())
			ns.Observer = &events
			load := func(ctx context.Context, key int) (user, error) {
				switch {
				case key >= down:
					return user{}, errors.New("down")
				case key >= absent:
					return user{}, mayfly.ErrNotFound
				}
				<-ctx.Done()
				return user{}, ctx.Err()
			}
			c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
			if batch {
				c = must[int, user](t)(cacheaside.NewBatch(ns, func(ctx context.Context, keys []int) (map[int]user, error) {
					_, err := load(ctx, keys[0])
					return nil, err
				}, cacheaside.Options{}))
			}
			var want cacheaside.Stats
			check := func(what string, failed, missed uint64) {
				t.Helper()
				want.Failed += failed
				want.Missed += missed
				got := c.Stats()
				if got.Failed != want.Failed || got.Missed != want.Missed || got.Local+got.Redis+got.Stale+got.Negative+got.Bypassed != 0 {
					t.Errorf("batch %v, %s: %+v, want %+v", batch, what, got, want)
				}
				if n := events.Count(mayfly.KindRead, mayfly.OutcomeFailed); uint64(n) != want.Failed {
					t.Errorf("batch %v, %s: %d failures are told, want %d", batch, what, n, want.Failed)
				}
			}
			c.Get(t.Context(), down)
			check("a Get that fails", 1, 0)
			c.GetMany(t.Context(), []int{down, down + 1, down + 1})
			check("a GetMany that fails", 2, 0)
			c.GetMany(t.Context(), []int{absent, absent + 1})
			check("a GetMany of what is not there", 0, 2)
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			c.GetMany(short, []int{1, 2, 3})
			check("a GetMany whose ctx ends", 3, 0)
			c.Get(short, 4)
			check("a Get after that", 1, 0)
			c.Fetch(short, 4, func(context.Context) (user, error) { return user{}, nil })
			check("a Fetch after that", 1, 0)
			c.GetMany(short, []int{4, 5})
			check("a GetMany after that", 2, 0)
			c.Close(t.Context())
			c.Get(t.Context(), 6)
			check("a Get after Close", 1, 0)
			c.GetMany(t.Context(), []int{6, 7})
			check("a GetMany after Close", 2, 0)
		})
	}
}

// What a held key loads is counted as not stored, by Get and in lists.
func TestStatsCountWhatHoldKeepsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, srv := t.Context(), redistest.Start(t)
		c := must[int, user](t)(cacheaside.NewBatch(namespace(t, srv.Client()), func(_ context.Context, keys []int) (map[int]user, error) {
			found := make(map[int]user)
			for _, key := range keys {
				if key != 404 {
					found[key] = user{Version: key}
				}
			}
			return found, nil
		}, cacheaside.Options{Hold: time.Minute}))
		expect.OK(t, c.Delete(ctx, 1, 2, 404))
		for range 2 {
			_, err := c.Get(ctx, 1)
			expect.OK(t, err)
		}
		_, err := c.GetMany(ctx, []int{1, 2, 3, 404})
		expect.OK(t, err)
		if got := c.Stats().Refused; got != 4 {
			t.Errorf("%d loaded values were not stored because their keys are held, want 4", got)
		}
	})
}
