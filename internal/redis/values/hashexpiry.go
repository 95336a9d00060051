package values

import "github.com/mayflycache/mayfly/internal/expiry"

// Volatile prepares the hash for deadlines. Redis does this in each command that may set one, even if it then sets none.
func (h *HashValue) Volatile() {
	if h.large == nil {
		h.small.time()
	}
}

// SetDeadline gives a field, which must exist, a deadline in unix milliseconds; expiry.None removes it.
func (h *HashValue) SetDeadline(field []byte, deadline int64) {
	if h.large != nil {
		h.ends.set(h.large.slots[string(field)], deadline)
		return
	}
	h.small.time()
	if e, ok := h.small.find(field); ok {
		h.small.setDeadline(e, deadline)
	}
}

// NextDeadline returns the earliest deadline of any field in unix milliseconds, expiry.None if there is none.
func (h *HashValue) NextDeadline() int64 {
	switch {
	case h.large != nil:
		return h.ends.first()
	case h.small.timed && h.small.n > 0:
		return h.small.deadline(h.small.entry(0))
	}
	return expiry.None
}

// Dead returns how many fields are dead at now. Besides the dead fields it looks at one more in a small hash, and at up to four for each dead
// one in a large hash.
func (h *HashValue) Dead(now int64) int {
	if h.large != nil {
		return h.ends.dead(0, now)
	}
	n := 0
	if h.small.timed {
		for at := 0; at < len(h.small.b); n++ {
			e := h.small.entry(at)
			if !expiry.Dead(h.small.deadline(e), now) {
				break
			}
			at = e.end
		}
	}
	return n
}

// Expire removes up to max fields that are dead at now, the earliest first, and returns how many. It calls each with the name of a field
// before removing it.
func (h *HashValue) Expire(now int64, max int, each func(field []byte)) int {
	n := 0
	for n < max && expiry.Dead(h.NextDeadline(), now) {
		var field []byte
		if h.large == nil {
			field = h.small.field(h.small.entry(0))
		} else {
			field = Bytes(h.large.items[h.ends.heap[0].slot].name)
		}
		each(field)
		h.Remove(field)
		n++
	}
	return n
}

// fieldEnds are the deadlines of a large hash's fields by slot: a 4-ary heap, and every slot's position in it. It is exact, and costs nothing
// in a hash without deadlines.
type fieldEnds struct {
	heap  []fieldEnd
	place []uint32 // by slot: position in the heap plus one; 0 or beyond the end: no deadline
}

type fieldEnd struct {
	deadline int64
	slot     uint32
}

func (x *fieldEnds) size() int { return 16*cap(x.heap) + 4*cap(x.place) }

// get returns the deadline of slot, or expiry.None.
func (x *fieldEnds) get(slot uint32) int64 {
	if int(slot) >= len(x.place) || x.place[slot] == 0 {
		return expiry.None
	}
	return x.heap[x.place[slot]-1].deadline
}

// set gives slot a deadline; expiry.None removes it.
func (x *fieldEnds) set(slot uint32, deadline int64) {
	if int(slot) >= len(x.place) {
		if deadline == expiry.None {
			return
		}
		x.place = append(x.place, make([]uint32, int(slot)+1-len(x.place))...)
	}
	i := int(x.place[slot]) - 1
	switch {
	case deadline == expiry.None && i < 0:
		return
	case deadline == expiry.None:
		last := len(x.heap) - 1
		moved := x.heap[last]
		x.heap, x.place[slot] = x.heap[:last], 0
		if i == last {
			return
		}
		x.settle(i, moved)
	case i < 0:
		x.heap = append(x.heap, fieldEnd{})
		x.settle(len(x.heap)-1, fieldEnd{deadline, slot})
	default:
		x.settle(i, fieldEnd{deadline, slot})
	}
}

// settle puts e at i, or above or below where it belongs. What was at i is overwritten.
func (x *fieldEnds) settle(i int, e fieldEnd) {
	for i > 0 {
		parent := (i - 1) / 4
		if x.heap[parent].deadline <= e.deadline {
			break
		}
		x.put(i, x.heap[parent])
		i = parent
	}
	for {
		least := 4*i + 1
		if least >= len(x.heap) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(x.heap)); c++ {
			if x.heap[c].deadline < x.heap[least].deadline {
				least = c
			}
		}
		if e.deadline <= x.heap[least].deadline {
			break
		}
		x.put(i, x.heap[least])
		i = least
	}
	x.put(i, e)
}

func (x *fieldEnds) put(i int, e fieldEnd) { x.heap[i], x.place[e.slot] = e, uint32(i+1) }

// first returns the earliest deadline, or expiry.None.
func (x *fieldEnds) first() int64 {
	if len(x.heap) == 0 {
		return expiry.None
	}
	return x.heap[0].deadline
}

// dead counts the dead entries at i and below it.
func (x *fieldEnds) dead(i int, now int64) int {
	if i >= len(x.heap) || !expiry.Dead(x.heap[i].deadline, now) {
		return 0
	}
	n := 1
	for c := 4*i + 1; c <= 4*i+4; c++ {
		n += x.dead(c, now)
	}
	return n
}
