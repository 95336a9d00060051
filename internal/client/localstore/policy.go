package localstore

// The policy decides which entry leaves when a shard needs room. Readers do not report to it through a buffer. They count their
// reads in the entry, up to three, and the policy looks at these counts when a write needs room.
//
// A new entry joins the small queue. The oldest of that queue leaves, or goes round again if it was read. The main queue is a clock, which gives an
// entry another round for each read. Time is counted in entries that came in. An entry that leaves is remembered for a while as a ghost: a few bits
// of its hash, and the time. If the entry comes back, the policy compares how long it was away with the age of the oldest unread entry of main.
// The one with the shorter time between its uses gets the place in main, as in LIRS (Jiang and Zhang, 2002).
//
// So a scan passes through the small queue without touching main. The same happens to the part of a loop that does not fit: what comes back was away
// longer than anything in main, which stays. The best size of the small queue depends on the workload, and ghosts show it: a ghost that a slightly
// larger small queue would have kept makes the small queue larger, and such a ghost of main makes it smaller.
//
// docs/decisions/0004 has the measurements, and the policies that lost.
type policy struct {
	slots       []slot                       // by id; shared with the shard
	take        func(id, most uint32) uint32 // takes up to most of the reads that the counter of an entry holds, and returns how many it held
	small, main queue
	ghosts      ghosts
	share       float64
	most        float64 // that share may be
	unread      int     // entries in a row at the end of small that had no reads
	score       float64 // how much better plain order of use did recently, at most one entry's worth per entry
}

const (
	inSmall, inMain = 1, 2

	maxUses    = 3    // where the use counter of an entry stops
	looks      = 8    // entries in use that a hand passes before it settles for one
	firstShare = 0.03 // of small, before anything is known
	minShare   = 0.01 // so that there is always something to compare
	mostShare  = 0.5  // unless plain order of use is better
	allShare   = 0.95 // when it is
	promoteAt  = 2    // reads in small after which an entry competes for main
	near       = 0.15 // of the entries: a queue larger by that would have kept the ghost
	fallback   = 0.5  // of the entries: from this score on, plain order of use is better
)

func (p *policy) init(take func(id, most uint32) uint32) {
	p.take = take
	p.small, p.main = newQueue(inSmall), newQueue(inMain)
	p.share, p.most = firstShare, mostShare
	p.unread = neverRead
}

// neverRead is the value of unread in a shard that nobody has read from.
const neverRead = 1 << 30

func (p *policy) len() int { return p.small.len + p.main.len }

// smallMax is how many entries the small queue should hold.
func (p *policy) smallMax() int { return max(1, int(p.share*float64(p.len()))) }

// admit takes in the new entry of slot id.
func (p *policy) admit(id uint32) {
	p.ghosts.now++
	s := &p.slots[id]
	s.stamp = p.ghosts.now
	if g, ok := p.ghosts.take(s.hash); ok && p.returns(g) {
		p.main.push(p.slots, id)
		return
	}
	p.small.push(p.slots, id)
	for range 2 {
		if p.small.len <= p.smallMax() {
			return
		}
		p.move(p.small.oldest, &p.main)
	}
}

// returns learns from the ghost of an entry that comes back, and reports whether the entry gets a place in main.
func (p *policy) returns(g ghost) bool {
	n := float64(p.len() + 1)
	away := float64(g.age)
	if g.ofMain {
		if away <= near*n {
			p.resize(-0.7)
		}
		return false
	}
	if p.unread <= max(64, p.len()/100) { // otherwise the small queue is useless, however large
		if away <= float64(p.small.len)+near*n {
			p.resize(+1)
		}
		if away <= n {
			p.judge(+1)
		}
		if p.most == allShare {
			p.resize(+2)
		}
	}
	if v := p.victim(); v != none && g.age < p.age(v) {
		return true
	}
	p.resize(-0.1)
	return false
}

// resize makes the small queue larger, by about that many entries.
func (p *policy) resize(by float64) {
	p.share = min(max(p.share+by/float64(p.len()+1), minShare), p.most)
}

// judge records an entry for which plain order of use would have done better, or worse. Old records fade.
func (p *policy) judge(by float64) {
	n := float64(p.len() + 1)
	p.score = min(max(p.score*(1-0.5/n)+by, -n), n)
	p.most = mostShare
	if p.score > fallback*n {
		p.most = allShare
	}
	p.share = min(p.share, p.most)
}

// age returns how long ago slot id came in, or was found in use.
func (p *policy) age(id uint32) uint32 { return p.ghosts.now - p.slots[id].stamp }

// move makes slot id the newest of to, as if it had just come in.
func (p *policy) move(id uint32, to *queue) {
	p.remove(id)
	p.slots[id].stamp = p.ghosts.now
	to.push(p.slots, id)
}

// remove forgets slot id.
func (p *policy) remove(id uint32) {
	if p.slots[id].queue == inSmall {
		p.small.remove(p.slots, id)
	} else {
		p.main.remove(p.slots, id)
	}
}
