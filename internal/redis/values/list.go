package values

import "unsafe"

// ListValue is a sequence of byte strings, cheap at both ends: chunks of a few kilobytes (chunk), linked to their neighbours.
//
// A short list is one chunk, which Redis calls a listpack; a longer one is a quicklist. Where one chunk ends and the next begins follows
// Redis's rules, so that OBJECT ENCODING changes at the same commands. A list that is changed must be prepared with Grow before elements
// come in, and Shrink is called after some went.
type ListValue struct {
	head, tail *chunk // nil when empty
	n          int
	quick      bool
}

// NewList returns an empty list.
func NewList() *ListValue { return &ListValue{} }

// NewLongList returns an empty list in the long form: Settle it when it is filled.
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

// Size returns about how many bytes the list takes.
func (l *ListValue) Size() int {
	n := int(unsafe.Sizeof(*l))
	for c := l.head; c != nil; c = c.next {
		n += int(unsafe.Sizeof(*c)) + cap(c.buf)
	}
	return n
}

// Grow prepares for elements that are about to come in: if they do not fit the short form, the list takes the long one.
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

// Shrink gives a list that has become short the short form again: at half the size at which it left it, so that it does not go
// to and fro.
func (l *ListValue) Shrink(lim Limits) {
	if !l.quick || l.head == nil || l.head.next != nil || l.head.alone {
		return
	}
	size, count := bounds(lim.ListMaxListpackSize)
	l.quick = l.head.size > size/2 || l.n > count/2
}

// Settle gives a list that was filled without Grow the form for what it holds: the long one if it outgrew the short one, the short one if it
// would fit.
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

// PushChunk puts elements after all others of a list in the long form, together in a chunk, however many they are; alone, it is one and stays
// the only one there.
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

// PushFront puts an element before all others.
func (l *ListValue) PushFront(b []byte, lim Limits) {
	l.n++
	if l.quick && !l.head.takes(b, lim) || l.head == nil {
		l.link(l.newChunk(b, lim), nil)
		return
	}
	l.head.pushFront(b)
}

// PushBack puts an element after all others.
func (l *ListValue) PushBack(b []byte, lim Limits) {
	l.n++
	if l.quick && !l.tail.takes(b, lim) || l.tail == nil {
		l.link(l.newChunk(b, lim), l.tail)
		return
	}
	l.tail.pushBack(b)
}

// PopFront takes the first element out of a list that has one.
func (l *ListValue) PopFront() []byte { return l.pop(l.head, l.head.first()) }

// PopBack takes the last element out of a list that has one.
func (l *ListValue) PopBack() []byte { return l.pop(l.tail, l.tail.last()) }

func (l *ListValue) pop(c *chunk, e element) []byte {
	b := c.bytes(e)
	c.cutElement(e)
	l.removed(c, 1)
	return b
}

// At returns the element at index i, counted from 0, which there must be.
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

// Trim removes so many elements from the front and from the back; there must be as many.
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

// find returns the chunk and the place of element i, from the nearer end.
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

// link puts c after prev, or first.
func (l *ListValue) link(c, prev *chunk) {
	next := l.head
	if prev != nil {
		next = prev.next
	}
	c.prev, c.next = prev, next
	l.join(prev, c)
	l.join(c, next)
}

// unlink takes c out of the chain.
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

// drop takes c out with its elements.
func (l *ListValue) drop(c *chunk) {
	l.n -= c.n
	l.unlink(c)
}

// removed notes that n elements of c went.
func (l *ListValue) removed(c *chunk, n int) {
	l.n -= n
	if c.n == 0 {
		l.unlink(c)
	}
}
