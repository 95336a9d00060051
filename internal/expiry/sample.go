package expiry

import "math/bits"

// stale, in node.prev of an absent entry, means that its id is still in Index.listed.
const stale = 1

// Sample returns a random entry, each with the same probability; draw is a uniform 64-bit number.
//
// It takes constant time, amortised. It draws from a list of all entries, which the first call makes and which costs 4 bytes an entry from
// then on; without sampling it costs nothing. Remove leaves its entry in the list; a draw that finds a removed entry takes it off the list
// and draws again, so each removal is paid for once.
func (x *Index) Sample(draw uint64) (id uint32, ok bool) {
	if x.listed == nil {
		for id := range uint32(x.room()) {
			if x.node(id).deadline != None {
				x.listed = append(x.listed, id)
			}
		}
	}
	for x.held > 0 {
		i, _ := bits.Mul64(draw, uint64(len(x.listed)))
		id := x.listed[i]
		n := x.node(id)
		if n.deadline != None {
			return id, true
		}
		n.prev = 0
		last := len(x.listed) - 1
		x.listed[i] = x.listed[last]
		x.listed = x.listed[:last]
		draw = draw*6364136223846793005 + 1442695040888963407 // Knuth's MMIX generator; its high bits are the ones used
	}
	return 0, false
}

// list adds id, which is about to get a deadline, to the list if there is one.
func (x *Index) list(id uint32, n *node) {
	if x.listed != nil && n.prev != stale {
		x.listed = append(x.listed, id)
	}
}
