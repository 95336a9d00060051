package values

import "math/rand/v2"

// ranking is the large form of a sorted set: a table whose slots are also the nodes of a treap, a search tree by score and member that is
// balanced because every node has a random weight and none is heavier than its parent. Each node knows the size of its subtree, so converting
// between a rank and a member takes as long as a search: O(log n).
type ranking struct {
	table[node]
	root link
}

type node struct {
	score       float64
	left, right link
	count       uint32 // nodes of this subtree
}

// link is a slot of the table plus one; 0 is nil.
type link uint32

// weightSeed is drawn once per process, so that an attacker cannot choose members that make a tall tree. No reply depends on it.
var weightSeed = rand.Uint64()

// weight is the random weight of a node: a hash of its slot, which need not be stored.
func (n link) weight() uint64 {
	x := (uint64(n) + weightSeed) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func newRanking(size int) *ranking { return &ranking{table: *newTable[node](size)} }

func (r *ranking) clone() *ranking { return &ranking{table: *r.table.clone(), root: r.root} }

func (r *ranking) at(n link) *item[node] { return &r.items[n-1] }

func (r *ranking) count(n link) uint32 {
	if n == 0 {
		return 0
	}
	return r.at(n).data.count
}

// before is the order of sorted sets: by score, then by bytes.
func before(score float64, member string, than float64, thanMember string) bool {
	return score < than || score == than && member < thanMember
}

func (r *ranking) before(a, b link) bool {
	x, y := r.at(a), r.at(b)
	return before(x.data.score, x.name, y.data.score, y.name)
}

// link adds the element in a slot to the tree.
func (r *ranking) link(slot uint32) {
	n := link(slot + 1)
	d := &r.at(n).data
	d.left, d.right, d.count = 0, 0, 1
	r.root = r.insert(r.root, n)
}

// unlink removes it from the tree. Its score must not have changed in between.
func (r *ranking) unlink(slot uint32) { r.root = r.delete(r.root, link(slot+1)) }

func (r *ranking) insert(root, n link) link {
	if root == 0 {
		return n
	}
	if n.weight() > root.weight() {
		d := &r.at(n).data
		d.left, d.right = r.split(root, r.rank(root, n))
		r.recount(n)
		return n
	}
	d := &r.at(root).data
	if r.before(n, root) {
		d.left = r.insert(d.left, n)
	} else {
		d.right = r.insert(d.right, n)
	}
	d.count++
	return root
}

func (r *ranking) delete(root, n link) link {
	d := &r.at(root).data
	if root == n {
		return r.merge(d.left, d.right)
	}
	if r.before(n, root) {
		d.left = r.delete(d.left, n)
	} else {
		d.right = r.delete(d.right, n)
	}
	d.count--
	return root
}

// split divides a tree into the first k nodes and the rest.
func (r *ranking) split(root link, k uint32) (low, high link) {
	if root == 0 {
		return 0, 0
	}
	d := &r.at(root).data
	if left := r.count(d.left); k > left {
		d.right, high = r.split(d.right, k-left-1)
		low = root
	} else {
		low, d.left = r.split(d.left, k)
		high = root
	}
	r.recount(root)
	return low, high
}

// merge joins two trees; all of low must come before all of high.
func (r *ranking) merge(low, high link) link {
	switch {
	case low == 0:
		return high
	case high == 0:
		return low
	case low.weight() > high.weight():
		d := &r.at(low).data
		d.right = r.merge(d.right, high)
		r.recount(low)
		return low
	}
	d := &r.at(high).data
	d.left = r.merge(low, d.left)
	r.recount(high)
	return high
}

func (r *ranking) recount(n link) {
	d := &r.at(n).data
	d.count = r.count(d.left) + r.count(d.right) + 1
}

// rank returns how many elements of a subtree come before n, which may be one of them.
func (r *ranking) rank(root, n link) (rank uint32) {
	for at := root; at != 0; {
		d := &r.at(at).data
		switch {
		case at == n:
			return rank + r.count(d.left)
		case r.before(n, at):
			at = d.left
		default:
			rank += r.count(d.left) + 1
			at = d.right
		}
	}
	return rank
}

// nth returns the element with this rank, which must exist.
func (r *ranking) nth(rank int) *item[node] {
	k := uint32(rank)
	for at := r.root; ; {
		it := r.at(at)
		left := r.count(it.data.left)
		switch {
		case k < left:
			at = it.data.left
		case k == left:
			return it
		default:
			k -= left + 1
			at = it.data.right
		}
	}
}

// search returns how many elements come before the first for which early is false; early must be true up to some place and false from there
// on.
func (r *ranking) search(early func(score float64, member string) bool) int {
	rank := uint32(0)
	for at := r.root; at != 0; {
		it := r.at(at)
		if early(it.data.score, it.name) {
			rank += r.count(it.data.left) + 1
			at = it.data.right
		} else {
			at = it.data.left
		}
	}
	return int(rank)
}

// stretch is a subtree's half-open range of ranks.
type stretch struct {
	root     link
	from, to int
}

// walk calls do for the elements of a stretch, in ascending or reverse order, until do returns false; walk then returns false too.
func (r *ranking) walk(s stretch, reverse bool, do func(member string, score float64) bool) bool {
	if s.root == 0 || s.from >= s.to {
		return true
	}
	it := r.at(s.root)
	here := int(r.count(it.data.left))
	first := stretch{it.data.left, s.from, min(s.to, here)}
	last := stretch{it.data.right, max(s.from-here-1, 0), s.to - here - 1}
	if reverse {
		first, last = last, first
	}
	return r.walk(first, reverse, do) &&
		(s.from > here || s.to <= here || do(it.name, it.data.score)) &&
		r.walk(last, reverse, do)
}

// cut removes the elements with ranks from up to to, which is excluded.
func (r *ranking) cut(from, to int) {
	low, rest := r.split(r.root, uint32(from))
	middle, high := r.split(rest, uint32(to-from))
	r.root = r.merge(low, high)
	r.forget(middle)
}

// forget removes the elements of a detached subtree from the table.
func (r *ranking) forget(root link) {
	if root == 0 {
		return
	}
	it := *r.at(root)
	r.forget(it.data.left)
	r.forget(it.data.right)
	r.remove([]byte(it.name))
}
