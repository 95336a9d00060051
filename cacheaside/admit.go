package cacheaside

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/lease"
)

// Origin is what the cache's loads ask: Options.Origin, or one of its own. Its Stats tell how many loads run and wait.
func (c *Cache[K, V]) Origin() *mayfly.Origin { return c.origin }

// enter waits for the permit of one query about ls, until wait ends. Their flights are queued from now on: one that all its callers
// leave is abandoned, which [flight.Flight.Turn] tells.
func (c *Cache[K, V]) enter(ctx, wait context.Context, ls ...*loading[K, V]) (p admission.Permit, err error) {
	limiter := admission.Of(c.origin)
	wish := admission.Wish{Place: limiter.Place(), Abandoned: ls[0].flight.Abandoned(), Closing: c.works.Closing(), Patience: c.opt.LoadTimeout}
	if at, ok := wait.Deadline(); ok {
		wish.Patience = max(time.Until(at), 1)
	}
	for _, l := range ls {
		l.flight.Queue(wish.Place.Joined)
	}
	if len(ls) > 1 {
		watching, cancel := context.WithCancel(ctx)
		defer cancel()
		wish.Abandoned = c.allAbandoned(watching, ls)
	}
	begun := time.Now()
	p, err = limiter.Enter(ctx, wish)
	e := mayfly.Event{Kind: mayfly.KindAdmission, Outcome: mayfly.OutcomeOK, N: len(ls), Took: p.Queued(), Err: err}
	if len(ls) == 1 {
		e.Key = ls[0].full
	}
	switch {
	case err == nil && e.Took == 0, errors.Is(err, admission.ErrClosed), err != nil && ctx.Err() != nil:
		return p, err
	case errors.Is(err, admission.ErrAbandoned):
		e.Outcome, e.Took, e.Err = mayfly.OutcomeDropped, time.Since(begun), nil
	case err != nil:
		e.Outcome, e.Took = mayfly.OutcomeTimedOut, time.Since(begun)
	}
	c.tell(ctx, e)
	return p, err
}

// stay is a loader's at the origin: from its call to its return, which may be long after it was given up.
type stay struct {
	mu   sync.Mutex
	over bool
	then func() // called at its end
}

// left says that the loader has returned.
func (s *stay) left() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over = true; s.then != nil {
		s.then()
	}
}

// leave gives a permit back. A loader that was given up and runs on is counted until it returns.
func leave(p *admission.Permit, loader *stay, how admission.Outcome, runs bool) {
	if !runs {
		p.Done(how, time.Now())
		return
	}
	ended := p.Outlived(how, time.Now())
	loader.mu.Lock()
	defer loader.mu.Unlock()
	if loader.over {
		ended()
		return
	}
	loader.then = ended
}

// failAll lands flights with the error of their queue.
func failAll[K comparable, V any](ls []*loading[K, V], err error) {
	if errors.Is(err, admission.ErrClosed) {
		err = mayfly.ErrClosed
	}
	for _, l := range ls {
		l.fail(err)
	}
}

// turn reports whether somebody still wants what l has its turn for. If not, the flight has landed.
func (l *loading[K, V]) turn() bool {
	if l.flight.Turn() {
		return true
	}
	l.fail(admission.ErrAbandoned) // to nobody
	return false
}

// ended is what the end of a load says about the origin.
func ended(err error) admission.Outcome {
	switch {
	case err == nil, errors.Is(err, mayfly.ErrNotFound):
		return admission.OK
	case errors.Is(err, mayfly.ErrLoadTimeout):
		return admission.TimedOut
	case errors.Is(err, mayfly.ErrClosed), errors.Is(err, mayfly.ErrOverloaded): // which another origin is
		return admission.NoSample
	case errors.Is(err, errAbandoned):
		return admission.Abandoned
	}
	return admission.Failed
}

// giveBack gives back a permit that was not needed.
func giveBack(p *admission.Permit) { p.Done(admission.NoSample, time.Now()) }

// outdated reports whether what is to be renewed was found so long ago that its lock says nothing any more.
func outdated(p *admission.Permit) bool { return p.Queued() > lease.TTL/2 }
