package values

import (
	"encoding/binary"
	"slices"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// pack is the small form of a hash: its entries one after another in one piece of memory, searched from the front. Each entry is a length and
// a field, then a length and a value; in a timed pack also an eight-byte deadline. A timed pack is in the order of deadlines, fields without
// one at the end, so dead fields are always at the front; any other pack is in insertion order.
type pack struct {
	b     []byte
	n     int
	timed bool
}

// entry holds the positions of one entry in a pack.
type entry struct{ start, field, fieldEnd, value, valueEnd, end int }

func (p *pack) clone() pack {
	c := *p
	c.b = slices.Clone(p.b)
	return c
}

// entry returns the entry that begins at at.
func (p *pack) entry(at int) entry {
	e := entry{start: at}
	n, at := p.length(at)
	e.field, e.fieldEnd = at, at+n
	n, at = p.length(e.fieldEnd)
	e.value, e.valueEnd = at, at+n
	e.end = e.valueEnd + p.tail()
	return e
}

// tail is the size of what follows an entry's value.
func (p *pack) tail() int {
	if p.timed {
		return 8
	}
	return 0
}

// length reads a length and returns the position after it.
func (p *pack) length(at int) (n, next int) {
	if c := p.b[at]; c < 0x80 {
		return int(c), at + 1
	}
	return p.longLength(at)
}

func (p *pack) longLength(at int) (n, next int) {
	u, size := binary.Uvarint(p.b[at:])
	return int(u), at + size
}

func (p *pack) field(e entry) []byte { return p.b[e.field:e.fieldEnd:e.fieldEnd] }
func (p *pack) value(e entry) []byte { return p.b[e.value:e.valueEnd:e.valueEnd] }

func (p *pack) deadline(e entry) int64 {
	if !p.timed {
		return expiry.None
	}
	return int64(binary.LittleEndian.Uint64(p.b[e.valueEnd:]))
}

func (p *pack) find(field []byte) (e entry, ok bool) {
	tail := p.tail()
	for at := 0; at < len(p.b); {
		n, i := p.length(at)
		if n == len(field) && string(p.b[i:i+n]) == string(field) {
			return p.entry(at), true
		}
		n, i = p.length(i + n)
		at = i + n + tail
	}
	return e, false
}

// nth returns entry i.
func (p *pack) nth(i int) entry {
	e := p.entry(0)
	for range i {
		e = p.entry(e.end)
	}
	return e
}

// set is HashValue.Set.
func (p *pack) set(field, value []byte, keep bool) (added bool) {
	e, ok := p.find(field)
	if !ok {
		p.b = append(binary.AppendUvarint(p.b, uint64(len(field))), field...)
		p.b = append(binary.AppendUvarint(p.b, uint64(len(value))), value...)
		if p.timed {
			p.b = binary.LittleEndian.AppendUint64(p.b, uint64(expiry.None))
		}
		p.n++
		return true
	}
	var scratch [binary.MaxVarintLen64]byte
	head := binary.AppendUvarint(scratch[:0], uint64(len(value)))
	p.resize(e.fieldEnd, e.valueEnd, len(head)+len(value))
	copy(p.b[e.fieldEnd:], head)
	copy(p.b[e.fieldEnd+len(head):], value)
	if !keep {
		if e = p.entry(e.start); p.deadline(e) != expiry.None {
			p.setDeadline(e, expiry.None)
		}
	}
	return false
}

func (p *pack) remove(e entry) {
	p.resize(e.start, e.end, 0)
	p.n--
}

// resize replaces the bytes from i to j with n bytes of arbitrary content.
func (p *pack) resize(i, j, n int) {
	old := len(p.b)
	if more := n - (j - i); more > 0 {
		p.b = slices.Grow(p.b, more)[:old+more]
		copy(p.b[i+n:], p.b[j:old])
	} else {
		copy(p.b[i+n:], p.b[j:])
		p.b = p.b[:old+more]
	}
}

// setDeadline changes the deadline of an entry of a timed pack and moves the entry: before all with the same or a later deadline or, without
// a deadline, to the end.
func (p *pack) setDeadline(e entry, deadline int64) {
	binary.LittleEndian.PutUint64(p.b[e.valueEnd:], uint64(deadline))
	to := len(p.b)
	if deadline != expiry.None {
		for at := 0; at < len(p.b); {
			n, i := p.length(at)
			n, i = p.length(i + n)
			end := int64(binary.LittleEndian.Uint64(p.b[i+n:]))
			if at != e.start && (end == expiry.None || end >= deadline) {
				to = at
				break
			}
			at = i + n + 8
		}
	}
	var scratch [256]byte
	moved := append(scratch[:0], p.b[e.start:e.end]...)
	if to > e.start {
		copy(p.b[e.start:], p.b[e.end:to])
		to -= len(moved)
	} else {
		copy(p.b[to+len(moved):], p.b[to:e.start])
	}
	copy(p.b[to:], moved)
}

// time turns the pack into a timed one.
func (p *pack) time() {
	if p.timed {
		return
	}
	b := make([]byte, 0, len(p.b)+8*(p.n+1))
	for at := 0; at < len(p.b); {
		e := p.entry(at)
		b = append(b, p.b[at:e.end]...)
		b = binary.LittleEndian.AppendUint64(b, uint64(expiry.None))
		at = e.end
	}
	p.b, p.timed = b, true
}
