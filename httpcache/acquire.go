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

// filling is the right to store an answer, together with the requests that wait for the answer.
type filling struct {
	claim  *lease.Claim            // may be nil
	renews bool                    // the stored response stays usable, whatever the result
	over   bool                    // there is no claim, but the slot held a record when it was read: the answer may replace that record
	flight *flight.Flight[outcome] // the waiters' flight; nil: there are none
	beat   *beat                   // prolongs the claim
	passed <-chan lease.Found      // delivers the record that replaced the claim, which the answer may replace too; nil: none did
}

// stop stops prolonging the claim.
func (f filling) stop() { f.beat.stop() }

// wanted reports whether anybody beside the client wants the answer.
func (f filling) wanted() bool { return f.stores() || f.flight != nil }

// stores reports whether an answer can be stored.
func (f filling) stores() bool { return f.claim != nil || f.passed != nil || f.over }

// brings returns what the waiting flights wait for.
func (f filling) brings() (all []any) {
	if f.flight != nil {
		all = append(all, f.flight)
	}
	if f.claim != nil {
		all = append(all, f.claim.ID())
	}
	return all
}

// reads records that the handler is about to be called.
func (f filling) reads() {
	if f.flight != nil {
		f.flight.Reads()
	}
}

// closes marks the answer as about to be stored, and reports whether a waiter needs to know the result.
func (f filling) closes() (late bool) { return f.flight != nil && f.flight.Stores() }

// land gives the waiters the outcome. Waiters that joined after the handler was called get the response only if it was kept: it was stored, and
// not purged since.
func (f filling) land(o outcome, kept bool) {
	switch {
	case f.flight == nil:
	case kept || o.response == nil:
		f.flight.Land(o, nil)
	default:
		f.flight.LandEarly(o, nil)
	}
}

// alone calls the handler for this request only. The answer may be shareable now even if an earlier one was not.
func (x *exchange) alone() {
	if err := x.enter(nil); err != nil {
		x.turnedAway(err)
		return
	}
	var fill filling
	switch {
	case x.s.unasked != nil || x.s.flooded || x.r.Header["Range"] != nil:
	case x.r.Method == http.MethodHead: // the answer may confirm the stored response
		fill.over = x.s.response != nil
	case (x.s.pass || x.s.response != nil && !x.s.response.policy.Reusable()) && x.s.found.State == lease.Present:
		fill.over = true
	case x.s.pass && x.s.found.State == lease.Absent: // only this process remembers the pass. A purge while the handler runs must find something to void.
		ctx, cancel := x.cache.within(x.r.Context(), x.asked)
		defer cancel()
		a := x.cache.guard.Claim(ctx, x.s.slot, x.s.found)
		if fill.claim = a.Claim; a.Err != nil {
			x.cache.release(x.r.Context(), a.Claim)
			fill.claim = nil
		}
	case x.s.response != nil && x.status.Fwd == rfc9111.FwdRequest: // the client wants a newer answer than the fresh copy, and everybody may have it
		ctx, cancel := x.cache.within(x.r.Context(), x.asked)
		defer cancel()
		fill.claim = x.cache.guard.Renew(ctx, x.s.slot, x.s.found).Claim
	}
	x.forward(fill)
}

