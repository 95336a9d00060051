// Package admission limits the loads in flight to what their origin can handle, and finds that limit by itself.
//
// An overloaded origin slows down until every load times out. If it also finishes work that its callers have given up on, it never
// recovers. A [Limiter] lets in as many loads as the origin can handle and queues the rest. Waiting in the queue costs the origin nothing.
//
//	permit, err := limiter.Enter(ctx, admission.Wish{})
//	if err != nil {
//		return err
//	}
//	defer permit.Drop() // a panic gives the permit back too
//	how := load(permit.Inside(ctx))
//	permit.Done(how, time.Now())
//
// [Policy] decides how many loads that is. A limiter belongs to an origin, not to a cache: caches that query the same database share one.
//
// # Who goes first
//
// Loads whose callers can still be answered in time go first, in order of arrival. A load that is unlikely to end before its callers leave
// ([Wish.Until]) goes behind all others, also in order. Without this rule an overloaded origin would only work on loads whose callers have
// just given up. Late loads still run if there is room, since others may want their result.
//
// A caller that joins a queued load may wait longer than the callers before it: report it with [Place.Joined].
//
// # Loads within loads
//
// A loader that asks a cache with the same limiter already holds a permit. With the context of [Permit.Inside] it enters at once: if it
// queued, loads that wait for each other could hold all permits. If it joins a load in the queue, that load is let in beyond the limit, for
// the same reason. The origin gets no extra work, since the loader itself waits meanwhile.
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

// ErrAbandoned is returned to a load that left the queue because nobody wants its result any more.
var ErrAbandoned = errors.New("nobody wants the load any more")

// ErrClosed is returned once the limiter is closed.
var ErrClosed = errors.New("the limiter is closed")

// Options describe a limiter. The zero Options are not enough: Timeout is required unless Limit is set.
type Options struct {
	// Limit is how many loads may be in flight. Zero: as many as the origin can handle, found by [Policy]. Negative: any number.
	Limit int
	// Timeout is how long a load may take. Policy needs it: it accepts delays of up to half of it.
	Timeout time.Duration
}

// maxQueued bounds the queue: each waiter takes some memory, and behind this many nobody is answered in time.
const maxQueued = 100_000

// Limiter admits loads. It is safe for concurrent use and starts no goroutine.
type Limiter struct {
	begun time.Time // all times are relative to this

	mu     sync.Mutex // guards the rest
	fixed  int        // 0: the policy decides; negative: no limit
	policy Policy
	queue  queue
	stats  Stats
	beyond int // loads that run on without a permit
	closed bool
}

// Of returns the limiter that a *mayfly.Origin holds, or nil for an Origin that its constructor did not make. The root package sets it,
// since this package cannot import the root.
var Of func(origin any) *Limiter

// Stats are the figures of a limiter.
type Stats struct {
	Limit    int           // loads that may be in flight; negative: any number
	InFlight int           // permits held, and loads that run on after they were given up
	Queued   int           // loads waiting
	Entered  uint64        // permits given, except to nested loads
	Refused  uint64        // loads that left the queue without a permit, and calls of Try that found none
	Waited   time.Duration // time in the queue of the loads that got a permit
}

// New returns a limiter.
func New(o Options) (*Limiter, error) {
	if o.Timeout < 0 || o.Limit == 0 && o.Timeout == 0 {
		return nil, fmt.Errorf("admission: Options.Timeout must be positive, got %v", o.Timeout)
	}
	return &Limiter{begun: time.Now(), fixed: o.Limit, policy: *NewPolicy(o.Timeout)}, nil
}

// Wish is what a load asks for when it enters the queue. The zero Wish waits until ctx ends.
type Wish struct {
	// Until is when the load's callers leave. Zero: this is not known, and the load is never too late.
	Until time.Time
	// Place is told of callers that join later. May be nil.
	Place *Place
	// Patience is how long the load waits at most. Zero: until ctx ends.
	Patience time.Duration
	// Abandoned, once closed, takes the load out of the queue: nobody wants its result any more. May be nil.
	Abandoned <-chan struct{}
	// Closing, once closed, takes the load out of the queue with ErrClosed: the owner of the load is closed. May be nil.
	Closing <-chan struct{}
}

// Enter waits for a permit. It fails with the cause of ctx's end, [ErrAbandoned], [ErrOverloaded] or [ErrClosed].
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
	p, ok := <-w.granted // between the select and the lock, the permit was granted or the limiter was closed
	if !ok {
		return Permit{}, ErrClosed
	}
	p.Done(NoSample, time.Now())
	return Permit{}, why
}

// Try returns a permit only if one is free and nobody is waiting. It is for loads that can be skipped, such as renewing a value that is
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

// takeLocked takes a permit if one is free. A free permit implies an empty queue: the limit changes only in done, which hands free permits
// to waiters.
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

// done takes a permit back and hands free permits to waiters.
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

// outlived counts loads that run on without a permit.
func (l *Limiter) outlived(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beyond += n
}

// grantLocked gives a permit to a load that was just taken off the queue.
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
	s.Limit, s.Queued, s.InFlight = l.limitLocked(), l.queue.len(), s.InFlight+l.beyond
	return s
}

// Close turns away every waiter in the queue and every later caller. Permits already held stay valid. It is safe to call Close again.
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
