package cacheaside_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/redistest"
)

// A cache counts what it does, whether somebody observes it or not, and as its observer counts it.
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
