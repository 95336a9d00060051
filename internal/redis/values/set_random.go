package values

import (
	"maps"
	"slices"
	"strconv"
)

// Random returns one member, each with the same probability. draw returns uniform 64-bit numbers. The set must not be empty.
func (s *SetValue) Random(draw func() uint64) string {
	switch s.form {
	case intset:
		return strconv.FormatInt(s.ints[draw()%uint64(len(s.ints))], 10)
	case listpack:
		return s.small[draw()%uint64(len(s.small))]
	}
	return s.big.random(draw).name
}

// Sample returns n different members, each choice with the same probability; all, if the set has no more.
func (s *SetValue) Sample(n int, draw func() uint64) []string {
	n = min(n, s.Len())
	sample := make([]string, 0, n)
	if s.form == hashtable && n < s.Len()/3 {
		s.big.sampleFew(n, draw, func(it *item[struct{}]) { sample = append(sample, it.name) })
		return sample
	}
	// Every member is taken with the probability that is left for it, so that exactly n are.
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

// Pop takes out n different members by chance and returns them. When it leaves but a few of a table, these move into a small set: Redis
// does so because it is cheaper to take the few that stay than the many that go.
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

// moveFactor: a set is rebuilt when what leaves it is this many times what stays.
const moveFactor = 5

// ranks returns n different numbers below size by chance, ascending.
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
