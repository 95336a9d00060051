package values

import "slices"

// ZSetValue is a set of byte strings, each with a score, ordered by score and then by bytes. A position in that order is a rank, from 0. Its
// small form is a sorted slice, its large one a [ranking]; only Shrink makes it small again.
type ZSetValue struct {
	small []scored
	large *ranking // nil while small
}

type scored struct {
	member string
	score  float64
}

// NewZSet returns an empty sorted set in its small form.
func NewZSet() *ZSetValue { return &ZSetValue{} }

// NewBigZSet returns an empty sorted set in its large form, with room for n members.
func NewBigZSet(n int) *ZSetValue { return &ZSetValue{large: newRanking(n)} }

func (z *ZSetValue) Kind() Kind { return ZSet }

func (z *ZSetValue) Encoding() string {
	if z.large != nil {
		return "skiplist"
	}
	return "listpack"
}

func (z *ZSetValue) Len() int {
	if z.large != nil {
		return z.large.len()
	}
	return len(z.small)
}

func (z *ZSetValue) Clone() Value {
	c := &ZSetValue{small: slices.Clone(z.small)}
	if z.large != nil {
		c.large = z.large.clone()
	}
	return c
}

func (z *ZSetValue) Size() int {
	n := 32 + 24*cap(z.small)
	for _, s := range z.small {
		n += len(s.member)
	}
	if z.large != nil {
		n += z.large.size()
	}
	return n
}

// Grow prepares for n calls of Set, one of them with a member of length bytes: if that alone exceeds the small form, Redis makes the large
// one at once.
func (z *ZSetValue) Grow(n, length int, l Limits) {
	if z.large == nil && (n > l.ZSetMaxListpackEntries || length > l.ZSetMaxListpackValue) {
		z.enlarge(n)
	}
}

// Enlarge switches to the large form, as Redis does before it sorts.
func (z *ZSetValue) Enlarge() {
	if z.large == nil {
		z.enlarge(0)
	}
}

// Shrink switches to the small form if the members fit, as Redis does with the results of ZUNIONSTORE and its relatives.
func (z *ZSetValue) Shrink(l Limits) {
	if z.large == nil || z.Len() > l.ZSetMaxListpackEntries {
		return
	}
	longest := 0
	z.All(func(m string, _ float64) { longest = max(longest, len(m)) })
	if longest > l.ZSetMaxListpackValue {
		return
	}
	small := make([]scored, 0, z.Len())
	z.Each(0, z.Len(), false, func(m string, score float64) bool {
		small = append(small, scored{m, noNegativeZero(score)})
		return true
	})
	*z = ZSetValue{small: small}
}

// Score returns the score of member; ok is false if it is absent.
func (z *ZSetValue) Score(member []byte) (score float64, ok bool) {
	if z.large != nil {
		slot, ok := z.large.slots[string(member)]
		if !ok {
			return 0, false
		}
		return z.large.items[slot].data.score, true
	}
	if i := findScored(z, member); i >= 0 {
		return z.small[i].score, true
	}
	return 0, false
}

// Set gives member this score, which must not be NaN, and adds it if it is absent.
func (z *ZSetValue) Set(member []byte, score float64, l Limits) { setScore(z, member, score, l) }

// SetOf is Set for a member returned by another value; its memory is shared.
func (z *ZSetValue) SetOf(member string, score float64, l Limits) { setScore(z, member, score, l) }

func setScore[N name](z *ZSetValue, member N, score float64, l Limits) {
	if z.large == nil {
		i := findScored(z, member)
		if i >= 0 {
			s := z.small[i]
			z.small = slices.Delete(z.small, i, i+1)
			z.insert(s.member, score)
			return
		}
		if len(z.small) < l.ZSetMaxListpackEntries && len(member) <= l.ZSetMaxListpackValue {
			z.insert(string(member), score)
			return
		}
		z.enlarge(len(z.small) + 1)
	}
	slot, ok := z.large.slots[string(member)]
	if ok {
		z.large.unlink(slot)
	} else {
		slot = z.large.put(string(member), node{})
	}
	z.large.items[slot].data.score = score
	z.large.link(slot)
}

