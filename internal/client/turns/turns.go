// Package turns decides who is sent to a server, and when, where more want to be than a client has connections. Waiting for
// others of one's own is no failure of the server.
//
//	turns.go  the gate: as many turns as there are connections, in the order of arrival
//	line.go   the line of those who only want to read: they wait together, and travel together
//	trip.go   a trip: who goes on it, and how it ends
//
// What a server that is silent may cost is counted from the moment at which somebody last heard it: who waits while others are
// answered waits for them, and who waits while nobody is waits for the server.
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
var ErrCrowded = errors.New("too many calls wait for a connection to redis: the client is crowded, by its own callers")

// ErrSilent says that a caller who waited for its turn gave the server up, as it answered nobody.
var ErrSilent = errors.New("redis answered nobody")

// Patience is what a wait may cost. Zeros are without end.
type Patience struct {
	Most   time.Duration // in all: then it ends with ErrCrowded
	Silent time.Duration // while the server answers nobody: then it ends with ErrSilent
}

// Gate lets as many in as there are turns. Those who wait come in the order of arrival, as soon as somebody leaves.
type Gate struct {
	size  int
	heard atomic.Int64 // the instant at which the server last answered anybody

	mu          sync.Mutex // guards what follows
	free        int
	first, last *waiter
}

// Owner is who waits at a gate, and may be sent away by [Gate.Dismiss]. Refused says why it need not wait at all, or nothing.
type Owner interface{ Refused() error }

type waiter struct {
	of         Owner
	ready      chan error // gets one: nil is a turn
	queued     bool
	prev, next *waiter
}

// New returns a gate of so many turns.
func New(size int) *Gate {
	size = max(size, 1)
	g := &Gate{size: size, free: size}
	g.heard.Store(math.MinInt64)
	return g
}

// Enter waits for a turn, as long as p allows, and tells how long that took. Whoever got one must Leave. The other errors are ctx's, and
// what of was refused or dismissed with; without an owner nobody can be.
func (g *Gate) Enter(ctx context.Context, of Owner, p Patience) (waited time.Duration, err error) {
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return 0, nil
	}
	if of != nil {
		if err := of.Refused(); err != nil { // now, as a Dismiss that comes later finds who waits
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

// left is how much longer somebody may wait who waits since then, or why not.
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

// Leave gives a turn back, or to who has waited longest.
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

// Dismiss ends the waiting of all that is of's.
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

// remove takes w out of those who wait. The caller holds mu.
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

// Left is what is left at now of a budget for a server's silence, for who waits since then. It is less than the budget only if the
// server has answered nobody meanwhile.
func (g *Gate) Left(budget time.Duration, since, now time.Time) time.Duration {
	return budget - time.Duration(instant(now)-max(instant(since), g.heard.Load()))
}

// instant is t as a number that a change of the wall clock does not move.
func instant(t time.Time) int64 { return int64(t.Sub(epoch)) }

var epoch = time.Now()
