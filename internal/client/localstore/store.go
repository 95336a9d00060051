// Package localstore is this process's memory in front of Redis: typed values under one budget, each with a deadline.
//
// A [Store] owns the budget, the deadlines and the eviction policy. A [Values] is a typed view of it: every
// namespace has its own view with its own value type, and all views share the bytes of one store.
//
//	store, err := localstore.New(localstore.Options{MaxBytes: 64 << 20})
//	users := localstore.NewValues[*User](store)
//	users.Set("user:7", u, cost, now+60_000, now)
//	u, deadline, ok := users.Get("user:7", now)
//
// One budget serves many types without boxing values. Each view has hash tables of its own, whose entries are generic
// (entry[V], one allocation with the value inside). The store knows an entry by its slot, a small number. Its bookkeeping (the
// queues of the policy, the index of deadlines) consists of arrays of numbers without pointers, so that the garbage
// collector does not scan it. When the store has to touch an entry, which is rare, it asks the view to.
//
// A read takes no lock. It loads the table, compares, and writes at most the entry's use counter, which
// stops at three: an entry that is read all the time is soon not written at all. A writer takes the lock of one shard.
//
// Time is an argument, in unix milliseconds, and nothing here starts a goroutine. Dead entries are invisible to readers
// at once. Later writes give their memory back, or [Store.Reap] if there are no writes.
package localstore

import (
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
)

// Overhead is what an entry takes beyond its key and its value: the entry itself, its place in the table and in the
// bookkeeping. Set adds it, so that MaxBytes is close to what the process really uses.
const Overhead = 112

// Options bound a store. At least one bound must be set.
type Options struct {
	MaxBytes   int64 // the sum of all costs, keys and Overhead included; 0: not bounded by bytes
	MaxEntries int   // 0: not bounded by number
}

// Store holds the entries of all its views within one budget. It is safe for concurrent use.
type Store struct {
	maxBytes, maxEntries int64
	bytes, entries       atomic.Int64 // reserved before an entry becomes visible, so that visible entries never exceed the bounds
	seed                 maphash.Seed
	shift                uint // hash >> shift selects the shard
	shards               []shard
	swept                atomic.Int64 // when a write last swept, unix ms
	changes              [stripes]atomic.Uint64

	mu    sync.Mutex              // guards the growth of views
	views atomic.Pointer[[]shelf] // by slot.view
}

// shelf is what the store requires of a view, for entries that it knows only by their slots. The caller holds the lock of the
// shard.
type shelf interface {
	// take takes up to most from the entry's use counter and returns the former count.
	take(shard int, hash, id, most uint32) uint32
	// drop removes the entry and returns its cost.
	drop(shard int, hash, id uint32) int64
	// dropKey removes the entry of key, if there is one, and returns its slot.
	dropKey(shard int, hash uint32, key string) (id uint32, cost int64, ok bool)
	// counted returns how often the view was read.
	counted() Stats
	// each calls f for the entries of the shard until it returns false. f must not change the table.
	each(shard int, f func(key string, id uint32) bool)
}

// New returns an empty store.
func New(o Options) (*Store, error) {
	if o.MaxBytes < 0 {
		return nil, fmt.Errorf("localstore: Options.MaxBytes must not be negative, got %d", o.MaxBytes)
	}
	if o.MaxEntries < 0 || int64(o.MaxEntries) > math.MaxInt32 {
		return nil, fmt.Errorf("localstore: Options.MaxEntries must be in 0..%d, got %d", math.MaxInt32, o.MaxEntries)
	}
	if o.MaxBytes == 0 && o.MaxEntries == 0 {
		return nil, fmt.Errorf("localstore: Options.MaxBytes or Options.MaxEntries must be set")
	}
	s := &Store{maxBytes: o.MaxBytes, maxEntries: int64(o.MaxEntries), seed: maphash.MakeSeed()}
	if s.maxBytes == 0 {
		s.maxBytes = math.MaxInt64
	}
	if s.maxEntries == 0 {
		s.maxEntries = math.MaxInt32
	}
	n := shardsFor(s.maxBytes, s.maxEntries, runtime.GOMAXPROCS(0))
	s.shift = uint(64 - bits.Len(uint(n-1)))
	s.shards = make([]shard, n)
	for i := range s.shards {
		s.shards[i].init(s, i)
	}
	s.views.Store(new([]shelf))
	return s, nil
}

// shardsFor returns a power of two: enough shards that writers rarely contend, but each large enough that the policy of
// one shard sees a representative part of the workload. A store of fewer than two thousand entries has one shard.
func shardsFor(maxBytes, maxEntries int64, procs int) int {
	const perShard = 1024
	entries := min(maxEntries, maxBytes/(2*Overhead))
	n := 1
	for n < 4*procs && n < 256 && entries/int64(2*n) >= perShard {
		n *= 2
	}
	return n
}

func (s *Store) hash(key string) (shard int, hash uint32) {
	h := maphash.String(s.seed, key)
	return int(h >> s.shift), uint32(h)
}

// add registers v with the store.
func (s *Store) add(v shelf) (view uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := *s.views.Load()
	if len(old) > math.MaxUint16 {
		panic("localstore: more than 65,536 views of one store")
	}
	views := append(old[:len(old):len(old)], v)
	s.views.Store(&views)
	return uint16(len(old))
}

// reserve takes bytes and entries out of the budget, or nothing if they do not fit.
func (s *Store) reserve(bytes, entries int64) bool {
	for {
		had := s.bytes.Load()
		if bytes > 0 && had > s.maxBytes-bytes {
			return false
		}
		if s.bytes.CompareAndSwap(had, had+bytes) {
			break
		}
	}
	if s.entries.Add(entries) > s.maxEntries && entries > 0 {
		s.release(bytes, entries)
		return false
	}
	return true
}

// release gives bytes and entries back.
func (s *Store) release(bytes, entries int64) {
	s.bytes.Add(-bytes)
	s.entries.Add(-entries)
}

// Delete removes key from every view and reports whether one had it.
func (s *Store) Delete(key string) bool {
	i, hash := s.hash(key)
	sh := &s.shards[i]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	found := false
	for _, v := range *s.views.Load() {
		if id, cost, ok := v.dropKey(i, hash, key); ok {
			sh.forget(id, cost)
			found = true
		}
	}
	return found
}

// Clear removes the keys that begin with prefix, in every view, and returns their number. It looks at every entry, shard by
// shard: a key that is set meanwhile may stay.
func (s *Store) Clear(prefix string) int {
	n := 0
	for i := range s.shards {
		for view, v := range *s.views.Load() {
			n += s.shards[i].clear(uint16(view), v, prefix)
		}
	}
	return n
}

// Len returns the number of entries, including dead ones that were not reaped yet.
func (s *Store) Len() int { return int(s.entries.Load()) }

// Bytes returns how much of the budget is used.
func (s *Store) Bytes() int64 { return s.bytes.Load() }
