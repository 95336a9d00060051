package values

import "unsafe"

// ListValue is a sequence of byte strings, cheap at both ends: a linked list of chunks of a few kilobytes.
//
// A short list is one chunk, which Redis calls a listpack; a longer one is a quicklist. Chunks are divided by Redis's rules, so that OBJECT
// ENCODING changes at the same commands. Call Grow before adding elements, and Shrink after removing some.
type ListValue struct {
	head, tail *chunk // nil when empty
	n          int
	quick      bool
}

// NewList returns an empty list.
func NewList() *ListValue { return &ListValue{} }

// NewLongList returns an empty list in the long form: call Settle once it is filled.
func NewLongList() *ListValue { return &ListValue{quick: true} }

// Kind returns List.
func (l *ListValue) Kind() Kind { return List }

// Encoding returns Redis's name of the form.
func (l *ListValue) Encoding() string {
	if l.quick {
		return "quicklist"
	}
	return "listpack"
}

// Len returns the number of elements.
func (l *ListValue) Len() int { return l.n }

// Clone returns a copy.
func (l *ListValue) Clone() Value {
	copied := &ListValue{n: l.n, quick: l.quick}
	for c := l.head; c != nil; c = c.next {
		copied.link(c.clone(), copied.tail)
	}
	return copied
}

// Size returns roughly how many bytes the list takes.
func (l *ListValue) Size() int {
	n := int(unsafe.Sizeof(*l))
	for c := l.head; c != nil; c = c.next {
		n += int(unsafe.Sizeof(*c)) + cap(c.buf)
	}
	return n
}

// Grow prepares for elements about to be added: if they do not fit the short form, the list switches to the long one.
func (l *ListValue) Grow(elements [][]byte, lim Limits) {
	if l.quick {
		return
	}
	size := emptySize
	if l.head != nil {
		size = l.head.size
	}
	for _, b := range elements {
		size += len(b)
	}
	l.quick = tooBig(lim.ListMaxListpackSize, size, l.n+len(elements))
}

// Shrink returns a short list to the short form: at half the size at which it left it, so that it does not switch back and forth.
func (l *ListValue) Shrink(lim Limits) {
	if !l.quick || l.head == nil || l.head.next != nil || l.head.alone {
		return
	}
	size, count := bounds(lim.ListMaxListpackSize)
	l.quick = l.head.size > size/2 || l.n > count/2
}

// Settle gives a list that was filled without Grow the right form for its size.
func (l *ListValue) Settle(lim Limits) {
	switch {
	case l.head == nil || l.head.next != nil || l.head.alone:
	case l.quick:
		size, count := bounds(lim.ListMaxListpackSize)
		l.quick = l.head.size > size || l.n > count
	default:
		l.quick = tooBig(lim.ListMaxListpackSize, l.head.size, l.n)
	}
}

// PushChunk appends elements to a list in the long form, all in one chunk, however many they are. If alone is set, it is a single element
// that shares its chunk with no other.
func (l *ListValue) PushChunk(elements [][]byte, alone bool) {
	if len(elements) == 0 {
		return
	}
	c := &chunk{size: emptySize, alone: alone}
	for _, b := range elements {
		c.pushBack(b)
	}
	l.n += c.n
	l.link(c, l.tail)
}

// PushFront adds an element at the front.
func (l *ListValue) PushFront(b []byte, lim Limits) {
	l.n++
	if l.quick && !l.head.takes(b, lim) || l.head == nil {
		l.link(l.newChunk(b, lim), nil)
		return
	}
	l.head.pushFront(b)
}

// PushBack adds an element at the back.
func (l *ListValue) PushBack(b []byte, lim Limits) {
	l.n++
	if l.quick && !l.tail.takes(b, lim) || l.tail == nil {
		l.link(l.newChunk(b, lim), l.tail)
		return
	}
	l.tail.pushBack(b)
}

// PopFront removes and returns the first element. The list must not be empty.
func (l *ListValue) PopFront() []byte { return l.pop(l.head, l.head.first()) }

// PopBack removes and returns the last element. The list must not be empty.
func (l *ListValue) PopBack() []byte { return l.pop(l.tail, l.tail.last()) }

func (l *ListValue) pop(c *chunk, e element) []byte {
	b := c.bytes(e)
	c.cutElement(e)
	l.removed(c, 1)
	return b
}

// At returns the element at index i, counted from 0, which must exist.
func (l *ListValue) At(i int) []byte {
	c, e := l.find(i)
	return c.bytes(e)
}

// Each calls do with every element, until it returns false.
func (l *ListValue) Each(do func(b []byte) bool) { l.EachFrom(0, do) }

// EachFrom calls do with the elements from index i on, until it returns false.
func (l *ListValue) EachFrom(i int, do func(b []byte) bool) {
	if i >= l.n {
		return
	}
	for c, e := l.find(i); ; e = c.element(e.end) {
		if !do(c.bytes(e)) {
			return
		}
		for e.end == c.to {
			if c = c.next; c == nil {
				return
			}
			e.end = c.from
		}
	}
}

// EachBack calls do with the elements from index i back to the first, until it returns false.
func (l *ListValue) EachBack(i int, do func(b []byte) bool) {
	if i < 0 {
		return
	}
	for c, e := l.find(i); ; e = c.before(e.start) {
		if !do(c.bytes(e)) {
			return
		}
		for e.start == c.from {
			if c = c.prev; c == nil {
				return
			}
			e.start = c.to
		}
	}
}

// Trim removes this many elements from the front and from the back; the list must have that many.
func (l *ListValue) Trim(front, back int) {
	for front > 0 && l.head.n <= front {
		front -= l.head.n
		l.drop(l.head)
	}
	for back > 0 && l.tail.n <= back {
		back -= l.tail.n
		l.drop(l.tail)
	}
	for range front {
		l.PopFront()
	}
	for range back {
		l.PopBack()
	}
}

// find returns the chunk and the position of element i, searching from the nearer end.
func (l *ListValue) find(i int) (*chunk, element) {
	if i < l.n/2 {
		c := l.head
		for ; i >= c.n; c = c.next {
			i -= c.n
		}
		return c, c.nth(i)
	}
	c, i := l.tail, l.n-1-i
	for ; i >= c.n; c = c.prev {
		i -= c.n
	}
	return c, c.nth(c.n - 1 - i)
}

// newChunk returns a chunk that holds b.
func (l *ListValue) newChunk(b []byte, lim Limits) *chunk {
	c := &chunk{size: emptySize, alone: l.quick && giant(lim.ListMaxListpackSize, len(b))}
	c.pushBack(b)
	return c
}

// link puts c after prev, or first if prev is nil.
func (l *ListValue) link(c, prev *chunk) {
	next := l.head
	if prev != nil {
		next = prev.next
	}
	c.prev, c.next = prev, next
	l.join(prev, c)
	l.join(c, next)
}

// unlink removes c from the chain.
func (l *ListValue) unlink(c *chunk) { l.join(c.prev, c.next) }

// join makes b follow a. Nil stands for the end of the list on that side.
func (l *ListValue) join(a, b *chunk) {
	if a != nil {
		a.next = b
	} else {
		l.head = b
	}
	if b != nil {
		b.prev = a
	} else {
		l.tail = a
	}
}

// drop removes c with its elements.
func (l *ListValue) drop(c *chunk) {
	l.n -= c.n
	l.unlink(c)
}

// removed notes that n elements of c were removed.
func (l *ListValue) removed(c *chunk, n int) {
	l.n -= n
	if c.n == 0 {
		l.unlink(c)
	}
}
