package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/check"
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
	looked time.Time     // when Redis was asked for that
	seen   sight[V]      // what that is worth to this cache
	draw   float64       // whether that is due is drawn once, before it is known for sure
	copied *record.ID    // what is to be renewed is a copy of this fill, and Redis has yet to be asked; nil: it was
	alone  bool          // Redis cannot be asked: load, and do not store
	apart  bool          // what Redis has may be older than a removal that failed, and so may what a call brings that has asked Redis
	ends   time.Time     // when what was found will be gone from Redis; zero if that is not known
	spent  time.Duration // of RedisTimeout
	begun  time.Time     // the flight
	behind record.ID     // whose load it waits for
	since  time.Time     // when that was first seen
	past   bool          // that load has ended, and brought nothing
}

// fallback reports whether the value that was found is served if the load fails, and must stay until the load ends.
func (l *loading[K, V]) fallback() bool { return l.seen.standing == fallback }

// comparable reports whether there is something for the loader to compare with.
func (l *loading[K, V]) comparable() bool { return !l.seen.negative && l.seen.standing != unusable }

// previous is what the loader is shown: nil if there is nothing to compare with. Its value is the loader's own, since a caller may have what was
// found already.
func (l *loading[K, V]) previous() *Entry[V] {
	if !l.c.compares || !l.comparable() {
		return nil
	}
	v, err := l.c.value(l.found, true)
	if err != nil {
		return nil
	}
	e := l.seen.entry
	e.Value = v
	return &e
}

// outcome is what a flight brings, besides its error.
type outcome[V any] struct {
	entry Entry[V]
	again bool // nothing: all look again
}

// errResting says that a renewal failed recently and it is too early to try again.
var errResting = errors.New("the load failed lately")

// errAbandoned says that a load was ended because all its callers had left.
var errAbandoned = fmt.Errorf("nobody waits for the load any more: %w", context.Canceled)

// errEnded says that the call that was to load a key ended before that.
var errEnded = errors.New("the call that was to load it panicked, or called runtime.Goexit")

// fail lands the flight with an error for all waiters.
func (l *loading[K, V]) fail(err error) { l.flight.Land(outcome[V]{}, err) }

// land lands the flight with what was loaded. kept says that it was stored in its place after the last waiter had joined, so nobody
// has deleted the key since it was loaded. Otherwise only calls that began before the load get it.
func (l *loading[K, V]) land(got *loaded[V], kept bool) {
	if kept || got.err != nil && !errors.Is(got.err, mayfly.ErrNotFound) {
		l.flight.Land(got.outcome(), got.err)
		return
	}
	l.flight.LandEarly(got.outcome(), got.err)
}

// judge decides what may be done with what was found by a question sent at begun.
func (l *loading[K, V]) judge(ctx context.Context, begun time.Time) {
	l.looked = begun
	if l.seen = l.c.see(l.found, l.draw, l.copied != nil); l.seen.err != nil {
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.KindBackend, Outcome: mayfly.OutcomeFailed, Key: l.full, Err: l.seen.err})
	}
	if l.ends = (time.Time{}); l.found.Left > 0 {
		l.ends = begun.Add(l.found.Left)
	}
}

// fly brings one key's value and lands the flight with it. It is the whole protocol, once per key and process:
//
//	loading elsewhere   wait for it; if it fails, so does this flight; if its holder dies, the key is free within lease.TTL, and one
//	                    of the waiters loads next
//	absent, unusable    claim it; if somebody was faster, take that value or wait for that load
//	stale               claim its renewal, as the stale value must stay
//	claimed             load, with a heart beat; fill
//	held, alone         load without storing
//
// A Delete in the meantime takes the claim away: only calls that began before the load get the value. Repeated Deletes cannot delay a
// call for ever: once it has waited for LoadTimeout, the next Delete makes it load by itself. If one load takes that long, the call
// fails, because that is longer than a load may take. A load whose process died or gave it up does not count, since the next load is
// no slower for it.
func (l *loading[K, V]) fly(caller context.Context) {
	defer l.fail(flight.ErrGoexit) // has no effect if it has landed: codecs and observers run here too
	ctx, cancel := l.c.works.On(caller)
	defer cancel()
	l.begun = time.Now()
	for !l.steps(ctx) {
	}
}

