package values

import (
	"maps"
	"slices"
	"strconv"
)

// Random returns a random member, each with the same probability. draw returns uniform 64-bit numbers. The set must not be empty.
func (s *SetValue) Random(draw func() uint64) string {
	switch s.form {
	case intset:
		return strconv.FormatInt(s.ints[draw()%uint64(len(s.ints))], 10)
	case listpack:
		return s.small[draw()%uint64(len(s.small))]
	}
	return s.big.random(draw).name
}

// Sample returns n different random members, or all if the set has no more; each choice is equally likely.
func (s *SetValue) Sample(n int, draw func() uint64) []string {
	n = min(n, s.Len())
	sample := make([]string, 0, n)
	if s.form == hashtable && n < s.Len()/3 {
		s.big.sampleFew(n, draw, func(it *item[struct{}]) { sample = append(sample, it.name) })
		return sample
	}
	// Each member is taken with the probability (still needed / still to come), so that exactly n are taken.
	rest := s.Len()
	s.Each(func(m string) bool {
		if draw()%uint64(rest) < uint64(n-len(sample)) {
			sample = append(sample, m)
		}
		rest--
		return len(sample) < n
	})
	return sample
}

// Pop removes n different random members and returns them. If it leaves only few in a table, these move to a small set, as in Redis: moving
// the few that stay is cheaper than removing the many that go.
func (s *SetValue) Pop(n int, draw func() uint64, l Limits) []string {
	popped := s.Sample(n, draw)
	if stay := s.Len() - len(popped); s.form != hashtable || stay*moveFactor > len(popped) {
		for _, m := range popped {
			s.Remove(Bytes(m))
		}
		return popped
	}
	old := s.big
	for _, m := range popped {
		old.remove(Bytes(m))
	}
	*s = *NewSmallSet(old.len())
	for _, it := range old.each {
		s.AddName(it.name, l)
	}
	return popped
}

// moveFactor is how many times more members must go than stay for a set to be rebuilt.
const moveFactor = 5

// ranks returns n different random numbers below size, ascending.
func ranks(n, size int, draw func() uint64) []int {
	n = min(n, size)
	chosen := make(map[int]bool, n)
	for i := size - n; i < size; i++ {
		r := int(draw() % uint64(i+1))
		if chosen[r] {
			r = i
		}
		chosen[r] = true
	}
	return slices.Sorted(maps.Keys(chosen))
}
