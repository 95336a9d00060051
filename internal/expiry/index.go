package expiry

import (
	"math"
	"time"
)

// Index finds the entries whose deadline has passed, earliest first, without looking at the others.
// The zero value is ready. An Index is not safe for concurrent use.
//
// Entries are slot numbers of the owner, small and dense: memory grows with the largest id ever set.
type Index struct {
	deadlines []int64  // a 4-ary min-heap
	ids       []uint32 // whose deadline it is
	at        []uint32 // by id: place in the heap plus one; 0 is absent
	reaped    tally
}

// Set gives id this deadline, or moves it there. None removes it.
func (x *Index) Set(id uint32, deadline int64) {
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
func (x *Index) Remove(id uint32) {
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
func (x *Index) Deadline(id uint32) int64 {
	if int(id) >= len(x.at) || x.at[id] == 0 {
		return None
	}
	return x.deadlines[x.at[id]-1]
}

// Len returns how many ids have a deadline.
func (x *Index) Len() int { return len(x.ids) }

// Reap removes up to max entries that are dead at now, earliest first, and calls reap for each after it was removed.
// It returns how many; fewer than max means that nothing dead is left. reap must not call the Index.
func (x *Index) Reap(now int64, max int, reap func(id uint32)) int {
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
func (x *Index) Next() (at int64, ok bool) {
	if len(x.ids) == 0 {
		return 0, false
	}
	return after(x.deadlines[0]), true
}

// Sample returns the id that draw, a uniform 64-bit number, picks among those with a deadline, each with the same probability.
func (x *Index) Sample(draw uint64) (id uint32, ok bool) {
	if len(x.ids) == 0 {
		return 0, false
	}
	return x.ids[draw%uint64(len(x.ids))], true
}

// up puts id at i or above.
func (x *Index) up(i int, id uint32, deadline int64) {
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
func (x *Index) down(i int, id uint32, deadline int64) {
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

func (x *Index) put(i int, id uint32, deadline int64) {
	x.deadlines[i], x.ids[i], x.at[id] = deadline, id, uint32(i+1)
}

// after returns the first millisecond at which deadline has passed. The last one an int64 holds never does.
func after(deadline int64) int64 {
	if deadline == math.MaxInt64 {
		return deadline
	}
	return deadline + 1
}

// Figures returns the state at now. It looks at the dead and at no more of the others than four times as many.
func (x *Index) Figures(now int64) Figures {
	return Figures{
		Held:       len(x.ids),
		Dead:       x.dead(0, now),
		Reaped:     x.reaped.n,
		OverdueSum: time.Duration(x.reaped.sum) * time.Millisecond,
		OverdueMax: time.Duration(x.reaped.max) * time.Millisecond,
	}
}

// dead counts the dead at i and below it.
func (x *Index) dead(i int, now int64) int {
	if i >= len(x.ids) || !Dead(x.deadlines[i], now) {
		return 0
	}
	n := 1
	for c := 4*i + 1; c <= 4*i+4; c++ {
		n += x.dead(c, now)
	}
	return n
}