// steps takes steps for at most LoadTimeout, not counting the load that they end with, and reports whether the flight has landed. If
// not, it has waited for somebody else's load.
func (l *loading[K, V]) steps(ctx context.Context) (landed bool) {
	wait, cancel := context.WithTimeoutCause(ctx, l.c.opt.LoadTimeout, mayfly.ErrLoadTimeout)
	defer cancel()
	landed, l.past = !l.waitOverdue(wait), false
	for !landed && !l.past {
		landed = l.step(ctx, wait)
	}
	return landed
}

// step takes one step, and reports whether the flight has landed.
func (l *loading[K, V]) step(ctx, wait context.Context) (landed bool) {
	c := l.c
	if !l.alone && l.found.State == lease.Loading {
		return l.outwait(ctx)
	}
	permit, err := c.enter(ctx, wait, l)
	if err != nil {
		failAll([]*loading[K, V]{l}, err)
		return true
	}
	defer permit.Drop()
	if !l.turn() {
		giveBack(&permit)
		return true
	}
	if l.outdated() && l.lookAgain(ctx) {
		giveBack(&permit)
		return l.landIfServable()
	}
	if l.unstorable() {
		l.loadAlone(ctx, &permit)
		return true
	}
	a := c.guard.Ask(ctx, []lease.Want{l.want()})[0]
	l.spent += a.Spent
	switch {
	case a.Standing == lease.Mine:
		l.loadAndFill(ctx, &permit, a.Claim)
		return true
	case a.Standing == lease.Void:
		l.loadAlone(ctx, &permit)
		return true
	}
	giveBack(&permit)
	if a.Standing != lease.Theirs {
		return l.turnTo(ctx, a)
	}
	if l.fallback() {
		a := c.guard.Outwait(ctx, wait, l.want(), nil)
		l.spent = 0 // Redis has answered meanwhile
		return l.turnTo(ctx, a)
	}
	l.found = a.Found
	return false
}

// lookAgain looks the key up again, and reports whether it has changed since.
func (l *loading[K, V]) lookAgain(ctx context.Context) (changed bool) {
	l.flight.Reads()
	begun := time.Now()
	f, err := l.c.guard.Look(ctx, l.full, true)
	return l.sees(ctx, f, err, begun)
}

// sees judges what a second look found, and reports whether it has changed since the first.
func (l *loading[K, V]) sees(ctx context.Context, f lease.Found, err error, begun time.Time) (changed bool) {
	if err != nil {
		l.c.tell.Backend(ctx, l.full, err)
		l.alone = true
		return false
	}
	was := l.found
	l.found = f
	l.judge(ctx, begun)
	return string(f.Raw) != string(was.Raw)
}

// want is what l needs of its key.
func (l *loading[K, V]) want() lease.Want {
	return lease.Want{Key: l.full, Seen: l.found, Renew: l.fallback(), WithTTL: l.c.askTTL, Spent: l.spent, Reading: l.flight.Reads}
}

// turnTo goes on without a claim, and reports whether the flight has landed.
func (l *loading[K, V]) turnTo(ctx context.Context, a lease.Acquired) (landed bool) {
	l.tellWait(ctx, a)
	switch a.Standing {
	case lease.Changed:
		l.found = a.Found
		l.judge(ctx, time.Now())
		return l.landIfServable()
	case lease.Resting:
		l.fail(errResting)
		return true
	case lease.Late: // it takes longer than a load may take
		l.fail(a.Err)
		return true
	case lease.Ruined:
		l.fail(fmt.Errorf("%w: %s", mayfly.ErrFailedElsewhere, a.Failure.Text))
		return true
	case lease.Down:
		l.c.unsure(ctx, l.full, a.Claimed)
		l.alone = true
	}
	return false
}

// tellWait reports how a wait for somebody else's load ended.
func (l *loading[K, V]) tellWait(ctx context.Context, a lease.Acquired) {
	if a.Waited == 0 || l.fallback() {
		return
	}
	switch a.Standing {
	case lease.Changed:
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeOK, Key: l.full, Took: a.Waited})
	case lease.Late:
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeTimedOut, Key: l.full, Took: a.Waited, Err: a.Err})
	case lease.Ruined:
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeFailed, Key: l.full, Took: a.Waited, Err: errors.New(a.Failure.Text)})
	}
}

