package httpcache

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// filling is the right to store an answer, and those who wait for it.
type filling struct {
	claim  *lease.Claim // nil: there is none,
	over   bool         // but what the slot holds may be replaced
	shared bool         // others may wait: land tells them what became of it
	land   func(outcome)
}

// wanted reports whether anybody beside the client wants the answer.
func (f filling) wanted() bool { return f.stores() || f.shared }

// stores reports whether an answer can be stored.
func (f filling) stores() bool { return f.claim != nil || f.over }

// nobody is who waits for a request on its own.
func nobody(outcome) {}

// alone asks the handler for this request only. What is remembered as not fit for others may have become so.
func (x *exchange) alone() {
	fill := filling{land: nobody}
	switch {
	case x.s.unasked != nil || x.s.flooded || x.r.Header["Range"] != nil:
	case x.r.Method == http.MethodHead: // it may learn that what is stored is still good
		fill.over = x.s.response != nil
	case x.s.pass:
		fill.over = true
	case x.s.response != nil && x.status.Fwd == rfc9111.FwdRequest: // somebody wants it newer than fresh: so it may be, for all
		ctx, cancel := x.cache.within(x.r.Context(), x.asked)
		defer cancel()
		fill.claim = x.cache.guard.Renew(ctx, x.s.slot, x.s.found).Claim
	}
	x.forward(fill)
}

// lead asks the handler for all who wait on f, unless another process does: then it waits for that. It reports false if
// the request has not been answered, and is to look again.
func (x *exchange) lead(f *flight.Flight[outcome]) (answered bool) {
	landed := false
	land := func(o outcome) {
		if !landed {
			landed = true
			f.Land(o, nil)
		}
	}
	handed := false // to who stores the answer
	defer func() {
		if !handed {
			land(outcome{})
		}
	}()
	if x.s.unasked != nil || x.s.flooded { // those of this process share the answer all the same
		handed = true
		x.forward(filling{shared: true, land: once(f)})
		return true
	}
	claim, next := x.claim()
	switch next {
	case ask:
		handed = true
		x.forward(filling{claim: claim, shared: true, land: once(f)})
		return true
	case lookAgain:
		land(outcome{again: true})
		return false
	case useStale:
		land(outcome{response: x.s.response})
		x.serveStale(errResting)
		return true
	}
	land(outcome{})
	if x.r.Context().Err() == nil {
		x.alone()
	}
	return true
}

// once lands f, the first time it is called.
func once(f *flight.Flight[outcome]) func(outcome) {
	landing := make(chan struct{}, 1)
	landing <- struct{}{}
	return func(o outcome) {
		select {
		case <-landing:
			f.Land(o, nil)
		default:
		}
	}
}

// step is what follows an attempt to claim.
type step uint8

const (
	ask       step = iota // the handler, with the claim or, if Redis cannot be asked, without
	lookAgain             // somebody else's answer is there by now, or none
	useStale              // the handler failed lately, and what there is may stand in
	askAlone              // the other takes too long
)

// errResting says that a renewal failed lately, and that nobody tries again yet.
var errResting = errors.New("the handler failed lately")

// claim asks for the right to store the answer.
func (x *exchange) claim() (*lease.Claim, step) {
	c, ctx := x.cache, x.r.Context()
	seen := x.s.found
	if x.s.state() == lease.Held {
		return nil, askAlone
	}
	if x.s.state() == lease.Loading {
		return nil, x.await(c.opt.Shared.Wait, func(f lease.Found) bool { return f.State != lease.Loading })
	}
	var a lease.Claimed
	within, cancel := c.within(ctx, x.asked)
	defer cancel()
	if x.s.response != nil {
		a = c.guard.Renew(within, x.s.slot, seen)
	} else {
		a = c.guard.Claim(within, x.s.slot, seen)
	}
	switch {
	case a.Err != nil:
		if ctx.Err() == nil {
			c.tellBackend(ctx, x.s.slot, a.Err)
		}
		c.release(ctx, a.Claim)
		x.s.unasked = a.Err
		return nil, ask
	case a.Claim != nil:
		return a.Claim, ask
	case x.s.response == nil && a.State == lease.Loading:
		return nil, x.await(c.opt.Shared.Wait, func(f lease.Found) bool { return f.State != lease.Loading })
	case x.s.response == nil:
		return nil, lookAgain
	case a.State == lease.Held && x.s.response.policy.OnError(x.q, time.Now()):
		return nil, useStale
	case a.State == lease.Held:
		return nil, askAlone
	}
	head := string(seen.Raw) // which a renewal that fails leaves as it is: after a lease's life it is time to ask again
	return nil, x.await(lease.TTL, func(f lease.Found) bool { return f.State != lease.Present || string(f.Raw) != head })
}

// state is what the slot held.
func (s *sight) state() lease.State { return s.found.State }

// await waits for another process to bring what it has claimed, for as long as a request may wait in all.
func (x *exchange) await(most time.Duration, until func(lease.Found) bool) step {
	c, begun := x.cache, time.Now()
	left := c.opt.Shared.Wait - begun.Sub(x.begun)
	wait, cancel := context.WithTimeout(x.r.Context(), min(most, left))
	defer cancel()
	_, err := c.guard.Await(wait, x.s.slot, false, until)
	e := mayfly.Event{Kind: mayfly.Wait, Outcome: mayfly.OK, Key: x.s.slot, Took: time.Since(begun)}
	switch {
	case err == nil:
		c.tell(x.r.Context(), e)
		c.near.forget(x.s.slot) // a copy of what was there before, if the server's word is still on its way
		return lookAgain
	case wait.Err() != nil && most < left && x.r.Context().Err() == nil:
		return lookAgain
	case wait.Err() != nil:
		e.Outcome, e.Err = mayfly.TimedOut, err
		c.tell(x.r.Context(), e)
		return askAlone
	}
	c.tellBackend(x.r.Context(), x.s.slot, err)
	x.s.unasked = err
	return ask
}

// keep prolongs a claim while the handler runs, for at most as long as a handler may run for others.
func (c *Cache) keep(claim *lease.Claim) (stop func()) {
	if claim == nil {
		return func() {}
	}
	ends := time.Now().Add(c.opt.Shared.Timeout)
	var beat *time.Timer
	armed := make(chan struct{})
	beat = time.AfterFunc(lease.Beat, func() {
		<-armed
		c.works.Start(func() { claim.Keep(c.works.Context()) })
		if time.Now().Before(ends) {
			beat.Reset(lease.Beat)
		}
	})
	close(armed)
	return func() { beat.Stop() }
}

// release gives a claim up behind the client's back. Nothing is lost if that fails: the lease ends by itself.
func (c *Cache) release(ctx context.Context, claim *lease.Claim) {
	if claim != nil {
		c.behind(ctx, func(ctx context.Context) { claim.Release(ctx) })
	}
}

// rest gives a claim up because the handler failed: nobody tries again for a while, where there is something to go on with.
// The returned function waits until it is so.
func (c *Cache) rest(ctx context.Context, claim *lease.Claim) (wait func()) {
	done := make(chan struct{})
	if claim == nil || !c.behind(ctx, func(ctx context.Context) {
		defer close(done)
		claim.Rest(ctx, c.opt.Stale.Throttle)
	}) {
		close(done)
	}
	return func() { <-done }
}

// behind does something in Redis that no client has to wait for.
func (c *Cache) behind(ctx context.Context, do func(ctx context.Context)) (started bool) {
	ctx = context.WithoutCancel(ctx)
	return c.works.Start(func() {
		ctx, cancel := c.works.On(ctx)
		defer cancel()
		do(ctx)
	})
}
