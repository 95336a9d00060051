// Package flight lets many callers share one piece of work per key, each on its own context.
//
// The first caller of [Group.Join] leads: it makes sure that somebody does the work, in a goroutine that belongs to the owner of the work,
// and that the flight lands. Every caller waits, the leader too, and leaves when its own context ends. That affects neither the other
// callers nor the work.
//
//	began := group.Now()
//	f, lead := group.Join(key, began)
//	if lead {
//		go func() { f.Reads(); f.Land(work()) }()
//	}
//	v, again, err := f.Wait(ctx, began)
//
// # Which calls a landing serves
//
// The origin may change after the work has read it and before the flight lands, and somebody may have been promised that the old value will
// not be seen any more. What counts is when a call began:
//
//   - Before the work read its origin: the call may have whatever the work brings.
//   - After it: the call is late. It gets an error like every other call. It gets a value only if it is known that nothing was voided
//     meanwhile ([Flight.Land]). Otherwise ([Flight.LandEarly]) it must look again.
//   - After [Flight.Stores]: no call joins any more, since the reply that proves the store may itself take long.
//
// A late call that looks again finds a flight that began after the call, so no call is late twice.
//
// # Work that waits for its turn
//
// Work that has to queue before it may begin reports this ([Flight.Queue]), and then that its turn has come ([Flight.Turn]). Queued work
// without waiters is abandoned in every group, since it has cost nothing yet. Each caller that joins says how long it waits
// ([Flight.Wanted]), and the queue is told.
//
// Compared with golang.org/x/sync/singleflight there are four differences. No caller runs the work, so no caller's cancellation can end it. The
// group knows which calls are late, which requires counting and joining under one lock. Flights are forgotten by identity, so a forgotten flight
// that lands late does not remove its successor. And with [Group.Abandon] work learns that it has no waiters.
package flight

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Group keeps the flights of one kind of work. The zero Group is ready.
type Group[T any] struct {
	// Abandon makes the group forget a flight when its last waiter has left, and close its Abandoned channel. Set it before use. Without it
	// the work goes on, and the next caller joins it.
	Abandon bool

	clock atomic.Uint64 // how many times work was about to read an origin

	mu      sync.Mutex // guards flights, and the fields of Flight that say so
	flights map[string]*Flight[T]
}

// Moment orders, within one group, when calls begin and when origins are read.
type Moment uint64

// Now returns the current moment: call it when a call begins.
func (g *Group[T]) Now() Moment { return Moment(g.clock.Load()) }

// Flight is one piece of work and its waiters.
type Flight[T any] struct {
	group *Group[T]
	key   string

	waiting   int           // guarded by group.mu: callers that joined and have not returned from Wait
	among     int           // guarded by group.mu: see Fewest
	late      bool          // guarded by group.mu: a late call has joined
	reads     Moment        // guarded by group.mu until the landing: calls that began then or later are late; 0: no call is
	abandoned chan struct{} // closed when waiting drops to zero before the landing, if the group abandons or the work is queued
	left      bool          // guarded by group.mu: abandoned is closed

	until  time.Time                         // guarded by group.mu: when the last of the waiters that said so leaves
	stays  bool                              // guarded by group.mu: a waiter never leaves
	hurry  bool                              // guarded by group.mu: a waiter must not wait in the queue
	queued func(until time.Time, hurry bool) // guarded by group.mu: is called when callers join; nil: the work is not queued

	landed chan struct{} // closed when the fields below are final
	early  bool          // late calls get nothing
	shared bool          // several get it
	value  T
	err    error
}

// Join returns the flight of key for a call that began at began. lead reports that the flight is new, and that the caller must make sure
// that it lands. Every caller that joined must call Wait once.
func (g *Group[T]) Join(key string, began Moment) (f *Flight[T], lead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, lead = g.joinLocked(key)
	f.waiting++
	f.late = f.late || f.isLate(began)
	return f, lead
}