// unsure reports that Redis could not be asked. A claim whose outcome is unknown is given up in the background.
func (c *Cache[K, V]) unsure(ctx context.Context, key string, a lease.Claimed) {
	c.tell.Backend(ctx, key, a.Err)
	if a.Claim != nil {
		c.works.More()
		go func() {
			defer c.works.Done()
			ctx, cancel := c.works.On(ctx)
			defer cancel()
			ctx, cancelLast := c.works.Last(ctx)
			defer cancelLast()
			a.Claim.Release(ctx) // nothing is lost if this fails too: the lease ends by itself
		}()
	}
}

// landIfServable lands the flight if what was found in the meantime can be served.
func (l *loading[K, V]) landIfServable() bool {
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

// loadAlone loads what cannot be stored.
func (l *loading[K, V]) loadAlone(ctx context.Context, permit *admission.Permit) loaded[V] {
	got := l.run(ctx, permit, nil)
	if got.runs != nil {
		l.c.failed(ctx, []*loading[K, V]{l}, nil, got.runs, got.err)
	}
	l.landUnstored(ctx, &got)
	return got
}

// landUnstored lands the flight with what was loaded without a claim.
func (l *loading[K, V]) landUnstored(ctx context.Context, got *loaded[V]) {
	if !l.alone && got.err == nil && !got.NoStore { // the key is held
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.KindFill, Outcome: mayfly.OutcomeRefused, Key: l.full})
	}
	l.land(got, false)
}

// loaded is a load that has ended.
type loaded[V any] struct {
	Loaded[V]
	err  error
	cost time.Duration
	runs <-chan flight.Result[struct{}] // where a load that was given up ends; else nil
}

func (l loaded[V]) outcome() outcome[V] {
	return outcome[V]{entry: Entry[V]{Value: l.Value, Outcome: mayfly.OutcomeMiss}}
}

// loadAndFill loads under a claim, stores, and lands.
func (l *loading[K, V]) loadAndFill(ctx context.Context, permit *admission.Permit, claim *lease.Claim) loaded[V] {
	claims := []*lease.Claim{claim}
	got := []loaded[V]{l.run(ctx, permit, claims)}
	l.c.store(ctx, []*loading[K, V]{l}, got, claims)
	return got[0]
}

// run runs the loader of one key, and gives the permit back.
func (l *loading[K, V]) run(ctx context.Context, permit *admission.Permit, claims []*lease.Claim) loaded[V] {
	var answer Loaded[V]
	l.flight.Reads()
	var loader stay
	cost, runs, err := l.c.supervise(permit.Inside(ctx), watch{l.flight.Abandoned(), claims, []time.Time{l.ends}}, func(ctx context.Context) (err error) {
		defer loader.left()
		a, err := l.loader(ctx, l.key, l.previous())
		if err == nil {
			answer = a
		}
		return err
	})
	got := loaded[V]{err: err, cost: cost, runs: runs}
	if err == nil {
		got.Loaded, got.err = l.take(answer)
	}
	got.err, _ = l.c.notFound(got.err)
	leave(permit, &loader, ended(got.err), runs != nil)
	l.c.tellLoad(ctx, l.full, 1, got.err, cost)
	return got
}

// take returns the loader's answer, or the previous value if the loader says that it is still right. It refuses invalid answers.
func (l *loading[K, V]) take(answer Loaded[V]) (Loaded[V], error) {
	if answer.NotModified {
		if !l.comparable() {
			return answer, errors.New("the loader answered NotModified, and there was no previous value")
		}
		v, err := l.c.value(l.found, true) // callers and the loader may have changed theirs
		if err != nil {
			return answer, err
		}
		answer.Value = v
	}
	if answer.TTL != 0 {
		return answer, check.TTL("Loaded.TTL", answer.TTL)
	}
	return answer, nil
}

func (c *Cache[K, V]) tellLoad(ctx context.Context, key string, n int, err error, cost time.Duration) {
	e := mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeOK, Key: key, N: n, Took: cost}
	switch {
	case errors.Is(err, mayfly.ErrNotFound):
		e.Outcome = mayfly.OutcomeNegative
	case errors.Is(err, mayfly.ErrLoadTimeout):
		e.Outcome, e.Err = mayfly.OutcomeTimedOut, err
	case err != nil:
		e.Outcome, e.Err = mayfly.OutcomeFailed, err
	}
	c.tell(ctx, e)
}
