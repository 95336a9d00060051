package values

// Insert puts b before or after the first element that equals pivot; it reports false if there is none.
func (l *ListValue) Insert(pivot, b []byte, after bool, lim Limits) bool {
	for c := l.head; c != nil; c = c.next {
		for at := c.from; at < c.to; {
			e := c.element(at)
			if string(c.bytes(e)) == string(pivot) {
				l.n++
				l.insertAt(c, e, b, after, lim)
				return true
			}
			at = e.end
		}
	}
	return false
}

// insertAt puts b beside element e of c. If c is full, a neighbour takes b, or c is split.
func (l *ListValue) insertAt(c *chunk, e element, b []byte, after bool, lim Limits) {
	at, edge, neighbour := e.start, e.start == c.from, c.prev
	if after {
		at, edge, neighbour = e.end, e.end == c.to, c.next
	}
	switch {
	case !l.quick || c.takes(b, lim):
		c.insert(at, b)
	case edge && neighbour.takes(b, lim) && after:
		neighbour.pushFront(b)
	case edge && neighbour.takes(b, lim):
		neighbour.pushBack(b)
	case edge && after:
		l.link(l.newChunk(b, lim), c)
	case edge:
		l.link(l.newChunk(b, lim), c.prev)
	default:
		rest := l.split(c, at)
		switch {
		case giant(lim.ListMaxListpackSize, len(b)):
			l.link(l.newChunk(b, lim), c)
		case after:
			rest.pushFront(b)
		default:
			c.pushBack(b)
			c = rest
		}
		l.mergeAround(c, lim)
	}
}

// split moves the elements of c from at on to a new chunk after it.
func (l *ListValue) split(c *chunk, at int) *chunk {
	rest := &chunk{size: emptySize, buf: append([]byte(nil), c.buf[at:c.to]...)}
	rest.buf = rest.buf[:cap(rest.buf)]
	rest.to = c.to - at
	for i := 0; i < rest.to; {
		e := rest.element(i)
		rest.n++
		rest.size += packedSize(rest.bytes(e))
		i = e.end
	}
	c.to = at
	c.n -= rest.n
	c.size -= rest.size - emptySize
	l.link(rest, c)
	return rest
}

// mergeAround joins chunks near c that are small enough to share one, in Redis's order (quicklist.c, _quicklistMergeNodes).
func (l *ListValue) mergeAround(c *chunk, lim Limits) {
	if c.prev != nil {
		l.merge(c.prev.prev, c.prev, lim)
	}
	if c.next != nil {
		l.merge(c.next, c.next.next, lim)
	}
	if l.merge(c.prev, c, lim) {
		c = c.prev
	}
	l.merge(c, c.next, lim)
}

// merge moves the elements of b to a, the chunk before it, if they fit into one.
func (l *ListValue) merge(a, b *chunk, lim Limits) bool {
	if a == nil || b == nil || a.alone || b.alone || tooBig(lim.ListMaxListpackSize, a.size+b.size-emptySize, a.n+b.n) {
		return false
	}
	if more := b.to - b.from; cap(a.buf)-a.to < more {
		a.room(0, more)
	}
	a.to += copy(a.buf[a.to:], b.buf[b.from:b.to])
	a.n += b.n
	a.size += b.size - emptySize
	l.unlink(b)
	return true
}

// Set replaces element i, which must exist.
func (l *ListValue) Set(i int, b []byte, lim Limits) {
	c, e := l.find(i)
	big := l.quick && giant(lim.ListMaxListpackSize, len(b))
	switch {
	case c.alone: // the replacement first goes into a chunk beside it
		l.insertAt(c, e, b, true, lim)
		l.unlink(c)
	case big:
		if e.end < c.to {
			l.split(c, e.end)
		}
		l.link(l.newChunk(b, lim), c)
		if c.cutElement(e); c.n == 0 {
			l.unlink(c)
		} else {
			l.mergeAround(c, lim)
		}
	default:
		if c.cutElement(e); e.end == c.from {
			c.pushFront(b)
		} else {
			c.insert(e.start, b)
		}
	}
}

// Remove removes elements that equal b: the first count of them, the last -count if count is negative, or all if it is 0. It returns how many
// it removed.
func (l *ListValue) Remove(b []byte, count int) int {
	spare := 0 // how many matches to keep before the first removal
	if count < 0 {
		for c := l.head; c != nil; c = c.next {
			spare += c.count(b)
		}
		spare, count = max(0, spare+count), 0
	}
	removed := 0
	for c := l.head; c != nil; {
		next, want := c.next, count-removed
		if count != 0 && want == 0 {
			break
		}
		n := c.remove(b, want, &spare)
		if n > 0 {
			l.removed(c, n)
		}
		removed += n
		c = next
	}
	return removed
}

// count returns how many elements equal b.
func (c *chunk) count(b []byte) (n int) {
	for at := c.from; at < c.to; {
		e := c.element(at)
		if string(c.bytes(e)) == string(b) {
			n++
		}
		at = e.end
	}
	return n
}

// remove removes up to most elements that equal b, or all if most is not positive, after sparing the first *spare.
func (c *chunk) remove(b []byte, most int, spare *int) int {
	removed, kept := 0, c.from
	for at := c.from; at < c.to; {
		e := c.element(at)
		at = e.end
		if (most <= 0 || removed < most) && string(c.bytes(e)) == string(b) {
			if *spare == 0 {
				removed++
				continue
			}
			*spare--
		}
		if removed > 0 {
			copy(c.buf[kept:], c.buf[e.start:e.end])
		}
		kept += e.end - e.start
	}
	c.to = kept
	c.n -= removed
	c.size -= removed * packedSize(b)
	return removed
}
