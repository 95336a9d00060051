package cacheaside

import (
	"context"
	"errors"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// loading is one key on its way from a miss to a value.
type loading[K comparable, V any] struct {
	c      *Cache[K, V]
	key    K
	full   string
	began  flight.Moment // the call
	loader loader[K, V]
	flight *flight.Flight[outcome[V]] // those who wait; nil before it is joined

	found  lease.Found   // what the key held
	seen   sight[V]      // what that is worth to this cache
	copied *record.ID    // what is to be renewed is a copy of this fill, and Redis has yet to be asked; nil: it was
	alone  bool          // Redis cannot be asked: load, and do not store
	ends   time.Time     // when what was found will be gone from Redis; zero if that is not known
	spent  time.Duration // of RedisTimeout
}

// fallback reports whether what was found is served if the load fails, and stays until then.
func (l *loading[K, V]) fallback() bool { return l.seen.standing == fallback }

// comparable reports whether there is something for the loader to compare with.
func (l *loading[K, V]) comparable() bool { return !l.seen.negative && l.seen.standing != unusable }

// previous is what the loader is shown, its own to change: nil if there is nothing to compare with.
func (l *loading[K, V]) previous() *Entry[V] {
	if !l.comparable() {
		return nil
	}
	e := l.seen.entry
	return &e
}

// outcome is what a flight brings beside its error.
type outcome[V any] struct {
	entry Entry[V]
	again bool // nothing: all look again
}

// errResting says that a renewal failed lately, and that nobody tries again yet.
var errResting = errors.New("the load failed lately in another process")

// errBusy says that too many loads run without Redis to shield the origin.
var errBusy = errors.New("redis cannot be asked, and too many loads run already")

// fail lands the flight with an error, which is one for all.
func (l *loading[K, V]) fail(err error) { l.flight.Land(outcome[V]{}, err) }

// land lands the flight with what was loaded. kept says that it was stored where it belongs, after the last who waits had joined:
// then nobody has deleted the key since it was loaded. Else only those get it whose calls began before that.
func (l *loading[K, V]) land(got *loaded[V], kept bool) {
	if kept || got.err != nil && !errors.Is(got.err, mayfly.ErrNotFound) {
		l.flight.Land(got.outcome(), got.err)
		return
	}
	l.flight.LandEarly(got.outcome(), got.err)
}

// judge sees what was found, in a reply to what was asked at begun.
func (l *loading[K, V]) judge(ctx context.Context, begun time.Time) {
	if l.seen = l.c.see(l.found); l.seen.err != nil {
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.Backend, Outcome: mayfly.Failed, Key: l.full, Err: l.seen.err})
	}
	if l.ends = (time.Time{}); l.found.Left > 0 {
		l.ends = begun.Add(l.found.Left)
	}
}

// fly brings one key's value and lands the flight with it. It is the whole protocol, once per key and process:
//
//	loading elsewhere   wait for it; if its holder dies the key is free within lease.TTL
//	absent, unusable    claim it; whoever was faster has the value, or loads it
//	stale               claim its renewal, as the stale value must stay
//	claimed             load, with a heart beat; fill
//	held, alone         load, and do not store
//
// Someone who deletes the key meanwhile takes the claim away: the value goes to those whose calls began before it was loaded,
// and to nobody else. How long a call can take does not depend on how often that happens: after Load.Timeout of waiting for
// others it loads by itself.
func (l *loading[K, V]) fly(caller context.Context) {
	c := l.c
	ctx, cancel := c.works.On(caller)
	defer cancel()
	wait, cancel := context.WithTimeoutCause(ctx, c.opt.Load.Timeout, ErrLoadTimeout)
	defer cancel()
	usable := func(now lease.Found) bool { return c.see(now).standing != unusable }
	for !l.alone {
		a := c.guard.Acquire(ctx, wait, l.want(), usable)
		if l.spent += a.Spent; a.Waited > 0 {
			l.spent = 0 // Redis has answered meanwhile
		}
		if a.Standing == lease.Mine {
			l.loadAndFill(ctx, a.Claim)
			return
		}
		if l.turnTo(ctx, a) {
			return
		}
	}
	l.loadAlone(ctx)
}

// want is what l needs of its key.
func (l *loading[K, V]) want() lease.Want {
	return lease.Want{Key: l.full, Seen: l.found, Renew: l.fallback(), WithTTL: l.c.askTTL, Spent: l.spent, Reading: l.flight.Reads}
}

// turnTo goes on without a claim, and reports whether that was the end of the flight.
func (l *loading[K, V]) turnTo(ctx context.Context, a lease.Acquired) (landed bool) {
	l.tellWait(ctx, a)
	switch a.Standing {
	case lease.Changed:
		l.found = a.Found
		return l.landIfServable(ctx)
	case lease.Void:
		l.loadAlone(ctx)
		return true
	case lease.Resting:
		l.fail(errResting)
		return true
	case lease.Late:
		if l.fallback() || errors.Is(a.Err, mayfly.ErrClosed) {
			l.fail(a.Err)
			return true
		}
		l.alone = true // the other takes longer than a load may take: so do we
	case lease.Down:
		l.c.unsure(ctx, l.full, a.Claimed)
		l.alone = true
	}
	return false
}

