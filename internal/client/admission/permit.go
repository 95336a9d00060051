package admission

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Permit is the right to one load. Do not copy it. It is given back once, by the first call of Done or Drop. Nested loads get the zero
// Permit, which gives nothing back.
type Permit struct {
	of     *Limiter
	begun  time.Duration
	queued time.Duration
	held   *atomic.Bool // shared with the contexts of Inside; nil: there are none
}

// Queued is how long the load waited for the permit; zero if a permit was free.
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

// Outlived is Done for a load that was given up and still runs because it ignores its context. It gives the permit back anyway: one
// load that never ends must not close the origin to all others. Until ended is called, Stats counts the load as in flight.
func (p *Permit) Outlived(how Outcome, now time.Time) (ended func()) {
	l := p.of
	if l == nil {
		return func() {}
	}
	p.Done(how, now)
	l.outlived(1)
	return sync.OnceFunc(func() { l.outlived(-1) })
}

// Drop, when deferred, gives the permit back if Done was not reached because the load panicked or ended its goroutine. The load counts as
// failed.
func (p *Permit) Drop() {
	if p.of != nil {
		p.Done(Failed, time.Now())
	}
}

// insideKey is the context key under which a load finds that it holds a permit of a limiter.
type insideKey struct{ of *Limiter }

// Inside returns the context for the load itself. Until the permit is given back, nested loads with this context need no permit of the same
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

// Inside reports whether ctx belongs to a load that holds a permit of l.
func (l *Limiter) Inside(ctx context.Context) bool {
	held, _ := ctx.Value(insideKey{l}).(*atomic.Bool)
	return held != nil && held.Load()
}
