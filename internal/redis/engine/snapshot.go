package engine

import (
	"slices"
	"strconv"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// A Snapshot is the data as they were when it began, in the form of an RDB file, taken piece by piece while commands go on changing the data.
// Before a command changes a key that the snapshot has not reached, the snapshot writes that key (preserve); new keys are skipped. Redis
// forks a process for this; our cost is one check of each key that a write touches meanwhile.
type Snapshot struct {
	e       *Engine
	parts   []*part
	version int  // the oldest RDB version that can hold the data
	head    bool // the header was written
	stream  int  // the database in which the stream behind it begins; -1: the stream says so itself
}

// part is what a snapshot still has to write of one keyspace.
type part struct {
	db     int       // its number at the beginning, regardless of later SWAPDBs
	of     *keyspace // followed through SWAPDB, and kept after FLUSHDB
	keys   int
	timed  int    // keys with a deadline
	slots  uint32 // slots from here on are new
	next   uint32 // slots before this are written
	done   []uint64
	early  []byte // keys written before their turn
	opened bool   // the size was written
}

// Snapshot begins a snapshot. The caller calls Next until everything is written, or End.
func (e *Engine) Snapshot() *Snapshot {
	s := &Snapshot{e: e, version: rdb.Plain, stream: -1}
	for _, d := range e.dbs {
		if d.len() == 0 {
			continue
		}
		p := &part{
			db: d.index, of: &d.keyspace, keys: d.len(), timed: d.deadlines.Len(), slots: d.slots, done: make([]uint64, d.slots/64+1),
		}
		if d.fields.Len() > 0 {
			s.version = rdb.Timed
		}
		d.parts = append(d.parts, p)
		s.parts = append(s.parts, p)
	}
	e.copies = append(e.copies, s)
	return s
}

// Next appends about size bytes to b, and reports whether there is more to come. The last piece ends before the checksum, which the caller
// adds with rdb.AppendEnd.
func (s *Snapshot) Next(b []byte, size int) (_ []byte, more bool) {
	if !s.head {
		s.head = true
		aux := []string{"redis-ver", Version, "redis-bits", "64", "ctime", decimalText(s.e.now / 1e6)}
		if s.stream >= 0 {
			aux = append(aux, "repl-stream-db", strconv.Itoa(s.stream))
		}
		b = rdb.AppendHeader(b, s.version, aux...)
	}
	end := len(b) + size
	for _, p := range s.parts {
		b = p.open(b)
		b = append(b, p.early...)
		p.early = p.early[:0]
	}
	for len(s.parts) > 0 {
		p := s.parts[0]
		b = rdb.AppendSelect(b, p.db)
		for p.next < min(p.slots, p.of.slots) { // empty pages at the end may have been released
			if len(b) >= end {
				return b, true
			}
			if !p.has(p.next) {
				if o := p.of.at(p.next); o.kind() != values.Missing {
					b = p.append(b, o)
				}
			}
			p.next++
		}
		p.leave()
		s.parts = s.parts[1:]
	}
	s.End()
	return b, false
}

// End drops a snapshot, complete or not.
func (s *Snapshot) End() {
	for _, p := range s.parts {
		p.leave()
	}
	s.parts = nil
	s.e.copies = slices.DeleteFunc(s.e.copies, func(other *Snapshot) bool { return other == s })
}

// open appends the database number of the keys and, before the first of them, how many there are.
func (p *part) open(b []byte) []byte {
	if p.opened && len(p.early) == 0 {
		return b
	}
	b = rdb.AppendSelect(b, p.db)
	if !p.opened {
		p.opened = true
		b = rdb.AppendSizes(b, p.keys, p.timed)
	}
	return b
}

// append appends a key and its value.
func (p *part) append(b []byte, o *object) []byte {
	if deadline := p.of.deadline(o); deadline != 0 {
		b = rdb.AppendDeadline(b, deadline)
	}
	return appendKeyed(b, o)
}

func (p *part) leave() {
	p.of.parts = slices.DeleteFunc(p.of.parts, func(other *part) bool { return other == p })
}

// has reports whether the object in this slot is already written or too new to be.
func (p *part) has(id uint32) bool {
	return id < p.next || id >= p.slots || p.done[id/64]>>(id%64)&1 == 1
}

// skip excludes whatever is in this slot from now on from the snapshot.
func (p *part) skip(id uint32) {
	if id < p.slots {
		p.done[id/64] |= 1 << (id % 64)
	}
}

// preserve is called before o is changed or dropped: snapshots that have not reached it write it now.
func (k *keyspace) preserve(o *object) {
	for _, p := range k.parts {
		if o.kind() != values.Missing && !p.has(o.id) {
			p.skip(o.id)
			p.early = p.append(p.early, o)
		}
	}
}

// leave empties the keyspace of d. Snapshots continue with the old contents.
func (d *db) leave() {
	if len(d.parts) > 0 {
		old := d.keyspace
		old.settle()
	}
	d.keyspace = keyspace{}
}

// settle tells the snapshots of a keyspace that its struct has moved in memory.
func (k *keyspace) settle() {
	for _, p := range k.parts {
		p.of = k
	}
}