// lead calls the handler for all waiters of f, or waits if another process is already calling it. It reports false if the
// request has not been answered and should look again.
func (x *exchange) lead(f *flight.Flight[outcome]) (answered bool) {
	fill := filling{flight: f}
	handed := false // over to the code that stores the answer
	defer func() {
		if !handed {
			fill.land(outcome{}, false)
		}
	}()
	asks := x.s.unasked == nil && !x.s.flooded
	if !asks || x.s.found.State != lease.Loading { // waiting for another process takes no turn
		found := x.s.found.Raw
		begun := time.Now()
		if err := x.enter(f); err != nil {
			fill.land(outcome{refused: errors.Is(err, mayfly.ErrOverloaded), again: x.r.Context().Err() != nil}, false)
			x.turnedAway(err)
			return true
		}
		// The record was read long ago: it may have been renewed since, and the lock that was read with it is out of date.
		if asks && x.s.response != nil && time.Since(begun) > lease.TTL/2 {
			if x.look(x.r.Context()); string(x.s.found.Raw) != string(found) {
				x.yields()
				fill.land(outcome{again: true}, false)
				return false
			}
		}
	}
	if asks { // otherwise only this process's requests share the answer
		a := x.acquire(fill)
		switch {
		case a.Standing == lease.Mine:
			fill.claim = a.Claim
		case a.Standing == lease.Down:
		case a.Standing == lease.Changed, a.Standing == lease.Theirs:
			x.yields()
			fill.land(outcome{again: true}, false)
			return false
		case a.Standing == lease.Resting && x.s.response.policy.OnError(x.q, time.Now()):
			x.yields()
			fill.land(outcome{response: x.s.response, held: x.held, failed: true}, false)
			x.serveStale(errResting)
			return true
		default:
			left := x.r.Context().Err()
			fill.land(outcome{again: left != nil}, false) // then a waiter leads
			if left != nil {
				x.turnedAway(left)
			} else {
				x.alone()
			}
			return true
		}
	}
	handed = true
	x.forward(fill)
	return true
}

// errResting says that a renewal failed recently and that none is tried for now.
var errResting = errors.New("the handler failed lately")

// acquire asks for the right to store the answer, or waits for the answer that another process has claimed to load. It waits no longer than
// a request may wait in total.
func (x *exchange) acquire(fill filling) lease.Acquired {
	c, ctx := x.cache, x.r.Context()
	within, cancel := c.within(ctx, x.asked)
	defer cancel()
	wait, cancel := context.WithTimeout(ctx, c.opt.SharedWait-time.Since(x.begun))
	defer cancel()
	a := x.ask(within, wait, fill)
	switch a.Standing {
	case lease.Changed:
		if a.Waited > 0 {
			c.tell(ctx, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeOK, Key: x.s.slot, Took: a.Waited})
			c.local.Forget(x.s.slot) // drop an old copy whose invalidation has not arrived yet
		}
	case lease.Late:
		c.tell(ctx, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeTimedOut, Key: x.s.slot, Took: a.Waited, Err: a.Err})
	case lease.Down:
		if ctx.Err() == nil {
			c.tell.Backend(ctx, x.s.slot, a.Err)
		}
		c.release(ctx, a.Claim)
		x.s.unasked = a.Err
	}
	return a
}

// ask asks for the claim. It holds no turn while it waits for another load. If that load itself waits for this one, in a handler of this
// process, ask returns what it would return for a tombstone: load, but do not store.
func (x *exchange) ask(ctx, wait context.Context, fill filling) lease.Acquired {
	c, w := x.cache, lease.Want{Key: x.s.slot, Seen: x.s.found, Renew: x.s.response != nil}
	holder := w.Seen.Holder()
	switch w.Seen.State {
	case lease.Held:
		return lease.Acquired{Standing: lease.Void}
	case lease.Loading:
	default:
		a := c.guard.Ask(ctx, []lease.Want{w})[0]
		if a.Standing != lease.Theirs {
			return a
		}
		holder = a.Holder()
		if !w.Renew {
			w.Seen = a.Found
		}
	}
	x.yields()
	if around := inside(x.r.Context()); around != nil {
		leave, circle := nested.enter(&asking{brings: fill.brings(), around: around}, holder)
		if circle {
			x.lone = true
			return lease.Acquired{Standing: lease.Void}
		}
		defer leave()
	}
	a := c.guard.Outwait(ctx, wait, w, nil)
	if a.Standing == lease.Mine && x.queues() && !x.tryTurn(ctx) { // taken over from a dead process
		c.release(ctx, a.Claim)
		return lease.Acquired{Standing: lease.Changed}
	}
	return a
}