// tellWait tells how a wait for another's load ended.
func (l *loading[K, V]) tellWait(ctx context.Context, a lease.Acquired) {
	if a.Waited == 0 || l.fallback() {
		return
	}
	switch a.Standing {
	case lease.Changed:
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.Wait, Outcome: mayfly.OK, Key: l.full, Took: a.Waited})
	case lease.Late:
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.Wait, Outcome: mayfly.TimedOut, Key: l.full, Took: a.Waited, Err: a.Err})
	}
}

// unsure tells that Redis could not be asked, and gives a claim whose outcome is unknown up behind the callers' backs.
func (c *Cache[K, V]) unsure(ctx context.Context, key string, a lease.Claimed) {
	c.tell.Backend(ctx, key, a.Err)
	if a.Claim != nil {
		c.works.More()
		go func() {
			defer c.works.Done()
			ctx, cancel := c.works.On(ctx)
			defer cancel()
			a.Claim.Release(ctx) // nothing is lost if this fails too: the lease ends by itself
		}()
	}
}

// landIfServable lands the flight if what was found meanwhile is good.
func (l *loading[K, V]) landIfServable(ctx context.Context) bool {
	l.judge(ctx, time.Now())
	switch {
	case !l.seen.servable():
		return false
	case l.seen.negative:
		l.flight.LandEarly(outcome[V]{}, mayfly.ErrNotFound)
	default:
		l.flight.LandEarly(outcome[V]{entry: l.seen.entry}, nil)
	}
	return true
}

// loadAlone loads what cannot be stored. Where that is so because Redis is gone, the number of such loads is bounded.
func (l *loading[K, V]) loadAlone(ctx context.Context) {
	if l.alone {
		if err := l.c.enterUnguarded(ctx); err != nil {
			l.fail(err)
			return
		}
		defer func() { <-l.c.unguarded }()
	}
	got := l.run(ctx, nil)
	if got.err == nil && got.NotModified {
		got.Value = l.seen.entry.Value
	}
	l.land(&got, false)
}

// enterUnguarded waits for a turn among the loads that run without Redis.
func (c *Cache[K, V]) enterUnguarded(ctx context.Context) error {
	select {
	case c.unguarded <- struct{}{}:
		return nil
	default:
	}
	turn := time.NewTimer(c.opt.Load.Timeout)
	defer turn.Stop()
	select {
	case c.unguarded <- struct{}{}:
		return nil
	case <-turn.C:
		c.tell(ctx, mayfly.Event{Kind: mayfly.Load, Outcome: mayfly.Dropped, Err: errBusy})
		return errBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// loaded is a load that has ended.
type loaded[V any] struct {
	Loaded[V]
	err  error
	cost time.Duration
}

func (l loaded[V]) outcome() outcome[V] {
	return outcome[V]{entry: Entry[V]{Value: l.Value, Source: SourceOrigin}}
}

// loadAndFill loads under a claim, stores, and lands.
func (l *loading[K, V]) loadAndFill(ctx context.Context, claim *lease.Claim) loaded[V] {
	claims := []*lease.Claim{claim}
	got := []loaded[V]{l.run(ctx, claims)}
	l.c.store(ctx, []*loading[K, V]{l}, got, claims)
	return got[0]
}

// run runs the loader of one key.
func (l *loading[K, V]) run(ctx context.Context, claims []*lease.Claim) loaded[V] {
	var answer Loaded[V]
	l.flight.Reads()
	cost, err := l.c.supervise(ctx, watch{l.flight.Abandoned(), claims, l.ends}, func(ctx context.Context) (err error) {
		a, err := l.loader(ctx, l.key, l.previous())
		if err == nil {
			answer = a
		}
		return err
	})
	got := loaded[V]{err: err, cost: cost}
	if err == nil {
		got.Loaded = answer
		got.err = l.check(answer)
	}
	got.err, _ = l.c.notFound(got.err)
	l.c.tellLoad(ctx, l.full, 1, got.err, cost)
	return got
}

// check refuses what no loader may answer.
func (l *loading[K, V]) check(answer Loaded[V]) error {
	if answer.NotModified && !l.comparable() {
		return errors.New("the loader answered NotModified, and there was no previous value")
	}
	if answer.TTL != 0 {
		return mayfly.CheckTTL("Loaded.TTL", answer.TTL)
	}
	return nil
}

func (c *Cache[K, V]) tellLoad(ctx context.Context, key string, n int, err error, cost time.Duration) {
	e := mayfly.Event{Kind: mayfly.Load, Outcome: mayfly.OK, Key: key, N: n, Took: cost}
	switch {
	case errors.Is(err, mayfly.ErrNotFound):
		e.Outcome = mayfly.Negative
	case errors.Is(err, ErrLoadTimeout):
		e.Outcome, e.Err = mayfly.TimedOut, err
	case err != nil:
		e.Outcome, e.Err = mayfly.Failed, err
	}
	c.tell(ctx, e)
}
