package localstore

import (
	"hash/maphash"
	"runtime"
	"sync/atomic"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// Values is a typed view of a store. It has its own keys: two views of one store may hold the same key, with values of
// different types. It is safe for concurrent use.
type Values[V any] struct {
	store  *Store
	number uint16
	reads  readCounters
	tables []atomic.Pointer[table[V]] // by shard
}

// NewValues opens a view of s, which exists as long as the store.
func NewValues[V any](s *Store) *Values[V] {
	v := &Values[V]{store: s, reads: newReadCounters(runtime.GOMAXPROCS(0)), tables: make([]atomic.Pointer[table[V]], len(s.shards))}
	for i := range v.tables {
		v.tables[i].Store(newTable[V](1))
	}
	v.number = s.add(v)
	return v
}

// Get returns the value of key and its deadline, which is expiry.None if it has none. A value that is dead at now is absent.
//
// It allocates nothing, takes no lock and does not keep key. The value is the stored one: if a caller changes what it
// points to, that changes for everybody.
func (v *Values[V]) Get(key string, now int64) (value V, deadline int64, ok bool) {
	h := maphash.String(v.store.seed, key)
	if e := find(v.tables[h>>v.store.shift].Load(), uint32(h), key); v.alive(e, now) {
		return e.value, e.deadline, true
	}
	return value, 0, false
}

// At is Get for a key in a buffer, and for large values: it returns a pointer to the stored value, or nil if the key is
// absent. The value behind the pointer stays the same even when the key gets another value, and must not be changed.
func (v *Values[V]) At(key []byte, now int64) *V {
	h := maphash.Bytes(v.store.seed, key)
	if e := find(v.tables[h>>v.store.shift].Load(), uint32(h), key); v.alive(e, now) {
		return &e.value
	}
	return nil
}

// alive reports whether a reader has found a living entry, and counts the read.
func (v *Values[V]) alive(e *entry[V], now int64) bool {
	if e == nil || expiry.Dead(e.deadline, now) {
		v.reads.miss()
		return false
	}
	if n := e.uses.Load(); n < maxUses { // two readers may count as one: the count is an estimate
		e.uses.Store(n + 1)
	}
	v.reads.hit()
	return true
}

// Outcome is the result of a Set or an Insert.
type Outcome uint8

const (
	Stored   Outcome = iota
	Expired          // the deadline was in the past: the key is absent now, as after a Delete
	Refused          // the entry alone is larger than the store: the key is absent now
	Outdated         // Insert: the key was changed since the ticket was drawn, and nothing was inserted
)

// Set adds the value, or replaces the present one, whether older or newer. cost is the size of the value in bytes; the
// store adds the size of the key and its own overhead. The store keeps key and value.
//
// Whatever the outcome, an older value of key is gone.
func (v *Values[V]) Set(key string, value V, cost, deadline, now int64) Outcome {
	return v.put(key, value, cost, deadline, now, func() bool { return true })
}

func (v *Values[V]) put(key string, value V, cost, deadline, now int64, current func() bool) Outcome {
	v.store.sweep(now)
	i, hash := v.store.hash(key)
	sh := &v.store.shards[i]
	cost = entryCost(key, cost)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if !current() {
		return Outdated
	}
	if expiry.Dead(deadline, now) {
		v.deleteLocked(sh, hash, key)
		return Expired
	}
	if cost > v.store.maxBytes {
		v.deleteLocked(sh, hash, key)
		sh.tally.Refused++
		return Refused
	}
	old, reserved, entries := v.room(sh, hash, key, cost, now)
	if !current() { // room may have released the lock, and a change is counted without it
		v.deleteLocked(sh, hash, key) // first, since the reservation is negative if an entry shrinks
		v.store.release(reserved, entries)
		return Outdated
	}
	v.publish(sh, hash, old, &entry[V]{key: key, deadline: deadline, cost: cost, value: value})
	return Stored
}

// room reserves what an entry of key needs beyond what it already has, and returns the present entry, or nil. It may
// release the lock of the shard on the way, but not after it looked up that entry. So the caller asks between room and
// publish whether the value may be stored at all: nothing can happen between the answer and the insertion. If the answer is no,
// the caller must release the reservation.
func (v *Values[V]) room(sh *shard, hash uint32, key string, cost, now int64) (old *entry[V], reserved, entries int64) {
	for {
		var had int64
		entries = 1
		if old = find(v.tables[sh.number].Load(), hash, key); old != nil {
			had, entries = old.cost, 0
		}
		if v.store.reserve(cost-had, entries) {
			return old, cost - had, entries
		}
		v.store.makeRoom(sh, now) // which may evict old
	}
}

// publish puts e, for which there is room, in place of old or in a new slot.
func (v *Values[V]) publish(sh *shard, hash uint32, old, e *entry[V]) {
	if old != nil {
		e.key, e.id = old.key, old.id
		e.uses.Store(old.uses.Load())
		v.tables[sh.number].Load().replace(hash, e)
	} else {
		e.id = sh.claim(v.number, hash)
		v.insert(sh, hash, e)
		sh.policy.admit(e.id)
	}
	sh.deadlines.Set(e.id, e.deadline)
}

func (v *Values[V]) insert(sh *shard, hash uint32, e *entry[V]) {
	t := v.tables[sh.number].Load()
	if t.full() {
		t = t.grown(func(id uint32) uint32 { return sh.policy.slots[id].hash })
		v.tables[sh.number].Store(t)
	}
	t.insert(hash, e)
}

func (v *Values[V]) deleteLocked(sh *shard, hash uint32, key string) {
	if id, cost, ok := v.dropKey(sh.number, hash, key); ok {
		sh.forget(id, cost)
	}
}

// Clear removes all keys of this view and returns their number. A key that is set meanwhile may stay.
func (v *Values[V]) Clear() int {
	n := 0
	for i := range v.store.shards {
		n += v.store.shards[i].clear(v.number, v, "")
	}
	return n
}

// Hits returns a function that counts this view's hits so far. The function keeps nothing else of the view alive.
func (v *Values[V]) Hits() func() uint64 {
	reads := v.reads
	return func() uint64 { return reads.sum().Hits }
}

// The methods of shelf.

func (v *Values[V]) counted() Stats { return v.reads.sum() }

func (v *Values[V]) take(shard int, hash, id, most uint32) uint32 {
	t := v.tables[shard].Load()
	b, i := t.place(hash, id)
	e := t.buckets[b].entries[i].Load()
	n := e.uses.Load()
	if n != 0 {
		e.uses.Store(n - min(n, most))
	}
	return n
}

func (v *Values[V]) drop(shard int, hash, id uint32) int64 {
	return v.tables[shard].Load().remove(hash, id).cost
}

func (v *Values[V]) dropKey(shard int, hash uint32, key string) (id uint32, cost int64, ok bool) {
	t := v.tables[shard].Load()
	e := find(t, hash, key)
	if e == nil {
		return 0, 0, false
	}
	t.remove(hash, e.id)
	return e.id, e.cost, true
}

func (v *Values[V]) each(shard int, f func(key string, id uint32) bool) {
	v.tables[shard].Load().each(func(e *entry[V]) bool { return f(e.key, e.id) })
}
