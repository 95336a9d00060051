package values

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
)

// Strings as arrays of bits: bit 0 is the highest bit of the first byte. Bits beyond the end read as 0.

// Bit returns the bit at i.
func Bit(s []byte, i int64) byte {
	if i>>3 >= int64(len(s)) {
		return 0
	}
	return s[i>>3] >> (7 - i&7) & 1
}

// PutBit sets the bit at i, which must lie in s.
func PutBit(s []byte, i int64, bit byte) {
	mask := byte(1) << (7 - i&7)
	s[i>>3] &^= mask
	if bit == 1 {
		s[i>>3] |= mask
	}
}

// CountBits returns how many of the bits from lo up to hi, which is excluded, are 1.
func CountBits(s []byte, lo, hi int64) (n int64) {
	for ; lo < hi && lo&7 != 0; lo++ {
		n += int64(Bit(s, lo))
	}
	for ; hi > lo && hi&7 != 0; hi-- {
		n += int64(Bit(s, hi-1))
	}
	whole := s[lo>>3 : hi>>3]
	for ; len(whole) >= 8; whole = whole[8:] {
		n += int64(bits.OnesCount64(binary.LittleEndian.Uint64(whole)))
	}
	for _, b := range whole {
		n += int64(bits.OnesCount8(b))
	}
	return n
}

// FindBit returns the position of the first bit with this value from lo up to hi, which is excluded; -1 if there is none.
func FindBit(s []byte, bit byte, lo, hi int64) int64 {
	skip := byte(0xff) // a byte without such a bit
	if bit == 1 {
		skip = 0
	}
	for lo < hi {
		if lo&7 == 0 && s[lo>>3] == skip {
			lo = 8 * (lo>>3 + int64(run(s[lo>>3:], skip)))
			continue
		}
		if Bit(s, lo) == bit {
			return lo
		}
		lo++
	}
	return -1
}

// run returns how many bytes at the beginning of s equal b.
func run(s []byte, b byte) int {
	eight := bytes.Repeat([]byte{b}, 8)
	i := 0
	for ; i+8 <= len(s) && bytes.Equal(s[i:i+8], eight); i += 8 {
	}
	for ; i < len(s) && s[i] == b; i++ {
	}
	return i
}

// BitOp is an operation on whole strings.
type BitOp uint8

// The operations of BITOP.
const (
	And BitOp = iota
	Or
	Xor
	Not
)

// BitOpNamed returns the operation with this name, in any case.
func BitOpNamed(name []byte) (BitOp, bool) {
	op := slices.Index([]string{"and", "or", "xor", "not"}, strings.ToLower(string(name)))
	return BitOp(op), op >= 0
}

// Apply returns the result of op; shorter strings are padded with zeros to the longest. Not takes a single string.
func (op BitOp) Apply(strings [][]byte) []byte {
	size := 0
	for _, s := range strings {
		size = max(size, len(s))
	}
	result := make([]byte, size)
	copy(result, strings[0])
	if op == Not {
		for i := range result {
			result[i] = ^result[i]
		}
		return result
	}
	for _, s := range strings[1:] {
		switch op {
		case And:
			for i, b := range s {
				result[i] &= b
			}
			clear(result[len(s):])
		case Or:
			for i, b := range s {
				result[i] |= b
			}
		case Xor:
			for i, b := range s {
				result[i] ^= b
			}
		}
	}
	return result
}
