package expiry

// heap is the candidate that lost: a 4-ary heap.
type heap struct {
	deadlines []int64  // a 4-ary min-heap
	ids       []uint32 // whose deadline it is
	at        []uint32 // by id: place in the heap plus one; 0 is absent
	reaped    tally
}

// Set gives id this deadline, or moves it there. None removes it.
func (x *heap) Set(id uint32, deadline int64) {
	if deadline == None {
		x.Remove(id)
		return
	}
	if int(id) >= len(x.at) {
		x.at = append(x.at, make([]uint32, int(id)+1-len(x.at))...)
	}
	if p := x.at[id]; p != 0 {
		i := int(p - 1)
		if old := x.deadlines[i]; deadline < old {
			x.up(i, id, deadline)
		} else if deadline > old {
			x.down(i, id, deadline)
		}
		return
	}
	x.deadlines = append(x.deadlines, deadline)
	x.ids = append(x.ids, id)
	x.up(len(x.ids)-1, id, deadline)
}

// Remove forgets id. Removing what is absent does nothing.
func (x *heap) Remove(id uint32) {
	if int(id) >= len(x.at) || x.at[id] == 0 {
		return
	}
	i := int(x.at[id] - 1)
	x.at[id] = 0
	last := len(x.ids) - 1
	moved, deadline := x.ids[last], x.deadlines[last]
	old := x.deadlines[i]
	x.ids, x.deadlines = x.ids[:last], x.deadlines[:last]
	switch {
	case i == last:
	case deadline < old:
		x.up(i, moved, deadline)
	default:
		x.down(i, moved, deadline)
	}
}

// Deadline returns the deadline of id, or None.
func (x *heap) Deadline(id uint32) int64 {
	if int(id) >= len(x.at) || x.at[id] == 0 {
		return None
	}
	return x.deadlines[x.at[id]-1]
}

// Len returns how many ids have a deadline.
func (x *heap) Len() int { return len(x.ids) }

// Reap removes up to max entries that are dead at now, earliest first, and calls reap for each after it was removed.
// It returns how many; fewer than max means that nothing dead is left. reap must not call the heap.
func (x *heap) Reap(now int64, max int, reap func(id uint32)) int {
	n := 0
	for n < max && len(x.ids) > 0 && Dead(x.deadlines[0], now) {
		id := x.ids[0]
		x.reaped.add(now - x.deadlines[0])
		x.Remove(id)
		n++
		reap(id)
	}
	return n
}

// Next returns the first millisecond at which Reap will find something: one past the earliest deadline.
// ok is false when nothing has a deadline, and the owner can park its timer.
func (x *heap) Next() (at int64, ok bool) {
	if len(x.ids) == 0 {
		return 0, false
	}
	return after(x.deadlines[0]), true
}

// Sample returns the id that draw, a uniform 64-bit number, picks among those with a deadline, each with the same probability.
func (x *heap) Sample(draw uint64) (id uint32, ok bool) {
	if len(x.ids) == 0 {
		return 0, false
	}
	return x.ids[draw%uint64(len(x.ids))], true
}

// up puts id at i or above.
func (x *heap) up(i int, id uint32, deadline int64) {
	for i > 0 {
		parent := (i - 1) / 4
		if x.deadlines[parent] <= deadline {
			break
		}
		x.put(i, x.ids[parent], x.deadlines[parent])
		i = parent
	}
	x.put(i, id, deadline)
}

// down puts id at i or below.
func (x *heap) down(i int, id uint32, deadline int64) {
	for {
		child := 4*i + 1
		if child >= len(x.ids) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(x.ids)); c++ {
			if x.deadlines[c] < x.deadlines[least] {
				least = c
			}
		}
		if deadline <= x.deadlines[least] {
			break
		}
		x.put(i, x.ids[least], x.deadlines[least])
		i = least
	}
	x.put(i, id, deadline)
}

func (x *heap) put(i int, id uint32, deadline int64) {
	x.deadlines[i], x.ids[i], x.at[id] = deadline, id, uint32(i+1)
}
