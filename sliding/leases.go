package sliding

import (
	"context"
	"errors"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/background"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// leases are the shares that a process has of the limits of keys. A key is here while it is used. What is unused of a share that ended goes back
// with the key's next trip or, if nobody asks for the key, by the sweeper, which runs while there are keys.
type leases[K comparable] struct {
	script sendonce.Script
	lease  time.Duration
	works  *background.Group
	give   func(ctx context.Context, all bool) error

	seed   maphash.Seed
	shards [16]shard[K]

	mu       sync.Mutex // guards what follows
	keys     int
	sweeping bool
}

type shard[K comparable] struct {
	mu   sync.RWMutex // guards keys
	keys map[K]*lessee
}

// lessee is one key.
type lessee struct {
	full  string
	share atomic.Pointer[share]

	mu      sync.Mutex // guards what follows
	trip    *trip      // under way
	wants   appetite
	since   time.Time // of the last trip
	asked   int64     // since then, beside what the share knows
	debts   []debt
	alone   time.Time // until then shares are not to be had, and calls are asked for one by one
	dropped bool      // it is no longer among the keys
}

// debt is a share that ended, and what is unused of it.
type debt struct {
	id     uint64
	unused int64
	ended  time.Time
}

func newLeases[K comparable](script sendonce.Script, lease time.Duration, give func(ctx context.Context, all bool) error) *leases[K] {
	ls := &leases[K]{script: script, lease: lease, works: background.New(mayfly.ErrClosed), give: give, seed: maphash.MakeSeed()}
	for i := range ls.shards {
		ls.shards[i].keys = make(map[K]*lessee)
	}
	return ls
}

func (ls *leases[K]) shard(key K) *shard[K] {
	return &ls.shards[maphash.Comparable(ls.seed, key)%uint64(len(ls.shards))]
}

// find returns what there is of key, or nil.
func (ls *leases[K]) find(key K) *lessee {
	s := ls.shard(key)
	s.mu.RLock()
	e := s.keys[key]
	s.mu.RUnlock()
	return e
}

// decide answers n calls of key, if that needs no trip. What it returns beside is nil if nothing is known of the key.
func (ls *leases[K]) decide(key K, n int) (d Decision, e *lessee, known bool) {
	if e = ls.find(key); e != nil {
		s := e.share.Load()
		d, known = s.decide(n, time.Now())
	}
	return d, e, known
}

// enter returns what there is of key, from now on, or nil if the limiter is closed.
func (ls *leases[K]) enter(key K, full string, limit int64) *lessee {
	if e := ls.find(key); e != nil {
		return e
	}
	s := ls.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.keys[key]; e != nil {
		return e
	}
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if !ls.sweeping && !ls.works.Start(ls.sweep) {
		return nil
	}
	e := &lessee{full: full, wants: appetite{lease: ls.lease, limit: limit}, since: time.Now()}
	s.keys[key] = e
	ls.sweeping = true
	ls.keys++
	return e
}

// endLocked ends what there is of a share, which no call is decided by then, and notes what is unused of it.
func (e *lessee) endLocked(now time.Time) {
	s := e.share.Load()
	if s == nil {
		return
	}
	e.asked += s.refused.Swap(0)
	if unused := s.calls.Swap(closed); unused >= 0 {
		e.asked += s.size - unused
		if s.size > 0 {
			e.debts = append(e.debts, debt{s.id, unused, now})
		}
	}
}

// paidLocked forgets debts that were paid.
func (e *lessee) paidLocked(debts []debt) {
	e.debts = slices.DeleteFunc(e.debts, func(d debt) bool { return slices.Contains(debts, d) })
}

// sweep gives back what is unused of shares that have ended, and forgets keys that nobody asks for, until there are none.
func (ls *leases[K]) sweep() {
	tick := time.NewTicker(max(ls.lease/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ls.works.Closing():
			ls.mu.Lock()
			ls.sweeping = false // so that no key enters any more
			ls.mu.Unlock()
			return
		}
		ls.give(ls.works.Context(), false) // what fails is tried again
		ls.mu.Lock()
		ls.sweeping = ls.keys > 0
		goesOn := ls.sweeping
		ls.mu.Unlock()
		if !goesOn {
			return
		}
	}
}

// close ends the work in the background, and gives back all shares.
func (ls *leases[K]) close(ctx context.Context) error {
	return errors.Join(ls.works.Close(ctx), ls.give(ctx, true))
}
