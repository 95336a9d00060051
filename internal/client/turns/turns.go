// Package turns decides which calls are sent to a server, and when, if there are more calls than the client has connections. Waiting for the
// process's own calls is not a failure of the server.
//
//	trip.go   a trip: which reads go on it, and how it ends
//
// The time that a silent server may cost counts from the moment it was last heard. A caller that waits while others are answered waits for
// them. A caller that waits while nobody is answered waits for the server.
package turns

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// ErrCrowded says that a caller has waited for its turn as long as it may.
var ErrCrowded = errors.New("too many calls of this process are waiting for a connection to redis")

// ErrSilent says that a caller gave up waiting for its turn because the server answered nobody.
var ErrSilent = errors.New("redis answered nobody")

// Patience is how long a caller may wait. Zero: no limit.
type Patience struct {
	Most   time.Duration // in total: then the wait ends with ErrCrowded
	Silent time.Duration // while the server answers nobody: then the wait ends with ErrSilent
}

// Gate lets in as many callers as there are turns. The others wait, and enter in order of arrival when somebody leaves.
type Gate struct {
	size  int
	heard atomic.Int64 // when the server last answered anybody, as an instant

	mu          sync.Mutex // guards the fields below
	free        int
	first, last *waiter
}

// Owner is the owner of a waiting call, whose waiting [Gate.Dismiss] can end. Refused returns why its calls need not even wait, or nil.
type Owner interface{ Refused() error }

type waiter struct {
	of         Owner
	ready      chan error // receives one error: nil is a turn
	queued     bool
	prev, next *waiter
}

// New returns a gate with this many turns.
func New(size int) *Gate {
	size = max(size, 1)
	g := &Gate{size: size, free: size}
	g.heard.Store(math.MinInt64)
	return g
}

// Enter waits for a turn, as long as p allows, and returns how long that took. A caller that gets a turn must call Leave. Besides the errors
// of p, Enter returns ctx's error and the errors of Refused and Dismiss. A call without an owner cannot be dismissed.
func (g *Gate) Enter(ctx context.Context, of Owner, p Patience) (waited time.Duration, err error) {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return 0, nil
	}
	if of != nil {
		if err := of.Refused(); err != nil { // under mu: a later Dismiss finds the waiter
			g.mu.Unlock()
			return 0, err
		}
	}
	w := &waiter{of: of, ready: make(chan error, 1), queued: true, prev: g.last}
	if g.last == nil {
		g.first = w
	} else {
		g.last.next = w
	}
	g.last = w
	g.mu.Unlock()
	begun := time.Now()
	err = g.await(ctx, w, p, begun)
	return max(time.Since(begun), 1), err
}

func (g *Gate) await(ctx context.Context, w *waiter, p Patience, begun time.Time) error {
	var alarm *time.Timer
	var rings <-chan time.Time
	if p != (Patience{}) {
		first, _ := g.left(p, begun, begun)
		alarm = time.NewTimer(first)
		defer alarm.Stop()
		rings = alarm.C
	}
	var why error
	for why == nil {
		select {
		case err := <-w.ready:
			return err
		case <-ctx.Done():
			why = ctx.Err()
		case <-rings:
			var left time.Duration
			if left, why = g.left(p, begun, time.Now()); why == nil {
				alarm.Reset(left)
			}
		}
	}
	g.mu.Lock()
	queued := w.queued
	if queued {
		g.remove(w)
	}
	g.mu.Unlock()
	if !queued && <-w.ready == nil {
		g.Leave() // the turn came too late
	}
	return why
}

// left returns how much longer a caller that began to wait at since may wait, or why it may not.
func (g *Gate) left(p Patience, since, now time.Time) (time.Duration, error) {
	left := time.Duration(math.MaxInt64)
	if p.Most > 0 {
		if left = p.Most - now.Sub(since); left <= 0 {
			return 0, ErrCrowded
		}
	}
	if p.Silent > 0 {
		if left = min(left, g.Left(p.Silent, since, now)); left <= 0 {
			return 0, ErrSilent
		}
	}
	return left, nil
}

// Leave gives a turn back. The caller that has waited longest gets it.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.first
	if w == nil {
		g.free++
		return
	}
	g.remove(w)
	w.ready <- nil
}

// Dismiss ends the waiting of all calls of an owner.
func (g *Gate) Dismiss(of Owner, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for w := g.first; w != nil; {
		next := w.next
		if w.of == of {
			g.remove(w)
			w.ready <- why
		}
		w = next
	}
}

// remove takes w out of the queue. The caller holds mu.
func (g *Gate) remove(w *waiter) {
	if w.prev == nil {
		g.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		g.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next, w.queued = nil, nil, false
}

// Heard says that the server answered.
func (g *Gate) Heard(now time.Time) { g.heard.Store(instant(now)) }

// HeardSince reports whether the server has answered anybody since then.
func (g *Gate) HeardSince(t time.Time) bool { return g.heard.Load() >= instant(t) }

// Left returns what is left, at now, of a budget for a server's silence, for a caller that began to wait at since. It is less than the
// budget only if the server has answered nobody meanwhile.
func (g *Gate) Left(budget time.Duration, since, now time.Time) time.Duration {
	return budget - time.Duration(instant(now)-max(instant(since), g.heard.Load()))
}

// instant returns t as a number that changes of the wall clock do not move.
func instant(t time.Time) int64 { return int64(t.Sub(epoch)) }

var epoch = time.Now()
