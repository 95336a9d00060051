package localstore

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Stats counts what happened since the store was made.
type Stats struct {
	Hits, Misses uint64
	Evictions    uint64 // entries that left to make room
	Expired      uint64 // entries whose memory was taken back after their deadline
	Refused      uint64 // entries larger than the store
}

// Stats adds up the counters. Do not call it on every request.
func (s *Store) Stats() Stats {
	sum := s.reads()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sum.Evictions += sh.tally.Evictions
		sum.Expired += sh.tally.Expired
		sum.Refused += sh.tally.Refused
		sh.mu.Unlock()
	}
	return sum
}

// Dead returns how many dead entries still take memory.
func (s *Store) Dead(now int64) (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += sh.deadlines.Figures(now).Dead
		sh.mu.Unlock()
	}
	return n
}

// Reads returns how often the store was read. It is cheap enough to ask many times a second.
func (s *Store) Reads() uint64 {
	sum := s.reads()
	return sum.Hits + sum.Misses
}

func (s *Store) reads() (sum Stats) {
	for _, v := range *s.views.Load() {
		n := v.counted()
		sum.Hits += n.Hits
		sum.Misses += n.Misses
	}
	return sum
}

// readCounters count hits and misses without contention between readers. There are more counters than processors, and the
// address of a goroutine's stack selects its counter, so that a goroutine stays with one cache line.
type readCounters struct {
	shift    uint
	counters []readCounter
}

type readCounter struct {
	hits, misses atomic.Uint64
	_            [112]byte // two lines: processors fetch them in pairs
}

func newReadCounters(procs int) readCounters {
	n := bits.Len(uint(8*procs - 1))
	return readCounters{uint(64 - n), make([]readCounter, 1<<n)}
}

func (c *readCounters) mine() *readCounter {
	var here byte
	stack := uint64(uintptr(unsafe.Pointer(&here)) >> 11) // a number, never a pointer again
	return &c.counters[stack*0x9e3779b97f4a7c15>>c.shift]
}

func (c *readCounters) hit()  { c.mine().hits.Add(1) }
func (c *readCounters) miss() { c.mine().misses.Add(1) }

func (c *readCounters) sum() Stats {
	var s Stats
	for i := range c.counters {
		s.Hits += c.counters[i].hits.Load()
		s.Misses += c.counters[i].misses.Load()
	}
	return s
}
