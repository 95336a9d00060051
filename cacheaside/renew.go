package cacheaside

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
)

// quietFor is how long a process that lost the race for a renewal does not try again. While one process loads, many readers find the
// renewal due, and each of them would ask Redis for a lock that is taken.
const quietFor = lease.TTL / 4

// renew renews a value in the background, unless somebody does so already or there is no room, here or at the origin. It never waits.
func (c *Cache[K, V]) renew(ctx context.Context, l loading[K, V]) {
	if c.quiet.Has(l.full) {
		return
	}
	select {
	case c.renewing <- struct{}{}:
	default:
		c.tell(ctx, mayfly.Event{Kind: mayfly.KindRefresh, Outcome: mayfly.OutcomeDropped, Key: l.full})
		return
	}
	permit, ok := admission.Of(c.origin).Try(ctx)
	if !ok { // the origin has enough to do with what callers wait for
		c.tell(ctx, mayfly.Event{Kind: mayfly.KindRefresh, Outcome: mayfly.OutcomeDropped, Key: l.full})
		<-c.renewing
		return
	}
	l.flight, ok = c.flights.Lead(l.full)
	if ok && c.works.Start(func() {
		defer func() { <-c.renewing }()
		defer permit.Drop()
		l.renewNow(ctx, &permit)
	}) {
		return
	}
	if ok {
		l.fail(mayfly.ErrClosed)
	}
	giveBack(&permit)
	<-c.renewing
}

// renewNow loads a newer value under the lock of the one that was found, and replaces that. If the old value ends meanwhile, callers
// that miss the key wait for this flight, and look again if it brings nothing.
func (l *loading[K, V]) renewNow(caller context.Context, permit *admission.Permit) {
	defer l.fail(flight.ErrGoexit) // has no effect if it has landed
	c := l.c
	ctx, cancel := c.works.On(caller)
	defer cancel()
	e := mayfly.Event{Kind: mayfly.KindRefresh, Outcome: mayfly.OutcomeOK, Key: l.full}
	var a lease.Claimed
	if l.copied == nil || l.stillThere(ctx) {
		a = c.guard.Renew(ctx, l.full, l.found)
	}
	switch {
	case a.Err != nil:
		c.unsure(ctx, l.full, a)
		e.Outcome, e.Err = mayfly.OutcomeFailed, a.Err
	case a.Claim == nil: // another process does it, did it, or failed lately
		e.Outcome = mayfly.OutcomeRefused
	}
	if e.Outcome != mayfly.OutcomeOK {
		giveBack(permit)
		c.quiet.Add(l.full, quietFor)
		l.flight.Land(outcome[V]{again: true}, nil)
		c.tell(ctx, e)
		return
	}
	got := l.loadAndFill(ctx, permit, a.Claim)
	if got.err != nil {
		e.Outcome, e.Err = mayfly.OutcomeFailed, got.err
		c.quiet.Add(l.full, quietFor)
	}
	e.Took = got.cost
	c.tell(ctx, e)
}

// stillThere reads from Redis what a copy was made of, and reports false if that has changed.
func (l *loading[K, V]) stillThere(ctx context.Context) bool {
	begun := time.Now()
	f, err := l.c.guard.Look(ctx, l.full, true)
	l.spent += time.Since(begun)
	if err != nil {
		l.c.tell.Backend(ctx, l.full, err)
		return false
	}
	l.found = f
	l.judge(ctx, begun)
	return f.State == lease.Present && f.Header.ID == *l.copied && l.seen.servable() && !l.seen.negative
}
