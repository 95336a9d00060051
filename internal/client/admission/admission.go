// Package admission bounds the loads in flight by what their origin can work on, and finds that out by itself.
//
// An origin that is asked for more than it can do takes longer, until every load times out. If it finishes what was abandoned, it never
// recovers: it works for nobody. A [Limiter] lets in what the origin can do and keeps the rest in a queue, whose waiters cost the
// origin nothing.
//
//	permit, err := limiter.Enter(ctx, admission.Wish{})
//	if err != nil {
//		return err
//	}
//	defer permit.Drop() // a panic gives the permit back too
//	how := load(permit.Inside(ctx))
//	permit.Done(how, time.Now())
//
// [Policy] decides how many, see there. A limiter belongs to an origin, not to a cache: caches that ask the same database share one.
//
// # Who goes first
//
// First come, first served, among those who can still be answered in time. A load that is unlikely to end before its callers leave
// ([Wish.Until]) goes behind all others, also in order. Without this an overloaded origin works on nothing but loads whose callers have
// just waited in vain. They are still loaded if there is room, as what they bring may be wanted by others.
//
// A caller that joins a load in the queue may wait longer than those before: [Place.Joined] tells.
//
// # Loads within loads
//
// A loader that asks a cache of the same limiter holds a permit already. With the context of [Permit.Inside] it enters at
// once; if it waited, loads that wait for each other could hold all permits. A loader that joins a load in the queue takes it out of
// there, beyond the limit, for the same reason; as the loader waits meanwhile, the origin has no more to do.
package admission

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrOverloaded is returned to a load that has waited for a permit as long as it was willing to.
var ErrOverloaded = errors.New("the origin is overloaded: no permit in time")

// ErrAbandoned is returned to a load that left the queue because nobody wants it any more.
var ErrAbandoned = errors.New("nobody wants the load any more")

// ErrClosed is returned once the limiter is closed.
var ErrClosed = errors.New("the limiter is closed")

// Options describe a limiter. The zero Options are not complete: Timeout has no default unless Limit is set.
type Options struct {
	// Limit is how many loads may be in flight. Zero: what the origin can do, found by [Policy]. Negative: any number.
	Limit int
	// Timeout is how long a load may take. Policy needs it: the origin is given up to a half of it.
	Timeout time.Duration
}

// maxQueued bounds the queue: each that waits there is some memory, and behind so many nobody is answered in time.
const maxQueued = 100_000

// Limiter admits loads. It is safe for concurrent use and starts no goroutine.
type Limiter struct {
	begun time.Time // times are counted from here

	mu     sync.Mutex // guards the rest
	fixed  int        // 0: policy decides; negative: no limit
	policy Policy
	queue  queue
	stats  Stats
	closed bool
}

// Of returns what a *mayfly.Origin holds; nil if it was not made. The root package, which this one cannot import, sets it.
var Of func(origin any) *Limiter

// Stats are the figures of a limiter.
type Stats struct {
	Limit    int           // loads that may be in flight; negative: any number
	InFlight int           // permits that are held
	Queued   int           // loads that wait
	Entered  uint64        // permits given, those of nested loads not counted
	Refused  uint64        // loads that left the queue without a permit, and Try that found none
	Waited   time.Duration // in the queue, by those who got a permit
}

// New returns a limiter.
func New(o Options) (*Limiter, error) {
	if o.Timeout < 0 || o.Limit == 0 && o.Timeout == 0 {
		return nil, fmt.Errorf("admission: Options.Timeout must be positive, got %v", o.Timeout)
	}
	return &Limiter{begun: time.Now(), fixed: o.Limit, policy: *NewPolicy(o.Timeout)}, nil
}

// Wish is what a load wants of its place in the queue. The zero Wish waits until ctx ends.
type Wish struct {
	// Until is when the load's callers leave. Zero: that is not known, and what the load brings is never too late.
	Until time.Time
	// Place hears of callers that join later. May be nil.
	Place *Place
	// Patience is how long the load waits at most. Zero: as long as ctx.
	Patience time.Duration
	// Abandoned, once closed, takes the load out of the queue: nobody wants it any more. May be nil.
	Abandoned <-chan struct{}
	// Closing, once closed, does so too, with ErrClosed: who would run the load is closed. May be nil.
	Closing <-chan struct{}
}

