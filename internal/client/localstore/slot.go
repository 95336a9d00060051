package localstore

// slot is a shard's bookkeeping for one entry. It contains no pointer, so the garbage collector does not scan it.
type slot struct {
	hash       uint32
	prev, next uint32 // in its queue; next alone in the list of free slots
	stamp      uint32 // when it came in, or was found in use by a hand
	view       uint16
	queue      uint8 // which queue it is in: inSmall or inMain; 0 is a free slot
}

// none is not a valid slot.
const none = ^uint32(0)

// queue is a first-in, first-out list of slots that also allows removal from its middle.
type queue struct {
	newest, oldest uint32
	len            int
	mark           uint8 // slot.queue of its members
}

func newQueue(mark uint8) queue { return queue{newest: none, oldest: none, mark: mark} }

// push makes id the newest.
func (q *queue) push(slots []slot, id uint32) {
	s := &slots[id]
	s.prev, s.next, s.queue = none, q.newest, q.mark
	if q.newest == none {
		q.oldest = id
	} else {
		slots[q.newest].prev = id
	}
	q.newest = id
	q.len++
}

// remove takes id out.
func (q *queue) remove(slots []slot, id uint32) {
	s := &slots[id]
	if s.prev == none {
		q.newest = s.next
	} else {
		slots[s.prev].next = s.next
	}
	if s.next == none {
		q.oldest = s.prev
	} else {
		slots[s.next].prev = s.prev
	}
	q.len--
}
