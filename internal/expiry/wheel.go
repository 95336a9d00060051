package expiry

import (
	"math"
	"math/bits"
)

// The wheel: buckets of entries, narrow where the next deadlines are expected and wide far from there.
//
// Write a deadline as eleven digits of six bits. Compare it with the focus, a moment near now: the highest digit in which the two differ is
// its level, and the value of that digit is its slot there. A bucket of level 0 is one millisecond, of level 1 64 ms, of level 2 4 s, and so
// on until level 10 reaches the end of time in both directions. No deadline is out of range, no edge has to be waited for, and the past has
// buckets as the future has.
//
// Each bucket knows a floor, a time before which none of its entries ends. Within a level the first occupied bucket has the lowest floor; so
// the lowest floor over the levels is the wheel's, at most eleven looks away. When the clock passes that floor, the bucket is emptied: the
// dead are reaped, and the living are spread over finer buckets after the focus was moved to now. An entry is moved in this way at most once
// per level: twice in a life of seconds, three times in one of hours. Nothing turns when nothing ends: a deadline next week costs one or two
// looks, not one for every bucket in between.
//
// A bucket is four lists, its lanes, by the last two bits of the id. Emptying it walks the lanes in turn, so that the processor waits for
// four nodes at once instead of one after another: a million entries do not fit into its caches.
//
// Two invariants hold at all times. The span of an entry's bucket, at the present focus, contains its deadline (the bucket need not be the
// narrowest one: a half-emptied bucket is valid). And no floor is above a deadline in its bucket.

const (
	digit  = 6
	slots  = 1 << digit
	lanes  = 4
	marked = 1 << 31 // in node.prev: the rest is a bucket's number, level*slots + slot
)

type level struct {
	occupied uint64 // a bit per slot
	floors   [slots]int64
	heads    [slots][lanes]uint32 // id plus one of the first in each lane; 0: none
}

// bucket returns the number of the narrowest bucket for deadline at the present focus.
func (x *Index) bucket(deadline int64) uint32 {
	l := height(deadline, x.focus)
	return l*slots | uint32(ordered(deadline)>>(l*digit))%slots
}

// height returns the highest digit in which s and t differ; 0 if they do not.
func height(s, t int64) uint32 {
	return uint32(63-bits.LeadingZeros64(uint64(s^t)|1)) / digit
}

// ordered is t with the sign bit flipped, so that times before 1970 sort first.
func ordered(t int64) uint64 { return uint64(t) ^ 1<<63 }

// span returns a number that is the same for all times in one bucket as wide as b.
func span(b uint32, t int64) uint64 { return ordered(t) >> (b / slots * digit) }

// link puts id at the front of its lane in bucket b.
func (x *Index) link(id uint32, n *node, b uint32) {
	l, slot := b/slots, b%slots
	if int(l) >= len(x.levels) {
		x.levels = append(x.levels, make([]level, int(l)+1-len(x.levels))...)
	}
	v := &x.levels[l]
	if v.occupied>>slot&1 == 0 || n.deadline < v.floors[slot] {
		v.floors[slot] = n.deadline
	}
	v.occupied |= 1 << slot
	head := &v.heads[slot][id%lanes]
	n.next, n.prev = *head, marked|b
	if *head != 0 {
		x.node(*head - 1).prev = id + 1
	}
	*head = id + 1
}

// unlink takes id out of its bucket.
func (x *Index) unlink(id uint32, n *node) {
	if n.next != 0 {
		x.node(n.next - 1).prev = n.prev
	}
	if n.prev&marked == 0 {
		x.node(n.prev - 1).next = n.next
		return
	}
	b := n.prev &^ marked
	v, slot := &x.levels[b/slots], b%slots
	v.heads[slot][id%lanes] = n.next
	if v.heads[slot] == [lanes]uint32{} {
		v.occupied &^= 1 << slot
	}
}

// first returns the bucket with the lowest floor.
func (x *Index) first() (b uint32, floor int64, ok bool) {
	for l := range x.levels {
		v := &x.levels[l]
		if v.occupied == 0 {
			continue
		}
		slot := bits.TrailingZeros64(v.occupied) % slots
		if f := v.floors[slot]; !ok || f < floor {
			b, floor, ok = uint32(l*slots|slot), f, true
		}
	}
	return b, floor, ok
}

// refocus moves the focus to now and reports true, if that does not change the meaning of any bucket: all levels below the highest digit in
// which now differs from the focus must be empty. They are when the clock has gone forward and the dead entries in between have been reaped.
func (x *Index) refocus(now int64) bool {
	l := int(height(now, x.focus))
	for i := range x.levels[:min(l, len(x.levels))] {
		if x.levels[i].occupied != 0 {
			return false
		}
	}
	x.focus = now
	return true
}

// coarsen prepares for moving the focus into b: it moves up to max entries from the levels below b's to the one bucket beside b that covers
// them all, and returns how many it moved. There are such entries only if the clock has gone back.
func (x *Index) coarsen(b uint32, max int) int {
	l, moved := b/slots, 0
	wide := l*slots | uint32(span(b, x.focus))%slots
	for i := range l {
		for v := &x.levels[i]; v.occupied != 0; {
			heads := &v.heads[bits.TrailingZeros64(v.occupied)]
			for lane := range heads {
				for heads[lane] != 0 {
					if moved == max {
						return moved
					}
					id := heads[lane] - 1
					n := x.node(id)
					x.unlink(id, n)
					x.link(id, n, wide)
					moved++
				}
			}
		}
	}
	return moved
}

// dead counts the dead entries at now.
func (x *Index) dead(now int64) int {
	count := 0
	for l := range x.levels {
		v := &x.levels[l]
		for o := v.occupied; o != 0; o &= o - 1 {
			slot := bits.TrailingZeros64(o)
			if !Dead(v.floors[slot], now) {
				break
			}
			for _, head := range v.heads[slot] {
				for ; head != 0; head = x.node(head - 1).next {
					if Dead(x.node(head-1).deadline, now) {
						count++
					}
				}
			}
		}
	}
	return count
}

// after returns the first millisecond at which deadline has passed. The largest int64 never passes.
func after(deadline int64) int64 {
	if deadline == math.MaxInt64 {
		return deadline
	}
	return deadline + 1
}
