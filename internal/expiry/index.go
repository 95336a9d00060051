package expiry

// Index finds the entries whose deadline has passed without looking at the others. Its zero value is empty and ready to use. It must not be
// used from two goroutines at once.
//
// Entries are slot numbers of the owner's, below 1<<31, small and dense: the memory is 16 bytes for each number up to the largest ever used,
// in pages without pointers, which the garbage collector does not scan.
type Index struct {
	pages  []*page // the nodes, by id
	held   int
	levels []level // the wheel
	focus  int64   // where the wheel is finest
	listed []uint32
	reaped Figures // without Held and Dead
	last   int64   // the deadline of the entry reaped last
}

// node is one entry, in a list of its bucket.
type node struct {
	deadline int64  // None: absent
	next     uint32 // id plus one of the next node; 0 at the end
	prev     uint32 // id plus one of the previous node; for the first node the number of its bucket, marked; absent: see sample.go
}

// page holds pageLen nodes. Adding a page copies nothing, so no Set takes long, and a small index is small.
type page [pageLen]node

const pageLen = 512

// node returns the node of id, which must be below room(). The node of a released page must not be written to: see Release.
func (x *Index) node(id uint32) *node {
	if p := x.pages[id/pageLen]; p != nil {
		return &p[id%pageLen]
	}
	return &absent
}

// room returns how many ids have a node.
func (x *Index) room() int { return len(x.pages) * pageLen }

// Set sets or moves the deadline of id. None removes it. It takes constant time.
func (x *Index) Set(id uint32, deadline int64) {
	if deadline == None {
		x.Remove(id)
		return
	}
	for int(id) >= x.room() {
		x.pages = append(x.pages, new(page))
	}
	if p := &x.pages[id/pageLen]; *p == nil {
		*p = new(page)
	}
	n := x.node(id)
	switch old := n.deadline; {
	case old == None:
		if x.held == 0 {
			x.focus = deadline
		}
		x.held++
		x.list(id, n)
	case old <= deadline && x.bucket(old) == x.bucket(deadline):
		// The entry may stay in its bucket, since a later deadline is not below its floor. Renewals of a sliding TTL often end here.
		n.deadline = deadline
		return
	default:
		x.unlink(id, n)
	}
	n.deadline = deadline
	x.link(id, n, x.bucket(deadline))
}

// Remove removes id. Removing an absent id does nothing. It takes constant time.
func (x *Index) Remove(id uint32) {
	if int(id) >= x.room() {
		return
	}
	if n := x.node(id); n.deadline != None {
		x.unlink(id, n)
		x.clear(n)
	}
}

// clear makes n, which is in no list, absent.
func (x *Index) clear(n *node) {
	n.deadline = None
	n.next, n.prev = 0, 0
	if x.listed != nil {
		n.prev = stale
	}
	x.held--
}

// Deadline returns the deadline of id, or None.
func (x *Index) Deadline(id uint32) int64 {
	if int(id) >= x.room() {
		return None
	}
	return x.node(id).deadline
}

// Len returns the number of entries, dead ones included.
func (x *Index) Len() int { return x.held }

// effort is how many living entries Reap may move to finer buckets for each dead one that it may reap. It is more than the wheel has levels,
// so that one Reap for each Set always keeps up.
const effort = 16

// Reap removes up to max entries that are dead at now, roughly the earliest first, and returns how many. It calls reap for each after its
// removal. reap must not change the Index; removing the same id again is harmless.
//
// A call does a bounded amount of work, even when the clock has jumped past a million deadlines at once or has gone back: it reaps at most
// max entries and moves at most 16 times max. So a result below max does not mean that nothing dead is left; a Next in the future means that.
// A max of at least Len leaves nothing dead.
func (x *Index) Reap(now int64, max int, reap func(id uint32)) int {
	max = min(max, x.held)
	reaped, moves := 0, effort*max
	for reaped < max && moves > 0 {
		b, floor, ok := x.first()
		if !ok || !Dead(floor, now) {
			break
		}
		if span(b, floor) == span(b, now) && span(b, floor) != span(b, x.focus) {
			// Some entries of this bucket may be alive. Finer buckets for them exist only around the focus.
			moves -= x.coarsen(b, moves)
			if !x.refocus(now) {
				break
			}
		}
		v, slot := &x.levels[b/slots], b%slots
		for lane := 0; v.occupied>>slot&1 == 1 && reaped < max && moves > 0; lane++ {
			head := v.heads[slot][lane%lanes]
			if head == 0 {
				continue
			}
			id := head - 1
			n := x.node(id)
			x.unlink(id, n)
			if !Dead(n.deadline, now) {
				x.link(id, n, x.bucket(n.deadline))
				moves--
				continue
			}
			x.end(n.deadline, now)
			x.clear(n)
			reaped++
			reap(id)
		}
	}
	x.refocus(now)
	return reaped
}

// end counts an entry reaped at now.
func (x *Index) end(deadline, now int64) {
	x.last = deadline
	x.reaped.reap(now - deadline)
}

// Last returns the deadline of the entry reaped last; inside reap, that of the current entry.
func (x *Index) Last() int64 { return x.last }

// Next returns the time at which to call Reap: the first millisecond after the earliest deadline. ok is false if there is none, and the owner
// can park its timer. Next is never late. After the earliest entry was removed or moved to a later time it may be early; each Reap at an
// early time corrects it, usually at once, and in about ten calls at most, however far the deadline.
func (x *Index) Next() (at int64, ok bool) {
	_, floor, ok := x.first()
	if !ok {
		return 0, false
	}
	return after(floor), true
}

// Figures returns the figures at now. It counts the dead by walking over them: this is cheap while reaping keeps up, and takes time
// proportional to the entries if nothing is reaped.
func (x *Index) Figures(now int64) Figures {
	f := x.reaped
	f.Held, f.Dead = x.held, x.dead(now)
	return f
}
