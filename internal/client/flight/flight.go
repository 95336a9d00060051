// Package flight lets many callers share one piece of work per key, each on its own context.
//
// The first caller of [Group.Join] leads: it sees to it that the work is done somewhere, in a goroutine that belongs to
// whoever owns the work, and that the flight lands. Everybody waits, the leader too, and leaves when its own context
// ends; that changes nothing for the others, nor for the work.
//
//	began := group.Now()
//	f, lead := group.Join(key, began)
//	if lead {
//		go func() { f.Reads(); f.Land(work()) }()
//	}
//	v, again, err := f.Wait(ctx, began)
//
// # Whom a landing serves
//
// Between the moment at which the work read its origin and the landing, the origin may have changed, and somebody may have
// been promised that the old is not seen any more. What counts is when a call began:
//
//   - Before the work read its origin: whatever it brings is good for the call.
//   - After it: such a call is late. It gets an error, as everybody does, and a value only if it is known that nothing was
//     voided meanwhile ([Flight.Land]). Else ([Flight.LandEarly]) it is told to look again.
//   - After [Flight.Stores]: nobody joins any more, as the reply that proves it may itself be under way for long.
//
// The flight that a late call finds next began after the call did, so nobody is late twice.
//
// # Work that waits for its turn
//
// Work that has to queue before it may begin says so ([Flight.Queue]), and when its turn has come ([Flight.Turn]). Queued work that nobody
// waits for any more is abandoned in every group: it has cost nothing yet. Whoever joins tells how long it waits
// ([Flight.Wanted]), and the queue hears of it.
//
// It is golang.org/x/sync/singleflight with four differences: no caller runs the work, so no caller's cancellation
// can end it; who is late is known, which takes the counting and the joining under one lock; [Group.Forget] is by identity,
// so a forgotten flight that lands late does not take down its successor; and work that nobody waits for any more can be told
// so, by [Group.Abandon].
package flight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Group keeps the flights of one kind of work. The zero Group is ready.
type Group[T any] struct {
	// Abandon, set before use, makes a group forget a flight whose last waiter has left, and close its Abandoned.
	// Without it the work goes on, and who comes next joins it.
	Abandon bool

	clock atomic.Uint64 // how often an origin was about to be read

	mu      sync.Mutex // guards flights and what is said to be guarded in Flight
	flights map[string]*Flight[T]
}

// Moment orders the beginnings of calls and the readings of origins of one group.
type Moment uint64

// Now is for the beginning of a call.
func (g *Group[T]) Now() Moment { return Moment(g.clock.Load()) }

// Flight is one piece of work and those who wait for it.
type Flight[T any] struct {
	group *Group[T]
	key   string

	waiting   int           // guarded by group.mu: joined and not yet back from Wait
	late      bool          // guarded by group.mu: somebody who joined is late
	reads     Moment        // guarded by group.mu until the landing: calls that began at it or later are late; 0: none is
	abandoned chan struct{} // closed when waiting is back at zero before the landing, in a group that abandons or while it is queued
	left      bool          // guarded by group.mu: abandoned is closed

	until  time.Time                         // guarded by group.mu: when the last of those who said so leaves
	stays  bool                              // guarded by group.mu: somebody never leaves
	hurry  bool                              // guarded by group.mu: somebody must not wait in the queue
	queued func(until time.Time, hurry bool) // guarded by group.mu: told of who joins; nil: it is not queued

	landed chan struct{} // closed when the rest is final
	early  bool          // late calls get nothing
	value  T
	err    error
}

// Join returns the flight of key for a call that began then, and whether the caller has to see to its landing because it did
// not exist. Whoever joined must call Wait, once.
func (g *Group[T]) Join(key string, began Moment) (f *Flight[T], lead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, lead = g.joinLocked(key)
	f.waiting++
	f.late = f.late || f.isLate(began)
	return f, lead
}

// Lead returns a new flight of key for work that is wanted although nobody waits for it: it is never abandoned, and
// the caller does not Wait. If key has a flight already, Lead reports false.
func (g *Group[T]) Lead(key string) (f *Flight[T], ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.flights[key]; ok {
		return nil, false
	}
	f, ok = g.joinLocked(key)
	f.waiting++ // the work itself, which never leaves
	return f, ok
}

func (g *Group[T]) joinLocked(key string) (f *Flight[T], lead bool) {
	if f, ok := g.flights[key]; ok {
		return f, false
	}
	if g.flights == nil {
		g.flights = make(map[string]*Flight[T])
	}
	f = &Flight[T]{group: g, key: key, abandoned: make(chan struct{}), landed: make(chan struct{})}
	g.flights[key] = f
	return f, true
}

