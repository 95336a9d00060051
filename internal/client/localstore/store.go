// Package localstore is the memory of this process in front of Redis: typed values under one budget, each with its end.
//
// A [Store] owns the budget, the deadlines and the choice of what to evict. A [Values] is a typed door to it: every
// namespace has its own view and its own value type, all views share the bytes of one store.
//
//	store, err := localstore.New(localstore.Options{MaxBytes: 64 << 20})
//	users := localstore.NewValues[*User](store)
//	users.Set("user:7", u, cost, now+60_000, now)
//	u, deadline, ok := users.Get("user:7", now)
//
// How one budget serves many types without boxing a value: a view has hash tables of its own, whose entries are generic
// (entry[V], one allocation with the value inside). The store knows an entry by a slot, a small number; its books (the
// queues of the policy, the index of deadlines) are arrays of numbers, without a pointer in them, so that the garbage
// collector does not walk them. The few times the store has to touch an entry, it asks the view to.
//
// A read takes no lock. It loads the table, compares, and writes at most the use counter of the entry, which
// stops at three: an entry that is read all the time is soon not written at all. Writers take the lock of one shard.
//
// Time is an argument, in unix milliseconds; nothing here starts a goroutine. Dead entries are invisible to readers
// at once, and their memory is given back by the writes that follow, or by [Store.Reap] when there are none.
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

// Overhead is what an entry costs beyond its key and its value: the entry itself, its place in the table and in the
// books. Set adds it, so that MaxBytes is about what the process really spends.
const Overhead = 112

// Options bound a store. At least one bound must be set.
type Options struct {
	MaxBytes   int64 // the sum of all costs, keys and Overhead included; 0: not bounded by bytes
	MaxEntries int   // 0: not bounded by number
}

// Store holds the entries of all its views within one budget. It is safe for concurrent use.
type Store struct {
	maxBytes, maxEntries int64
	bytes, entries       atomic.Int64 // reserved before an entry is visible: what readers can see never exceeds the bounds
	seed                 maphash.Seed
	shift                uint // hash >> shift is the shard
	shards               []shard
	swept                atomic.Int64 // when a write last swept, unix ms
	changes              [stripes]atomic.Uint64

	mu    sync.Mutex              // guards the growth of views
	views atomic.Pointer[[]shelf] // by slot.view
}

// shelf is what the store asks of a view about an entry it knows only by its slot. The caller holds the lock of the
// shard.
type shelf interface {
	// take takes up to most from the use counter of the entry and returns what it was.
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

// New makes an empty store.
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

// shardsFor returns a power of two: enough shards that writers seldom meet, but each large enough that the policy of
// one shard sees the whole workload in small. A store of less than two thousand entries has one.
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

// add makes v known to the store.
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

// Clear removes the keys that begin with prefix, in every view, and returns how many. It looks at every entry, shard by
// shard: what is set meanwhile may stay.
func (s *Store) Clear(prefix string) int {
	n := 0
	for i := range s.shards {
		for view, v := range *s.views.Load() {
			n += s.shards[i].clear(uint16(view), v, prefix)
		}
	}
	return n
}

// Len returns how many entries are held, dead ones that were not reaped yet included.
func (s *Store) Len() int { return int(s.entries.Load()) }

// Bytes returns what is spent of the budget.
func (s *Store) Bytes() int64 { return s.bytes.Load() }
