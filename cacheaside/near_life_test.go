package cacheaside_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

func TestEarlyRefreshOfALocalHit(t *testing.T) {
	var asked []time.Duration // ttl, remaining and cost of each call
	policy := policyFunc(func(ttl, remaining, cost time.Duration, draw float64) bool {
		asked = append(asked, ttl, remaining, cost)
		return remaining < 20*time.Second
	})
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, func(ctx context.Context, key int) (user, error) {
			time.Sleep(100 * time.Millisecond)
			return n.load(ctx, key)
		}, cacheaside.Options{Early: policy}))
		got(t, c, 1)
		got(t, c, 1)
		asked = nil
		time.Sleep(20 * time.Second)
		got(t, c, 1)
		if len(asked) != 0 {
			t.Errorf("asked in the first half of its life: %v", asked)
		}
		time.Sleep(15 * time.Second)
		if sent := n.sent(func() { got(t, c, 1) }); sent != 0 {
			t.Errorf("a local hit that is not due sent %d commands", sent)
		}
		if len(asked) != 3 || asked[0] != time.Minute || asked[1] > 25*time.Second || asked[1] < 24*time.Second || asked[2] != 100*time.Millisecond {
			t.Errorf("asked with %v", asked)
		}
		time.Sleep(6 * time.Second)
		begun := time.Now()
		for range 5 {
			got(t, c, 1)
		}
		if time.Since(begun) != 0 {
			t.Error("a reader waited for the renewal")
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		got(t, c, 2)
		if n.loads.Load() != 2 {
			t.Errorf("%d loads", n.loads.Load())
		}
	})
}

type policyFunc func(ttl, remaining, cost time.Duration, draw float64) bool

func (f policyFunc) Due(ttl, remaining, cost time.Duration, draw float64) bool {
	return f(ttl, remaining, cost, draw)
}

func TestAStaleValueIsNotLocal(t *testing.T) {
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{
			Early: earlyrefresh.Never, StaleWhile: time.Minute,
		}))
		got(t, c, 1)
		got(t, c, 1)
		time.Sleep(59 * time.Second)
		e, _, _ := c.Lookup(t.Context(), 7)
		if e.Outcome != mayfly.OutcomeHitLocal || e.Fresh > time.Second || e.TTL < time.Minute || e.Age < 59*time.Second {
			t.Errorf("Lookup: %+v", e)
		}
		time.Sleep(time.Second)
		if s := source(t, c); s != mayfly.OutcomeStale {
			t.Errorf("past its TTL the source is %v", s)
		}
		got(t, c, 1) // and has it renewed
		if s := source(t, c); s != mayfly.OutcomeHitRedis {
			t.Errorf("after the renewal the source is %v", s)
		}
		got(t, c, 2)
	})
}

func TestARememberedMissIsLocalToo(t *testing.T) {
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, func(context.Context, int) (user, error) {
			n.loads.Add(1)
			return user{}, mayfly.ErrNotFound
		}, cacheaside.Options{MissTTL: 10 * time.Second}))
		get := func() {
			t.Helper()
			if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
				t.Errorf("got error %v", err)
			}
			synctest.Wait()
		}
		get()
		get()
		if sent := n.sent(func() {
			get()
			if _, _, err := c.Lookup(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
				t.Errorf("Lookup: %v", err)
			}
			if m, err := c.GetMany(t.Context(), []int{7}); len(m) != 0 || err != nil {
				t.Errorf("GetMany: %v, %v", m, err)
			}
		}); sent != 0 {
			t.Errorf("%d commands were sent", sent)
		}
		time.Sleep(11 * time.Second)
		get()
		if n.loads.Load() != 2 {
			t.Errorf("%d loads", n.loads.Load())
		}
	})
}

// A copy ends with its value, even if the push of that end is lost.
func TestACopyLivesForTheTimeLeft(t *testing.T) {
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{Early: earlyrefresh.Never}))
		got(t, c, 1)
		time.Sleep(n.ns.TTL - time.Second)
		got(t, c, 1)
		n.srv.DropInvalidations(true)
		defer n.srv.DropInvalidations(false)
		if s := source(t, c); s != mayfly.OutcomeHitLocal {
			t.Fatalf("there is no copy: source %v", s)
		}
		time.Sleep(time.Second) // shorter than the tier trusts a silent link
		if s := source(t, c); s == mayfly.OutcomeHitLocal {
			t.Errorf("past the value's end: source %v", s)
		}
	})
}