// Forget lets the next Join of key begin a new flight. Those who wait for the old one still get what it brings.
func (g *Group[T]) Forget(key string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.flights, key)
}

// ForgetAll forgets every flight.
func (g *Group[T]) ForgetAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.flights)
}

// Reads says that the work is about to read its origin: calls that begin from now on are late. The last time counts.
func (f *Flight[T]) Reads() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	select {
	case <-f.landed:
	default:
		f.reads = Moment(f.group.clock.Add(1))
	}
}

// Stores says that what was brought is about to be stored: nobody joins any more. It reports whether somebody is late, and so
// waits to know whether it was stored.
func (f *Flight[T]) Stores() (late bool) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.forgetLocked()
	return f.late
}

func (f *Flight[T]) isLate(began Moment) bool { return f.reads != 0 && began >= f.reads }

// Wait returns what the flight brought to a call that began then, or ctx's error if that ends first. again is true if the flight
// brought nothing that such a call may have: it is to look again. A flight that has landed is returned even if ctx is
// done as well.
func (f *Flight[T]) Wait(ctx context.Context, began Moment) (value T, again bool, err error) {
	select {
	case <-f.landed:
	case <-ctx.Done():
		if f.leave() {
			return value, false, ctx.Err()
		}
	}
	if f.early && f.isLate(began) {
		return value, true, nil
	}
	return f.value, false, f.err
}

// leave takes a waiter off an unlanded flight. It reports false if the flight landed meanwhile.
func (f *Flight[T]) leave() bool {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	select {
	case <-f.landed:
		return false
	default:
	}
	if f.waiting--; f.waiting == 0 && (f.group.Abandon || f.queued != nil) {
		f.abandonLocked()
	}
	return true
}

// abandonLocked tells the work that nobody waits for it. Who comes now would find work that is stopping: it begins its own.
func (f *Flight[T]) abandonLocked() {
	if f.forgetLocked(); !f.left {
		f.left = true
		close(f.abandoned)
	}
}

// Wanted says how long a caller that has joined waits, where zero is as long as it takes. hurry says that it must not wait in the queue:
// the caller itself holds what the others there wait for.
func (f *Flight[T]) Wanted(until time.Time, hurry bool) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.stays = f.stays || until.IsZero()
	f.hurry = f.hurry || hurry
	if until.After(f.until) {
		f.until = until
	}
	f.tellLocked()
}

func (f *Flight[T]) tellLocked() {
	switch {
	case f.queued == nil:
	case f.stays:
		f.queued(time.Time{}, f.hurry)
	default:
		f.queued(f.until, f.hurry)
	}
}

// Queue says that the work waits for its turn. Until [Flight.Turn] it is abandoned when its last caller leaves, and joined is told, now
// and whenever somebody joins, when the last caller leaves (zero: never) and whether one is in a hurry. It must be quick and may not
// call the group.
func (f *Flight[T]) Queue(joined func(until time.Time, hurry bool)) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.queued = joined
	if f.waiting == 0 { // they left before the work came here
		f.abandonLocked()
	}
	if f.stays || f.hurry || !f.until.IsZero() {
		f.tellLocked()
	}
}

// Turn says that the work has its turn, and reports false if it was abandoned before: then it need not begin.
func (f *Flight[T]) Turn() bool {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.queued = nil
	return !f.left
}

// Land ends the flight with what it brought, for all who wait: an error, or a value that was stored after the last of them had
// joined, in the place that it was loaded for. Every flight must land; once it has, another landing changes nothing.
func (f *Flight[T]) Land(value T, err error) { f.land(value, err, false) }

// LandEarly ends the flight with what it brought for those whose calls began before the origin was read. The others are to look
// again.
func (f *Flight[T]) LandEarly(value T, err error) { f.land(value, err, true) }

func (f *Flight[T]) land(value T, err error, early bool) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	select {
	case <-f.landed:
		return
	default:
	}
	f.value, f.err, f.early = value, err, early
	f.forgetLocked()
	close(f.landed)
}

// Abandoned is closed when the last one who waited has left before the landing, in a group that abandons, or while the work is queued.
func (f *Flight[T]) Abandoned() <-chan struct{} { return f.abandoned }

// forgetLocked takes f out of its group, unless another flight of the key has taken its place.
func (f *Flight[T]) forgetLocked() {
	if f.group.flights[f.key] == f {
		delete(f.group.flights, f.key)
	}
}
