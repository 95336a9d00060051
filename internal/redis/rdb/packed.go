package rdb

import (
	"encoding/binary"
	"math/bits"
)

// Listpack returns the elements of a listpack, which Redis serialises as it holds it: total bytes, number of elements, then the elements.
// Each is a header with type and length, the data, and its own length for walking backwards.
func (r *Reader) Listpack() (list [][]byte) {
	b := r.Bytes()
	if len(b) < 7 || int64(binary.LittleEndian.Uint32(b)) != int64(len(b)) || b[len(b)-1] != 0xff {
		r.fail()
		return nil
	}
	in := Reader{b: b[6 : len(b)-1]}
	for len(in.b) > 0 {
		left := len(in.b)
		list = append(list, in.listpackElement())
		in.take(backLength(left - len(in.b)))
	}
	if in.err != nil {
		r.fail()
		return nil
	}
	return list
}

// listpackElement returns the next element. The element's own length, which follows, is not read.
func (r *Reader) listpackElement() []byte {
	head := r.Byte()
	switch {
	case head < 0x80:
		return decimal(int64(head))
	case head < 0xc0:
		return r.take(uint64(head & 0x3f))
	case head < 0xe0: // a 13-bit number
		return decimal(int64(int16(uint16(head)<<8|uint16(r.Byte()))<<3) >> 3)
	case head < 0xf0:
		return r.take(uint64(head&0x0f)<<8 | uint64(r.Byte()))
	case head == 0xf0:
		return r.take(uint64(uint32(signed(r.take(4)))))
	case head <= 0xf4:
		width := [...]uint64{2, 3, 4, 8}[head-0xf1]
		return decimal(signed(r.take(width)))
	}
	r.fail()
	return nil
}

// signed returns b as a little-endian number; 0 if b is empty.
func signed(b []byte) int64 {
	var wide [8]byte
	copy(wide[8-len(b):], b)
	return int64(binary.LittleEndian.Uint64(wide[:])) >> (8 * (8 - len(b)))
}

// backLength is how many bytes the length after an element of this size takes: one for each seven bits. If the length would just fit into two
// or more bytes, Redis takes one byte more.
func backLength(size int) uint64 {
	n := uint64(bits.Len(uint(size)|1)+6) / 7
	if n > 1 && size == 1<<(7*n)-1 {
		n++
	}
	return n
}

// Intset returns the elements of a set of integers: their width, their number, and then each.
func (r *Reader) Intset() (list [][]byte) {
	b := r.Bytes()
	if len(b) < 8 {
		r.fail()
		return nil
	}
	width, n := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	if width != 2 && width != 4 && width != 8 || width*n != uint64(len(b)) {
		r.fail()
		return nil
	}
	for ; len(b) > 0; b = b[width:] {
		list = append(list, decimal(signed(b[:width])))
	}
	return list
}
