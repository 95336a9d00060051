package localstore

import (
	"math/bits"
	"sync/atomic"
)

// entry is one key of a view. All fields except uses are written before the entry is published and never afterwards: to change
// a value, a writer publishes a new entry.
type entry[V any] struct {
	key      string
	deadline int64 // unix ms; with expiry.None it lives until evicted
	cost     int64
	id       uint32        // its slot
	uses     atomic.Uint32 // reads since the policy last looked, at most maxUses
	value    V
}

// table is a hash table that is read without a lock and written under the lock of its shard.
//
// It consists of buckets of one cache line: seven entries, and a word with one byte for each of them that holds eight bits
// of its hash (0: free). A reader finds the candidates of a bucket from that word alone, so that a hit touches only
// the line of the bucket and the line of the entry. An entry whose bucket is full goes to the next one. The eighth
// byte counts the entries that went past, so that a reader knows when to stop, and a delete leaves no tombstone.
//
// An entry never moves within a table. Growth fills a new table and publishes it when it is complete. A reader of
// the old table sees the state just before.
type table[V any] struct {
	buckets []bucket[V]
	len     int
}

const (
	perBucket = 7
	passedBy  = 56       // shift of the count of entries that went past
	passedMax = 1<<8 - 1 // a count that reaches this keeps it until the table is rebuilt
)

type bucket[V any] struct {
	tags    atomic.Uint64
	entries [perBucket]atomic.Pointer[entry[V]]
}

func newTable[V any](buckets int) *table[V] {
	return &table[V]{buckets: make([]bucket[V], buckets)}
}

// home is the bucket where the search for hash begins.
func (t *table[V]) home(hash uint32) int {
	return int(uint64(hash) * uint64(len(t.buckets)) >> 32)
}

func (t *table[V]) next(b int) int {
	if b++; b < len(t.buckets) {
		return b
	}
	return 0
}

// tagOf returns the byte of a hash that the bucket keeps; home uses the other end of the hash.
func tagOf(hash uint32) uint64 {
	if tag := uint64(hash & 0xff); tag != 0 {
		return tag
	}
	return 1
}

const (
	ones  = 0x0001_0101_0101_0101
	highs = 0x0080_8080_8080_8080
)

// matching returns a word with the high bit set in the bytes of tags that equal tag, and occasionally in another byte:
// the caller compares keys anyway.
func matching(tags, tag uint64) uint64 {
	x := tags ^ tag*ones
	return (x - ones) & ^x & highs
}

// find returns the entry of key, or nil.
func find[V any, K string | []byte](t *table[V], hash uint32, key K) *entry[V] {
	b := t.home(hash)
	tag := tagOf(hash)
	for range t.buckets {
		bucket := &t.buckets[b]
		tags := bucket.tags.Load()
		for m := matching(tags, tag); m != 0; m &= m - 1 {
			if e := bucket.entries[bits.TrailingZeros64(m)>>3].Load(); e != nil && e.key == string(key) {
				return e
			}
		}
		if tags>>passedBy == 0 {
			return nil
		}
		b = t.next(b)
	}
	return nil
}

// place returns where the entry of slot id is, or nil.
func (t *table[V]) place(hash, id uint32) (b, i int) {
	tag := tagOf(hash)
	b = t.home(hash)
	for range t.buckets {
		bucket := &t.buckets[b]
		tags := bucket.tags.Load()
		for m := matching(tags, tag); m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m) >> 3
			if e := bucket.entries[i].Load(); e != nil && e.id == id {
				return b, i
			}
		}
		if tags>>passedBy == 0 {
			break
		}
		b = t.next(b)
	}
	panic("localstore: a slot without its entry")
}

// full reports whether the table should grow before another insert.
func (t *table[V]) full() bool { return t.len >= len(t.buckets)*perBucket*6/7 }

// insert adds e, whose key is not in the table. The table is not full.
func (t *table[V]) insert(hash uint32, e *entry[V]) {
	b := t.home(hash)
	for {
		bucket := &t.buckets[b]
		tags := bucket.tags.Load()
		for i := range perBucket {
			if tags>>(8*i)&0xff == 0 {
				// The entry first: a reader that sees the tag must find it.
				bucket.entries[i].Store(e)
				bucket.tags.Store(tags | tagOf(hash)<<(8*i))
				t.passBy(hash, b, 1)
				t.len++
				return
			}
		}
		b = t.next(b)
	}
}

// passBy adds n to the counts of the buckets that had no room for an entry in bucket b. It is called after the entry is in
// its bucket, so that a reader that continues to b finds it there.
func (t *table[V]) passBy(hash uint32, b, n int) {
	for p := t.home(hash); p != b; p = t.next(p) {
		if tags := t.buckets[p].tags.Load(); tags>>passedBy < passedMax {
			t.buckets[p].tags.Store(tags + uint64(n)<<passedBy)
		}
	}
}

// replace puts e in the place of its slot's entry.
func (t *table[V]) replace(hash uint32, e *entry[V]) {
	b, i := t.place(hash, e.id)
	t.buckets[b].entries[i].Store(e)
}

// remove removes the entry of slot id and returns it.
func (t *table[V]) remove(hash, id uint32) *entry[V] {
	b, i := t.place(hash, id)
	bucket := &t.buckets[b]
	e := bucket.entries[i].Load()
	bucket.tags.Store(bucket.tags.Load() &^ (0xff << (8 * i)))
	bucket.entries[i].Store(nil)
	t.passBy(hash, b, -1)
	t.len--
	return e
}

// grown returns a copy with more room. hashOf returns the hash of a slot.
func (t *table[V]) grown(hashOf func(id uint32) uint32) *table[V] {
	g := newTable[V](len(t.buckets) + len(t.buckets)/2 + 1)
	t.each(func(e *entry[V]) bool {
		g.insert(hashOf(e.id), e)
		return true
	})
	return g
}

// each calls f for the entries until it returns false.
func (t *table[V]) each(f func(e *entry[V]) bool) {
	for b := range t.buckets {
		for i := range perBucket {
			if e := t.buckets[b].entries[i].Load(); e != nil && !f(e) {
				return
			}
		}
	}
}
