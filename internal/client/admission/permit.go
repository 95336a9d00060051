package admission

import (
	"context"
	"sync/atomic"
	"time"
)

// Permit is the right to one load. Do not copy it: a permit is given back once, by Done or Drop, whichever comes first. The zero Permit,
// which nested loads get, gives nothing back.
type Permit struct {
	of     *Limiter
	begun  time.Duration
	queued time.Duration
	held   *atomic.Bool // what contexts of Inside see; nil: there is none
}

// Queued is how long the permit was waited for; zero if one was free.
func (p *Permit) Queued() time.Duration { return p.queued }

// Done gives the permit back and says how the load ended. Only the first call counts.
func (p *Permit) Done(how Outcome, now time.Time) {
	l := p.of
	if l == nil {
		return
	}
	p.of = nil
	if p.held != nil {
		p.held.Store(false)
	}
	l.done(p.begun, how, now)
}

// Drop, deferred, gives the permit back if Done was not reached: the load panicked or ended its goroutine, and counts as failed.
func (p *Permit) Drop() {
	if p.of != nil {
		p.Done(Failed, time.Now())
	}
}

// insideKey is the key of contexts of loads that hold a permit of a limiter.
type insideKey struct{ of *Limiter }

// Inside returns ctx for the load itself: until the permit is given back, nested loads with this context take no permit of the same
// limiter.
func (p *Permit) Inside(ctx context.Context) context.Context {
	if p.of == nil {
		return ctx
	}
	if p.held == nil {
		p.held = new(atomic.Bool)
		p.held.Store(true)
	}
	return context.WithValue(ctx, insideKey{p.of}, p.held)
}

// Inside reports whether ctx is that of a load that holds a permit of l.
func (l *Limiter) Inside(ctx context.Context) bool {
	held, _ := ctx.Value(insideKey{l}).(*atomic.Bool)
	return held != nil && held.Load()
}