// Remove removes member and reports whether it was there.
func (z *ZSetValue) Remove(member []byte) bool {
	if z.large != nil {
		slot, ok := z.large.slots[string(member)]
		if ok {
			z.large.unlink(slot)
			z.large.remove(member)
		}
		return ok
	}
	i := findScored(z, member)
	if i >= 0 {
		z.small = slices.Delete(z.small, i, i+1)
	}
	return i >= 0
}

// RemoveRanks removes the members with ranks from up to to, which is excluded.
func (z *ZSetValue) RemoveRanks(from, to int) {
	if z.large != nil {
		z.large.cut(from, to)
	} else {
		z.small = slices.Delete(z.small, from, to)
	}
}

// Rank returns the rank and the score of member; ok is false if it is absent.
func (z *ZSetValue) Rank(member []byte) (rank int, score float64, ok bool) {
	if z.large != nil {
		slot, ok := z.large.slots[string(member)]
		if !ok {
			return 0, 0, false
		}
		return int(z.large.rank(z.large.root, link(slot+1))), z.large.items[slot].data.score, true
	}
	i := findScored(z, member)
	if i < 0 {
		return 0, 0, false
	}
	return i, z.small[i].score, true
}

// At returns the member with this rank, which must exist.
func (z *ZSetValue) At(rank int) (member string, score float64) {
	if z.large != nil {
		it := z.large.nth(rank)
		return it.name, it.data.score
	}
	return z.small[rank].member, z.small[rank].score
}

// Each calls do for the members with ranks from up to to, which is excluded, in ascending or reverse order, until it returns false. do must
// not change the sorted set.
func (z *ZSetValue) Each(from, to int, reverse bool, do func(member string, score float64) bool) {
	switch {
	case z.large != nil:
		z.large.walk(stretch{z.large.root, from, to}, reverse, do)
	case reverse:
		for i := to - 1; i >= from && do(z.small[i].member, z.small[i].score); i-- {
		}
	default:
		for i := from; i < to && do(z.small[i].member, z.small[i].score); i++ {
		}
	}
}

// All calls do for every member, in whatever order is fastest.
func (z *ZSetValue) All(do func(member string, score float64)) {
	if z.large != nil {
		for _, it := range z.large.each {
			do(it.name, it.data.score)
		}
		return
	}
	for _, s := range z.small {
		do(s.member, s.score)
	}
}

// Scan calls do for members from cursor on, about count of them, and returns the next cursor, 0 at the end: ZSCAN. A small sorted set is
// scanned whole.
func (z *ZSetValue) Scan(cursor uint64, count int, do func(member string, score float64)) uint64 {
	if z.large != nil {
		return z.large.scan(cursor, count, func(_ uint32, it *item[node]) { do(it.name, it.data.score) })
	}
	z.All(do)
	return 0
}

// Sample returns the ranks of n different random members, ascending, or all ranks if there are no more.
func (z *ZSetValue) Sample(n int, draw func() uint64) []int { return ranks(n, z.Len(), draw) }

// findScored returns the index of member in the small form, -1 if it is absent.
func findScored[N name](z *ZSetValue, member N) int {
	return slices.IndexFunc(z.small, func(s scored) bool { return s.member == string(member) })
}

// noNegativeZero turns -0 into 0, as the small form does: Redis's listpack stores it as the integer 0.
func noNegativeZero(score float64) float64 {
	if score == 0 {
		return 0
	}
	return score
}

// insert inserts a member at its place in the small form.
func (z *ZSetValue) insert(member string, score float64) {
	score = noNegativeZero(score)
	i := z.search(func(s float64, m string) bool { return before(s, m, score, member) })
	z.small = slices.Insert(z.small, i, scored{member, score})
}

// enlarge switches to the large form with room for n members.
func (z *ZSetValue) enlarge(n int) {
	z.large = newRanking(max(n, len(z.small)))
	for _, s := range z.small {
		z.large.link(z.large.put(s.member, node{score: s.score}))
	}
	z.small = nil
}
