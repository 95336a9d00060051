// Package flight lets many callers share one piece of work per key, each on its own context.
//
// The first caller of [Group.Join] leads: it sees to it that the work is done somewhere, in a goroutine that belongs to
// whoever owns the work, and that the flight lands. Everybody waits, the leader too, and leaves when its own context
// ends; that changes nothing for the others, nor for the work.
//
//	f, lead := group.Join(key)
//	if lead {
//		go func() { f.Land(work()) }()
//	}
//	v, err := f.Wait(ctx)
//
// It is golang.org/x/sync/singleflight with three differences: no caller runs the work, so no caller's cancellation
// can end it; [Group.Forget] is by identity, so a forgotten flight that lands late does not take down its
// successor; and work that nobody waits for any more can be told so, by [Group.Abandon].
package flight

import (
	"context"
	"sync"
)

// Group keeps the flights of one kind of work. The zero Group is ready.
type Group[T any] struct {
	// Abandon, set before use, makes a group forget a flight whose last waiter has left, and close its Abandoned.
	// Without it the work goes on, and who comes next joins it.
	Abandon bool

	mu      sync.Mutex // guards flights and what is said to be guarded in Flight
	flights map[string]*Flight[T]
}

// Flight is one piece of work and those who wait for it.
type Flight[T any] struct {
	group *Group[T]
	key   string

	waiting   int           // guarded by group.mu: joined and not yet back from Wait
	abandoned chan struct{} // closed when waiting is back at zero before the landing, in a group that abandons

	landed chan struct{} // closed when value and err are final
	value  T
	err    error
}

// Join returns the flight of key, and whether the caller has to see to its landing because it did not exist. Whoever
// joined must call Wait, once.
func (g *Group[T]) Join(key string) (f *Flight[T], lead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, lead = g.joinLocked(key)
	f.waiting++
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

// Wait returns what the flight brought, or ctx's error if that ends first. A flight that has landed is returned even
// if ctx is done as well.
func (f *Flight[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.landed:
	case <-ctx.Done():
		if f.leave() {
			var zero T
			return zero, ctx.Err()
		}
	}
	return f.value, f.err
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
	if f.waiting--; f.waiting == 0 && f.group.Abandon {
		f.forgetLocked() // who comes now finds work that is stopping: it begins its own
		close(f.abandoned)
	}
	return true
}

// Land ends the flight with the value or the error it brought, for all who wait. Every flight must land; once it has, another
// Land changes nothing.
func (f *Flight[T]) Land(value T, err error) {
	f.group.mu.Lock()
	defer f.group.mu.Unlock()
	select {
	case <-f.landed:
		return
	default:
	}
	f.value, f.err = value, err
	f.forgetLocked()
	close(f.landed)
}

// Abandoned is closed when the last one who waited has left before the landing, in a group that abandons.
func (f *Flight[T]) Abandoned() <-chan struct{} { return f.abandoned }

// forgetLocked takes f out of its group, unless another flight of the key has taken its place.
func (f *Flight[T]) forgetLocked() {
	if f.group.flights[f.key] == f {
		delete(f.group.flights, f.key)
	}
}
