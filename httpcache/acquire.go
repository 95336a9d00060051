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
	claim  *lease.Claim            // may be nil
	renews bool                    // what is there is still of use, whatever comes of it
	over   bool                    // without a claim, the answer may still replace what was seen in the slot
	flight *flight.Flight[outcome] // of those who wait; nil: nobody does
	beat   *beat                   // keeps the claim
	passed <-chan lease.Found      // brings what has taken the claim's place, which the answer may replace; nil: nothing has
}

// stop ends the keeping of the claim.
func (f filling) stop() { f.beat.stop() }

// wanted reports whether anybody beside the client wants the answer.
func (f filling) wanted() bool { return f.stores() || f.flight != nil }

// stores reports whether an answer can be stored.
func (f filling) stores() bool { return f.claim != nil || f.passed != nil || f.over }

// brings are what others wait for who wait for the answer.
func (f filling) brings() (all []any) {
	if f.flight != nil {
		all = append(all, f.flight)
	}
	if f.claim != nil {
		all = append(all, f.claim.ID())
	}
	return all
}

// reads says that the handler is about to be asked.
func (f filling) reads() {
	if f.flight != nil {
		f.flight.Reads()
	}
}

// closes says that the answer is about to be stored, and reports whether somebody waits to know whether it was.
func (f filling) closes() (late bool) { return f.flight != nil && f.flight.Stores() }

// land tells those who wait what came of it. Those who came when the handler had been asked already get a response only if it is
// kept: stored, and not purged since.
func (f filling) land(o outcome, kept bool) {
	switch {
	case f.flight == nil:
	case kept || o.response == nil:
		f.flight.Land(o, nil)
	default:
		f.flight.LandEarly(o, nil)
	}
}

// alone asks the handler for this request only. What is remembered as not fit for others may have become so.
func (x *exchange) alone() {
	if err := x.enter(nil); err != nil {
		x.turnedAway(err)
		return
	}
	var fill filling
	switch {
	case x.s.unasked != nil || x.s.flooded || x.r.Header["Range"] != nil:
	case x.r.Method == http.MethodHead: // it may learn that what is stored is still good
		fill.over = x.s.response != nil
	case x.s.pass, x.s.response != nil && !x.s.response.policy.Reusable():
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
	fill := filling{flight: f}
	handed := false // to who stores the answer
	defer func() {
		if !handed {
			fill.land(outcome{}, false)
		}
	}()
	asks := x.s.unasked == nil && !x.s.flooded
	if !asks || x.s.found.State != lease.Loading { // who waits for another process takes no turn
		found := x.s.found.Raw
		begun := time.Now()
		if err := x.enter(f); err != nil {
			fill.land(outcome{refused: errors.Is(err, mayfly.ErrOverloaded), again: x.r.Context().Err() != nil}, false)
			x.turnedAway(err)
			return true
		}
		// What was found so long ago may have been renewed since, and its lock says nothing any more.
		if asks && x.s.response != nil && time.Since(begun) > lease.TTL/2 {
			if x.look(x.r.Context()); string(x.s.found.Raw) != string(found) {
				x.yields()
				fill.land(outcome{again: true}, false)
				return false
			}
		}
	}
	if asks { // else those of this process share the answer all the same
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
			fill.land(outcome{again: left != nil}, false) // then one of the others leads
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

// errResting says that a renewal failed lately, and that nobody tries again yet.
var errResting = errors.New("the handler failed lately")

// acquire asks for the right to store the answer, or waits for another process to bring what it has claimed, for as long as a
// request may wait in all.
func (x *exchange) acquire(fill filling) lease.Acquired {
	c, ctx := x.cache, x.r.Context()
	within, cancel := c.within(ctx, x.asked)
	defer cancel()
	wait, cancel := context.WithTimeout(ctx, c.opt.Shared.Wait-time.Since(x.begun))
	defer cancel()
	a := x.ask(within, wait, fill)
	switch a.Standing {
	case lease.Changed:
		if a.Waited > 0 {
			c.tell(ctx, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeOK, Key: x.s.slot, Took: a.Waited})
			c.local.Forget(x.s.slot) // a copy of what was there before, if the server's word is still on its way
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

// ask asks for the claim. While it waits for somebody else's load it has no turn. Where that load waits for this one, in a handler of this
// process, the answer is that of a tombstone: load, and do not store.
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
	if a.Standing == lease.Mine && x.queues() && !x.tryTurn(ctx) { // taken over from one who died
		c.release(ctx, a.Claim)
		return lease.Acquired{Standing: lease.Changed}
	}
	return a
}