// Lead returns a new flight of key for background work without waiters: it is never abandoned, and the caller does not call Wait. If key
// already has a flight, Lead reports false.
func (g *Group[T]) Lead(key string) (f *Flight[T], ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.flights[key]; ok {
		return nil, false
	}
	f, ok = g.joinLocked(key)
	f.waiting++ // the work itself counts as a waiter that never leaves
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

// Forget makes the next Join of key begin a new flight. The waiters of the old one still get what it brings.
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

// Reads says that the work is about to read its origin: calls that begin from now on are late. The last call of Reads counts.
func (f *Flight[T]) Reads() {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	select {
	case <-f.landed:
	default:
		f.reads = Moment(f.group.clock.Add(1))
	}
}

// Stores says that the result is about to be stored, and lets no more callers join. It reports whether a late call has joined. Such a call
// needs to know whether the result was stored.
func (f *Flight[T]) Stores() (late bool) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.forgetLocked()
	return f.late
}

func (f *Flight[T]) isLate(began Moment) bool { return f.reads != 0 && began >= f.reads }

// Wait returns what the flight brought for a call that began at began, or ctx's error if ctx ends first. again is true if the flight
// brought nothing that this call may have: it must look again. If the flight has landed, Wait returns its result even if ctx is done too.
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

// Shared reports whether what [Flight.Wait] has returned is, or may be, the result of other callers too.
func (f *Flight[T]) Shared() bool { return f.shared }

// leave removes a waiter from a flight that has not landed. It reports false if the flight landed meanwhile.
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

// abandonLocked tells the work that it has no waiters. The next caller begins its own flight instead of joining work that is stopping.
func (f *Flight[T]) abandonLocked() {
	if f.forgetLocked(); !f.left {
		f.left = true
		close(f.abandoned)
	}
}

// Wanted says how long a caller that has joined will wait; zero means as long as it takes. With hurry it must not wait in the queue,
// because it holds what the others in the queue wait for.
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

// Queue says that the work waits for its turn. Until [Flight.Turn], the work is abandoned when its last caller leaves. joined is told, now
// and whenever a caller joins, when the last caller leaves (zero: never) and whether one is in a hurry. It must be quick and must not call
// the group.
func (f *Flight[T]) Queue(joined func(until time.Time, hurry bool)) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.queued = joined
	if f.waiting == 0 { // all callers left before the work was queued
		f.abandonLocked()
	}
	if f.stays || f.hurry || !f.until.IsZero() {
		f.tellLocked()
	}
}

// Among says that a caller that has joined waits for so many pieces of work at once.
func (f *Flight[T]) Among(n int) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	if f.among == 0 || n < f.among {
		f.among = n
	}
}

// Fewest returns the least that was said by Among; zero if nothing was. Work that somebody waits for alone is to come before work that is a small
// part of what everybody waits for.
func (f *Flight[T]) Fewest() int {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	return f.among
}

// Turn says that the work's turn has come. It reports false if the work was abandoned before, and then need not begin.
func (f *Flight[T]) Turn() bool {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	f.queued = nil
	return !f.left
}

// Land ends the flight and gives all waiters its result: an error, or a value that was stored, in the place it was loaded for, after the last
// waiter had joined. Every flight must land. Landing again changes nothing.
func (f *Flight[T]) Land(value T, err error) { f.land(value, err, false) }

// LandEarly ends the flight and gives its result only to calls that began before the origin was read. The others must look again.
func (f *Flight[T]) LandEarly(value T, err error) { f.land(value, err, true) }

func (f *Flight[T]) land(value T, err error, early bool) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	select {
	case <-f.landed:
		return
	default:
	}
	f.value, f.err, f.early, f.shared = value, err, early, f.waiting > 1
	f.forgetLocked()
	close(f.landed)
}

// Abandoned is closed when the last waiter leaves before the landing, if the group abandons or the work is queued.
func (f *Flight[T]) Abandoned() <-chan struct{} { return f.abandoned }

// forgetLocked removes f from its group, unless another flight of the key has taken its place.
func (f *Flight[T]) forgetLocked() {
	if f.group.flights[f.key] == f {
		delete(f.group.flights, f.key)
	}
}