// Enter waits for a permit. Its errors are the cause of ctx's end, [ErrAbandoned], [ErrOverloaded] and [ErrClosed].
func (l *Limiter) Enter(ctx context.Context, wish Wish) (Permit, error) {
	if l.Inside(ctx) {
		return Permit{}, nil
	}
	if ctx.Err() != nil {
		return Permit{}, context.Cause(ctx)
	}
	now := time.Now()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return Permit{}, ErrClosed
	}
	if p := wish.Place; p != nil && p.told {
		wish.Until = p.until
	}
	if !wish.Until.IsZero() {
		l.policy.Wanted(max(0, wish.Until.Sub(now)))
	}
	if p, ok := l.takeLocked(now); ok {
		l.mu.Unlock()
		return p, nil
	}
	l.policy.Waits()
	if l.queue.len() >= maxQueued {
		l.stats.Refused++
		l.mu.Unlock()
		return Permit{}, ErrOverloaded
	}
	w := &waiter{since: now, until: wish.Until, granted: make(chan Permit, 1)}
	l.queue.push(w)
	if wish.Place != nil {
		wish.Place.waiter = w
		wish.Place.applyLocked(now)
	}
	l.mu.Unlock()
	return l.wait(ctx, wish, w)
}

// wait waits in the queue.
func (l *Limiter) wait(ctx context.Context, wish Wish, w *waiter) (Permit, error) {
	var patience <-chan time.Time
	if wish.Patience > 0 {
		timer := time.NewTimer(wish.Patience)
		defer timer.Stop()
		patience = timer.C
	}
	var why error
	select {
	case p, ok := <-w.granted:
		if !ok {
			return Permit{}, ErrClosed
		}
		return p, nil
	case <-ctx.Done():
		why = context.Cause(ctx)
	case <-wish.Abandoned:
		why = ErrAbandoned
	case <-wish.Closing:
		why = ErrClosed
	case <-patience:
		why = ErrOverloaded
	}
	l.mu.Lock()
	if w.in != nil {
		w.in.remove(w)
		l.stats.Refused++
		l.mu.Unlock()
		return Permit{}, why
	}
	l.mu.Unlock()
	p, ok := <-w.granted // it was granted, or the limiter closed, just now
	if !ok {
		return Permit{}, ErrClosed
	}
	p.Done(NoSample, time.Now())
	return Permit{}, why
}

// Try returns a permit only if one is free and nobody waits. It is for loads that can be left out, as the renewal of a value that is
// still good.
func (l *Limiter) Try(ctx context.Context) (Permit, bool) {
	if l.Inside(ctx) {
		return Permit{}, true
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return Permit{}, false
	}
	p, ok := l.takeLocked(now)
	if !ok {
		l.policy.Waits()
		l.stats.Refused++
	}
	return p, ok
}

// takeLocked takes a permit if one is free. Then nobody waits: the limit changes only in done, which gives away what is free.
func (l *Limiter) takeLocked(now time.Time) (Permit, bool) {
	if !l.freeLocked() {
		return Permit{}, false
	}
	return l.giveLocked(now), true
}

func (l *Limiter) freeLocked() bool {
	limit := l.limitLocked()
	return limit < 0 || l.stats.InFlight < limit
}

func (l *Limiter) limitLocked() int {
	if l.fixed != 0 {
		return l.fixed
	}
	return l.policy.Limit()
}

func (l *Limiter) giveLocked(now time.Time) Permit {
	l.stats.InFlight++
	l.stats.Entered++
	return Permit{of: l, begun: now.Sub(l.begun)}
}

// done takes a permit back and gives the free ones to those who wait.
func (l *Limiter) done(begun time.Duration, how Outcome, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.InFlight--
	if l.fixed == 0 {
		l.policy.Done(begun, now.Sub(l.begun), how, l.queue.len() > 0)
	}
	for l.queue.len() > 0 && l.freeLocked() {
		w := l.queue.pop(now, l.policy.InTime)
		l.grantLocked(w, now)
	}
}

// grantLocked gives a permit to a load that has left the queue for it.
func (l *Limiter) grantLocked(w *waiter, now time.Time) {
	p := l.giveLocked(now)
	p.queued = max(now.Sub(w.since), 1)
	l.stats.Waited += now.Sub(w.since)
	w.granted <- p
}

// Stats returns the figures.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.stats
	s.Limit, s.Queued = l.limitLocked(), l.queue.len()
	return s
}

// Close sends everybody in the queue away and lets nobody in any more. Permits that are held stay good. Closing again is fine.
func (l *Limiter) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for l.queue.len() > 0 {
		w := l.queue.pop(l.begun, nil)
		l.stats.Refused++
		close(w.granted)
	}
}
