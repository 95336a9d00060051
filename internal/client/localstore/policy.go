package localstore

// The policy decides which entry leaves when a shard needs room. It is W-TinyLFU (Einziger, Friedman, Manes, 2017)
// turned around: readers report nothing and no buffer carries their reads to anybody. They count their reads in the
// entry, up to three, and the policy reads these counts when it needs room, which is when somebody writes.
//
// New entries come into the window, a queue for what is recent. The oldest of the window is the candidate, the oldest
// of the main queue the victim; an entry that was read since the hand passed it last is neither, it goes round again
// and its reads are added to the sketch. Then the two are compared by how often the sketch has seen them, and the
// candidate gets in only if it was asked for clearly more often. So a scan washes through the window and leaves the
// main queue alone, and a loop that is too long for the store keeps most of what fits.
//
// What the window's share should be depends on the workload: nothing for a loop, everything for a random walk. The hand
// sees it: if the oldest of the window was read and the oldest of the main queue was not, what is recent is worth more
// than what is frequent, and the window grows by one entry; it shrinks by one in the opposite case, and also when
// nobody has wanted the oldest of the window for a long time.
//
// docs/decisions/0004 has the measurements, and the policies that lost.
type policy struct {
	slots        []slot // by id; shared with the shard
	window, main queue
	share        float64 // of the entries that the window should hold
	unread       int     // candidates in a row that nobody had read
	sketch       sketch
}

const (
	inWindow, inMain = 1, 2

	maxUses       = 3    // where the use counter of an entry stops
	firstShare    = 0.2  // of the window, before anything is known
	minShare      = 0.01 // so that there is always something to compare
	maxShare      = 0.99
	looks         = 5  // entries in use that the hand passes by before it settles for one
	margin        = 1  // counts by which a candidate must beat the victim
	idleAfter     = 64 // unread candidates in a row after which the window is taken to be useless
	movesPerEvict = 2  // entries that leave a window that is beyond its share, per eviction
)

func (p *policy) init() {
	p.window, p.main = newQueue(inWindow), newQueue(inMain)
	p.share = firstShare
}

func (p *policy) len() int { return p.window.len + p.main.len }

// windowMax is how many entries the window should hold.
func (p *policy) windowMax() int { return max(1, int(p.share*float64(p.len()))) }

// admit takes in the new entry of slot id.
func (p *policy) admit(id uint32) {
	p.sketch.grow(p.len() + 1)
	p.sketch.add(p.slots[id].hash)
	p.window.push(p.slots, id)
	p.spill()
}

// spill moves the oldest of a window that is beyond its share to the main queue.
func (p *policy) spill() {
	for range movesPerEvict {
		if p.window.len <= p.windowMax() {
			return
		}
		p.move(p.window.oldest, &p.window, &p.main)
	}
}

// remove forgets slot id.
func (p *policy) remove(id uint32) {
	if p.slots[id].queue == inWindow {
		p.window.remove(p.slots, id)
	} else {
		p.main.remove(p.slots, id)
	}
}

func (p *policy) move(id uint32, from, to *queue) {
	from.remove(p.slots, id)
	to.push(p.slots, id)
}

// evict returns the slot that should leave, which is still in its queue, or none if there is nothing.
// take returns the use counter of an entry and sets it to zero.
func (p *policy) evict(take func(id uint32) uint32) uint32 {
	candidate, wanted := p.unused(&p.window, take)
	victim, needed := p.unused(&p.main, take)
	p.adapt(wanted, needed)
	switch {
	case p.window.len < p.windowMax() && p.main.len > 0:
		if victim == none {
			victim = p.main.oldest
		}
		return victim
	case candidate == none && p.window.len > 0:
		candidate = p.window.oldest
	case candidate == none:
		return victim
	}
	if victim == none || !p.beats(candidate, victim) {
		return candidate
	}
	p.move(candidate, &p.window, &p.main)
	return victim
}

// unused returns the oldest of q that was not read since the hand passed it last, or none if the first few all were.
// read is about the very first.
func (p *policy) unused(q *queue, take func(id uint32) uint32) (id uint32, read bool) {
	for i := range looks {
		id = q.oldest
		if id == none {
			return none, read
		}
		uses := take(id)
		if uses == 0 {
			return id, read
		}
		if i == 0 {
			read = true
		}
		for range uses {
			p.sketch.add(p.slots[id].hash)
		}
		p.move(id, q, q)
	}
	return none, read
}

func (p *policy) beats(candidate, victim uint32) bool {
	return p.sketch.estimate(p.slots[candidate].hash) > p.sketch.estimate(p.slots[victim].hash)+margin
}

// adapt moves the share of the window. wanted: the oldest of the window was read; needed: the oldest of the main queue
// was.
func (p *policy) adapt(wanted, needed bool) {
	step := 1 / float64(p.len()+1)
	if wanted {
		p.unread = 0
	} else {
		p.unread++
	}
	switch {
	case wanted && !needed:
		p.share = min(p.share+step, maxShare)
	case needed && !wanted, p.unread > idleAfter:
		p.share = max(p.share-step, minShare)
	}
}
