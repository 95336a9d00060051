package values

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// chunk is a run of elements in one piece of memory, with free room at the end where it grows. An element is its length, its bytes and its
// length again, so that a chunk can be walked in both directions.
type chunk struct {
	prev, next *chunk
	buf        []byte
	from, to   int // the elements are buf[from:to]
	n          int
	size       int  // in bytes, as Redis would count them
	alone      bool // one element, too big to share a chunk
}

// element holds the positions of one element in buf: all of it, and its bytes.
type element struct{ start, data, dataEnd, end int }

func (c *chunk) bytes(e element) []byte { return c.buf[e.data:e.dataEnd:e.dataEnd] }

// element returns the element that begins at at.
func (c *chunk) element(at int) element {
	if n := int(c.buf[at]); n < 0x80 {
		return element{at, at + 1, at + 1 + n, at + 2 + n}
	}
	u, w := binary.Uvarint(c.buf[at:])
	n := int(u)
	return element{at, at + w, at + w + n, at + 2*w + n}
}

// before returns the element that ends at end.
func (c *chunk) before(end int) element {
	n, w := 0, 0
	for {
		w++
		d := c.buf[end-w]
		n |= int(d&0x7f) << (7 * (w - 1))
		if d < 0x80 {
			break
		}
	}
	return element{end - 2*w - n, end - w - n, end - w, end}
}

func (c *chunk) first() element { return c.element(c.from) }
func (c *chunk) last() element  { return c.before(c.to) }

// nth returns element i of the chunk.
func (c *chunk) nth(i int) element {
	if i < c.n/2 {
		e := c.first()
		for ; i > 0; i-- {
			e = c.element(e.end)
		}
		return e
	}
	e := c.last()
	for ; i < c.n-1; i++ {
		e = c.before(e.start)
	}
	return e
}

// width returns how many bytes the length n takes.
func width(n int) int {
	return (bits.Len(uint(n)|1) + 6) / 7
}

// put writes b as an element at at, where there must be room, and counts it.
func (c *chunk) put(at int, b []byte) {
	w := binary.PutUvarint(c.buf[at:], uint64(len(b)))
	head, tail := c.buf[at:at+w], c.buf[at+w+len(b):]
	copy(c.buf[at+w:], b)
	for i, d := range head {
		tail[w-1-i] = d
	}
	c.n++
	c.size += packedSize(b)
}

func (c *chunk) pushBack(b []byte) {
	need := len(b) + 2*width(len(b))
	if cap(c.buf)-c.to < need {
		c.room(0, need)
	}
	c.put(c.to, b)
	c.to += need
}

func (c *chunk) pushFront(b []byte) {
	need := len(b) + 2*width(len(b))
	if c.from < need {
		c.room(need, 0)
	}
	c.from -= need
	c.put(c.from, b)
}

// insert inserts b between two elements.
func (c *chunk) insert(at int, b []byte) {
	need := len(b) + 2*width(len(b))
	if cap(c.buf)-c.to < need {
		at -= c.from
		c.room(0, need)
		at += c.from
	}
	copy(c.buf[at+need:], c.buf[at:c.to])
	c.put(at, b)
	c.to += need
}

// cut removes n whole elements, from i to j, which take size bytes in Redis.
func (c *chunk) cut(i, j, n, size int) {
	switch {
	case i == c.from:
		c.from = j
	case j == c.to:
		c.to = i
	default:
		copy(c.buf[i:], c.buf[j:c.to])
		c.to -= j - i
	}
	c.n -= n
	c.size -= size
}

func (c *chunk) cutElement(e element) { c.cut(e.start, e.end, 1, packedSize(c.bytes(e))) }

// room makes room for front bytes at the front and back bytes at the back: by moving the elements if much is free at the other end, as in a
// queue, or with a buffer of up to twice the size.
func (c *chunk) room(front, back int) {
	used := c.to - c.from
	need := front + back
	buf, from := c.buf[:cap(c.buf)], 0
	if free := len(buf) - used; free < need || free < used/2 {
		const full = 8 << 10 // about the size of a full chunk under the usual limit
		buf = make([]byte, used+max(need, min(max(used, 24), max(full-used, used/4))))
	}
	if front > 0 {
		from = len(buf) - used
	}
	copy(buf[from:], c.buf[c.from:c.to])
	c.buf, c.from, c.to = buf, from, from+used
}

func (c *chunk) clone() *chunk {
	d := *c
	d.buf = append([]byte(nil), c.buf[c.from:c.to]...)
	d.buf = d.buf[:cap(d.buf)]
	d.from, d.to = 0, c.to-c.from
	return &d
}

// takes reports whether Redis would put b into this chunk. Like Redis it allows 8 bytes of overhead for an element.
func (c *chunk) takes(b []byte, lim Limits) bool {
	const allowance = 8
	fill := lim.ListMaxListpackSize
	return c != nil && !c.alone && !giant(fill, len(b)) && !tooBig(fill, c.size+len(b)+allowance, c.n+1)
}

// The limits of a chunk: list-max-listpack-size is the most elements or, if negative, names a size.

// bounds returns the largest size and number of elements; fill limits one of them.
func bounds(fill int) (size, count int) {
	if fill < 0 {
		return 2048 << min(-fill, 5), math.MaxInt
	}
	return math.MaxInt, max(fill, 1)
}

// mostBytes is the largest size of a chunk; a limit on the number of elements comes with one on the size.
func mostBytes(fill int) int {
	if size, _ := bounds(fill); fill < 0 {
		return size
	}
	return 8 << 10
}

// tooBig reports whether this size and number of elements exceed a chunk's limits.
func tooBig(fill, size, count int) bool {
	_, most := bounds(fill)
	return size > mostBytes(fill) || count > most
}

// giant reports whether an element of n bytes gets its own chunk.
func giant(fill, n int) bool { return n > mostBytes(fill) }

// emptySize is the size of an empty listpack.
const emptySize = 7

// packedSize returns the size of b in a listpack of Redis: an integer depending on its value, a string with its length; then the length of
// all that.
func packedSize(b []byte) int {
	size := 5 + len(b)
	switch {
	case len(b) < 64:
		size = 1 + len(b)
	case len(b) < 4096:
		size = 2 + len(b)
	}
	if len(b) <= 20 && len(b) > 0 && (b[0] == '-' || '0' <= b[0] && b[0] <= '9') {
		if n, ok := ParseInt(b); ok {
			size = packedIntSize(n)
		}
	}
	if size < 1<<7 {
		return size + 1
	}
	return size + width(size+1) // 16383 takes three bytes already: listpack.c, lpEncodeBacklenBytes
}

func packedIntSize(n int64) int {
	switch {
	case 0 <= n && n < 1<<7:
		return 1
	case -1<<12 <= n && n < 1<<12:
		return 2
	case -1<<15 <= n && n < 1<<15:
		return 3
	case -1<<23 <= n && n < 1<<23:
		return 4
	case -1<<31 <= n && n < 1<<31:
		return 5
	}
	return 9
}
