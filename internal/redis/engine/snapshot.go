package engine

import (
	"slices"
	"strconv"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// A Snapshot is the data as they were when it was begun, in the form of an RDB file, taken piece by piece while commands go on changing
// them. What a command is about to change and the snapshot has not come to is written before the change (preserve); what is new is passed over.
// Redis has a process forked for this; we pay with one look at each key that a write touches meanwhile.
type Snapshot struct {
	e       *Engine
	parts   []*part
	version int  // of the form: the oldest that has what the data need
	head    bool // the header was written
	stream  int  // which database the stream behind it begins in; -1: it says so itself
}

// part is what a snapshot has still to write of one keyspace.
type part struct {
	db     int       // its number at the beginning, whatever SWAPDB did since
	of     *keyspace // it follows the keyspace through SWAPDB and beyond FLUSHDB
	keys   int
	timed  int    // keys with a deadline
	slots  uint32 // those from here on are new
	next   uint32 // those before are written
	done   []uint64
	early  []byte // keys that had to be written before their turn
	opened bool   // the size was written
}

// Snapshot begins one. The caller calls Next until it says that all is written, or End.
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

// Next appends about size bytes to b, and reports whether there is more to come. What is appended last ends with the checksum's place:
// rdb.AppendEnd is the caller's.
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
		for p.next < min(p.slots, p.of.slots) { // pages at the end that are empty are given back
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

// End forgets a snapshot, complete or not.
func (s *Snapshot) End() {
	for _, p := range s.parts {
		p.leave()
	}
	s.parts = nil
	s.e.copies = slices.DeleteFunc(s.e.copies, func(other *Snapshot) bool { return other == s })
}

// open appends which database keys are of; before the first of them also how many there are.
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

// append appends a key and what it holds.
func (p *part) append(b []byte, o *object) []byte {
	if deadline := p.of.deadline(o); deadline != 0 {
		b = rdb.AppendDeadline(b, deadline)
	}
	return appendKeyed(b, o)
}

func (p *part) leave() {
	p.of.parts = slices.DeleteFunc(p.of.parts, func(other *part) bool { return other == p })
}

// has reports whether the object in this slot is written, or too new to be.
func (p *part) has(id uint32) bool {
	return id < p.next || id >= p.slots || p.done[id/64]>>(id%64)&1 == 1
}

// skip says that what is in this slot from now on is not the snapshot's.
func (p *part) skip(id uint32) {
	if id < p.slots {
		p.done[id/64] |= 1 << (id % 64)
	}
}

// preserve is called before o is changed or dropped: snapshots that have not come to it write it now.
func (k *keyspace) preserve(o *object) {
	for _, p := range k.parts {
		if o.kind() != values.Missing && !p.has(o.id) {
			p.skip(o.id)
			p.early = p.append(p.early, o)
		}
	}
}

// leave empties the keyspace of d. A snapshot goes on with what was there.
func (d *db) leave() {
	if len(d.parts) > 0 {
		old := d.keyspace
		old.settle()
	}
	d.keyspace = keyspace{}
}

// settle tells the snapshots of a keyspace that it has another place in memory.
func (k *keyspace) settle() {
	for _, p := range k.parts {
		p.of = k
	}
}
