package rdb

import "encoding/binary"

// Listpack returns the elements of a listpack, which Redis serialises as it holds it: total bytes, number of elements, then each as a head
// that tells type and length, the data, and its own length for walking back.
func Listpack(b []byte) ([][]byte, error) {
	if len(b) < 7 || int64(binary.LittleEndian.Uint32(b)) != int64(len(b)) || b[len(b)-1] != 0xff {
		return nil, ErrFormat
	}
	var list [][]byte
	for b = b[6:]; b[0] != 0xff; {
		element, size, ok := listpackElement(b)
		if !ok {
			return nil, ErrFormat
		}
		size += backLength(size)
		if size >= len(b) {
			return nil, ErrFormat
		}
		list, b = append(list, element), b[size:]
	}
	if len(b) != 1 {
		return nil, ErrFormat
	}
	return list, nil
}

// listpackElement returns what b begins with, and the bytes that takes.
func listpackElement(b []byte) (element []byte, size int, ok bool) {
	head := b[0]
	var data, width int // where a string begins and how long it is; or how wide a number is
	switch {
	case head < 0x80:
		return decimal(int64(head)), 1, true
	case head < 0xc0:
		data, size = 1, int(head&0x3f)
	case head < 0xe0:
		if len(b) < 2 {
			return nil, 0, false
		}
		return decimal(int64(int16(uint16(head)<<8|uint16(b[1]))<<3) >> 3), 2, true
	case head < 0xf0:
		if len(b) < 2 {
			return nil, 0, false
		}
		data, size = 2, int(head&0x0f)<<8|int(b[1])
	case head == 0xf0:
		if len(b) < 5 {
			return nil, 0, false
		}
		data, size = 5, int(binary.LittleEndian.Uint32(b[1:]))
	case head <= 0xf4:
		width = [...]int{2, 3, 4, 8}[head-0xf1]
	default:
		return nil, 0, false
	}
	if width > 0 {
		if len(b) < 1+width {
			return nil, 0, false
		}
		return decimal(signed(b[1 : 1+width])), 1 + width, true
	}
	if len(b) < data+size {
		return nil, 0, false
	}
	return b[data : data+size], data + size, true
}

// signed returns the little-endian number that b is.
func signed(b []byte) int64 {
	var wide [8]byte
	copy(wide[8-len(b):], b)
	return int64(binary.LittleEndian.Uint64(wide[:])) >> (8 * (8 - len(b)))
}

// backLength is how many bytes the length of an element of this size takes, behind it.
func backLength(size int) int {
	n := 1
	for size >>= 7; size > 0; size >>= 7 {
		n++
	}
	return n
}

// Intset returns the elements of a set of integers: how wide they are, how many, and then each.
func Intset(b []byte) ([][]byte, error) {
	if len(b) < 8 {
		return nil, ErrFormat
	}
	width, n := uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[4:]))
	b = b[8:]
	if width != 2 && width != 4 && width != 8 || width*n != uint64(len(b)) {
		return nil, ErrFormat
	}
	var list [][]byte
	for ; len(b) > 0; b = b[width:] {
		list = append(list, decimal(signed(b[:width])))
	}
	return list, nil
}
