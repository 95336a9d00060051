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

// leases are a process's shares of the limits of keys. A key is here while it is used. The unused calls of an ended share go back with the key's
// next trip or, if nobody asks for the key, by the sweeper, which runs while there are keys.
type leases[K comparable] struct {
	script sendonce.Script
	lease  time.Duration
	works  *background.Group
	give   func(ctx context.Context, all bool) error

	seed   maphash.Seed
	shards [16]shard[K]

	mu       sync.Mutex // guards the fields below
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

	mu      sync.Mutex // guards the fields below
	trip    *trip      // the trip under way, or nil
	wants   appetite
	since   time.Time // of the last trip
	asked   int64     // calls asked for since then that the share does not count
	debts   []debt
	alone   time.Time // until then there are no shares, and each call asks Redis
	dropped bool      // it is no longer among the keys
}

// debt is an ended share with its number of unused calls.
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

// find returns the lessee of key, or nil.
func (ls *leases[K]) find(key K) *lessee {
	s := ls.shard(key)
	s.mu.RLock()
	e := s.keys[key]
	s.mu.RUnlock()
	return e
}

// decide answers n calls of key, if that needs no trip. e is nil if the process holds nothing of the key.
func (ls *leases[K]) decide(key K, n int) (d Decision, e *lessee, known bool) {
	if e = ls.find(key); e != nil {
		s := e.share.Load()
		d, known = s.decide(n, time.Now())
	}
	return d, e, known
}

// enter returns the lessee of key, which it adds if necessary, or nil if the limiter is closed.
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

// endLocked ends the current share, if any. It runs when no call can use the share any more, and records the unused calls as a debt.
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

// paidLocked removes debts that were paid.
func (e *lessee) paidLocked(debts []debt) {
	e.debts = slices.DeleteFunc(e.debts, func(d debt) bool { return slices.Contains(debts, d) })
}

// sweep gives back the unused calls of ended shares, and forgets keys that nobody asks for, until no keys are left.
func (ls *leases[K]) sweep() {
	tick := time.NewTicker(max(ls.lease/2, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ls.works.Closing():
			ls.mu.Lock()
			ls.sweeping = false // so that no more keys enter
			ls.mu.Unlock()
			return
		}
		ls.give(ls.works.Context(), false) // a later sweep repeats what fails
		ls.mu.Lock()
		ls.sweeping = ls.keys > 0
		goesOn := ls.sweeping
		ls.mu.Unlock()
		if !goesOn {
			return
		}
	}
}

// close ends the background work, and gives back all shares.
func (ls *leases[K]) close(ctx context.Context) error {
	return errors.Join(ls.works.Close(ctx), ls.give(ctx, true))
}
