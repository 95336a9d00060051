package values

import (
	"maps"
	"slices"
	"unsafe"
)

// table is the large form shared by sets, hashes and sorted sets: elements by name, each in a slot that it keeps for life. The slot number is
// the cursor of SSCAN, HSCAN and ZSCAN: an element present during a whole scan is returned exactly once, whatever is added or removed around
// it. Random choices draw slots.
type table[T any] struct {
	slots map[string]uint32
	items []item[T]
	free  []uint32 // slots of removed elements, the latest last
	bytes int      // of all names
}

type item[T any] struct {
	name string
	used bool
	data T
}

func newTable[T any](size int) *table[T] {
	return &table[T]{slots: make(map[string]uint32, size), items: make([]item[T], 0, size)}
}

func (t *table[T]) len() int { return len(t.slots) }

// add adds an element, which must be absent, and returns its slot.
func (t *table[T]) add(name []byte, data T) uint32 { return t.put(string(name), data) }

// put is add for a name that need not be copied.
func (t *table[T]) put(name string, data T) uint32 {
	it := item[T]{name: name, used: true, data: data}
	var slot uint32
	if n := len(t.free); n > 0 {
		slot, t.free = t.free[n-1], t.free[:n-1]
		t.items[slot] = it
	} else {
		slot = uint32(len(t.items))
		t.items = append(t.items, it)
	}
	t.slots[it.name] = slot
	t.bytes += len(name)
	return slot
}

// remove removes name and reports whether it was there.
func (t *table[T]) remove(name []byte) bool {
	slot, ok := t.slots[string(name)]
	if !ok {
		return false
	}
	delete(t.slots, string(name))
	t.bytes -= len(name)
	t.items[slot] = item[T]{}
	t.free = append(t.free, slot)
	return true
}

// clone returns a table with the same elements in the same slots. Data is copied as an assignment does.
func (t *table[T]) clone() *table[T] {
	return &table[T]{slots: maps.Clone(t.slots), items: slices.Clone(t.items), free: slices.Clone(t.free), bytes: t.bytes}
}

// size returns roughly how many bytes the table takes.
func (t *table[T]) size() int {
	const entry = 24 // of the map, including its empty places
	return 80 + cap(t.items)*int(unsafe.Sizeof(item[T]{})) + len(t.slots)*entry + t.bytes
}

// each ranges over the slots in use, in order. The table must not change meanwhile.
func (t *table[T]) each(yield func(slot uint32, it *item[T]) bool) {
	for i := range t.items {
		if it := &t.items[i]; it.used && !yield(uint32(i), it) {
			return
		}
	}
}

// scan calls do for the elements of the slots from cursor on, until it has looked at more than count slots (ten times as many where most are
// empty). It returns the next cursor, 0 at the end.
func (t *table[T]) scan(cursor uint64, count int, do func(slot uint32, it *item[T])) uint64 {
	looks := count * 10
	for ; cursor < uint64(len(t.items)); cursor++ {
		if count <= 0 || looks <= 0 {
			return cursor
		}
		looks--
		if it := &t.items[cursor]; it.used {
			count--
			do(uint32(cursor), it)
		}
	}
	return 0
}

// random returns a random element, each with the same probability. draw returns uniform 64-bit numbers. The table must not be empty.
func (t *table[T]) random(draw func() uint64) *item[T] {
	n := uint64(len(t.items))
	for range 64 {
		if it := &t.items[draw()%n]; it.used {
			return it
		}
	}
	// Most slots are empty: walk to the element drawn by number.
	skip := draw() % uint64(len(t.slots))
	for _, it := range t.each {
		if skip == 0 {
			return it
		}
		skip--
	}
	panic("values: random element of an empty table")
}

// sampleFew calls do with count different elements, far fewer than there are; when it draws an element again, it draws another.
func (t *table[T]) sampleFew(count int, draw func() uint64, do func(it *item[T])) {
	seen := make(map[*item[T]]bool, count)
	for len(seen) < count {
		if it := t.random(draw); !seen[it] {
			seen[it] = true
			do(it)
		}
	}
}
