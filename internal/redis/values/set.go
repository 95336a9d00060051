package values

import (
	"slices"
	"strconv"
)

// SetValue is a collection of distinct byte strings. It has one of three forms: integers in ascending order, members in insertion order, or a
// table. The form only ever grows; only Pop can make a table small again, as in Redis.
type SetValue struct {
	form  setForm
	ints  []int64
	small []string
	big   *table[struct{}]
}

type setForm uint8

const (
	intset setForm = iota
	listpack
	hashtable
)

// NewSet returns an empty set, which holds integers until other members come.
func NewSet() *SetValue { return &SetValue{} }

// NewSetFor returns an empty set in the form that Redis chooses before it adds n members, this one first.
func NewSetFor(member []byte, n int, l Limits) *SetValue {
	_, integer := ParseInt(member)
	switch {
	case integer && n <= l.SetMaxIntsetEntries:
		return NewSet()
	case n <= l.SetMaxListpackEntries:
		return NewSmallSet(n)
	}
	return NewBigSet(n)
}

// NewSmallSet returns an empty set in insertion order, with room for n members.
func NewSmallSet(n int) *SetValue {
	return &SetValue{form: listpack, small: make([]string, 0, n)}
}

// NewBigSet returns an empty set that is a table from the start, with room for n members.
func NewBigSet(n int) *SetValue {
	return &SetValue{form: hashtable, big: newTable[struct{}](n)}
}

func (s *SetValue) Kind() Kind { return Set }

func (s *SetValue) Encoding() string {
	return [...]string{"intset", "listpack", "hashtable"}[s.form]
}

func (s *SetValue) Len() int {
	switch s.form {
	case intset:
		return len(s.ints)
	case listpack:
		return len(s.small)
	}
	return s.big.len()
}

func (s *SetValue) Clone() Value {
	c := &SetValue{form: s.form, ints: slices.Clone(s.ints), small: slices.Clone(s.small)}
	if s.big != nil {
		c.big = s.big.clone()
	}
	return c
}

func (s *SetValue) Size() int {
	n := 80 + 8*cap(s.ints) + 16*cap(s.small)
	for _, m := range s.small {
		n += len(m)
	}
	if s.big != nil {
		n += s.big.size()
	}
	return n
}

// Add adds member and reports whether it was absent.
func (s *SetValue) Add(member []byte, l Limits) bool { return add(s, member, l) }

// AddName is Add for a member returned by another set; its memory is shared.
func (s *SetValue) AddName(member string, l Limits) bool { return add(s, member, l) }

// Grow prepares for n calls of Add: if n alone exceeds a small form, Redis makes the table at once.
func (s *SetValue) Grow(n int, l Limits) {
	if s.form == listpack && n > l.SetMaxListpackEntries || s.form == intset && n > l.SetMaxIntsetEntries {
		s.enlarge(n)
	}
}

// Ints returns the members if they are kept as integers. They must not be changed.
func (s *SetValue) Ints() ([]int64, bool) { return s.ints, s.form == intset }

// Each calls do for every member until do returns false. do must not change the set.
func (s *SetValue) Each(do func(member string) bool) {
	switch s.form {
	case intset:
		for _, n := range s.ints {
			if !do(strconv.FormatInt(n, 10)) {
				return
			}
		}
	case listpack:
		for _, m := range s.small {
			if !do(m) {
				return
			}
		}
	default:
		for _, it := range s.big.each {
			if !do(it.name) {
				return
			}
		}
	}
}

// Scan calls do for members from cursor on, about count of them, and returns the next cursor, 0 at the end: SSCAN. A small set is scanned
// whole.
func (s *SetValue) Scan(cursor uint64, count int, do func(member string)) uint64 {
	if s.form == hashtable {
		return s.big.scan(cursor, count, func(_ uint32, it *item[struct{}]) { do(it.name) })
	}
	for m := range s.Each {
		do(m)
	}
	return 0
}

// TryInts turns the set into one of integers if possible, as Redis does with some results.
func (s *SetValue) TryInts(l Limits) {
	if s.form == intset || s.Len() > l.SetMaxIntsetEntries {
		return
	}
	ints := make([]int64, 0, s.Len())
	for m := range s.Each {
		n, ok := ParseInt([]byte(m))
		if !ok {
			return
		}
		ints = append(ints, n)
	}
	slices.Sort(ints)
	*s = SetValue{ints: ints}
}

// name is a member, either from a command or from another set.
type name interface{ []byte | string }

// Has reports whether member is in the set.
func (s *SetValue) Has(member []byte) bool {
	switch s.form {
	case intset:
		n, ok := ParseInt(member)
		if ok {
			_, ok = slices.BinarySearch(s.ints, n)
		}
		return ok
	case listpack:
		return find(s, member) >= 0
	}
	_, ok := s.big.slots[string(member)]
	return ok
}

func add[N name](s *SetValue, member N, l Limits) bool {
	if s.form == intset {
		if n, ok := ParseInt([]byte(member)); ok {
			return s.addInt(n, l)
		}
		if s.fitsSmall(len(member), l) {
			*s = SetValue{form: listpack, small: slices.AppendSeq(make([]string, 0, len(s.ints)+1), s.Each)}
		} else {
			s.enlarge(len(s.ints) + 1)
		}
	}
	if s.form == listpack {
		if find(s, member) >= 0 {
			return false
		}
		if len(s.small) < l.SetMaxListpackEntries && len(member) <= l.SetMaxListpackValue {
			s.small = append(s.small, string(member))
			return true
		}
		s.enlarge(len(s.small) + 1)
	}
	if _, ok := s.big.slots[string(member)]; ok {
		return false
	}
	s.big.put(string(member), struct{}{})
	return true
}

// Remove removes member and reports whether it was there.
func (s *SetValue) Remove(member []byte) bool {
	switch s.form {
	case intset:
		n, ok := ParseInt(member)
		if !ok {
			return false
		}
		i, ok := slices.BinarySearch(s.ints, n)
		if ok {
			s.ints = slices.Delete(s.ints, i, i+1)
		}
		return ok
	case listpack:
		i := find(s, member)
		if i >= 0 {
			s.small = slices.Delete(s.small, i, i+1)
		}
		return i >= 0
	}
	return s.big.remove(member)
}

// find returns the index of member in the small form, -1 if it is absent.
func find[N name](s *SetValue, member N) int {
	return slices.IndexFunc(s.small, func(m string) bool { return m == string(member) })
}

func (s *SetValue) addInt(n int64, l Limits) bool {
	i, found := slices.BinarySearch(s.ints, n)
	if found {
		return false
	}
	s.ints = slices.Insert(s.ints, i, n)
	if len(s.ints) > l.SetMaxIntsetEntries {
		s.enlarge(len(s.ints))
	}
	return true
}

// fitsSmall reports whether the integers and one more member, of this length, fit the form in insertion order.
func (s *SetValue) fitsSmall(length int, l Limits) bool {
	if n := len(s.ints); n > 0 {
		length = max(length, len(strconv.FormatInt(s.ints[0], 10)), len(strconv.FormatInt(s.ints[n-1], 10)))
	}
	return len(s.ints) < l.SetMaxListpackEntries && length <= l.SetMaxListpackValue
}

// enlarge turns the set into a table with room for n members.
func (s *SetValue) enlarge(n int) {
	big := newTable[struct{}](max(n, s.Len()))
	for m := range s.Each {
		big.put(m, struct{}{})
	}
	*s = SetValue{form: hashtable, big: big}
}
