package values

import (
	"math"
	"math/bits"
)

// Bitfield is an integer of Width bits inside a string, starting at bit At, the highest bit first.
type Bitfield struct {
	At     int64
	Width  int // 1 to 64, to 63 if unsigned
	Signed bool
}

// Overflow says what happens to a number that does not fit its field.
type Overflow uint8

const (
	Wrap     Overflow = iota // its low bits are kept
	Saturate                 // the nearest number that fits
	Fail                     // nothing is written
)

// ParseBitfield reads a type such as u8 or i64.
func ParseBitfield(text []byte) (f Bitfield, ok bool) {
	if len(text) == 0 || text[0] != 'i' && text[0] != 'u' {
		return f, false
	}
	f.Signed = text[0] == 'i'
	n, ok := ParseInt(text[1:])
	if !ok || n < 1 || n > 64 || n == 64 && !f.Signed {
		return f, false
	}
	f.Width = int(n)
	return f, true
}

// Get returns the number in s.
func (f Bitfield) Get(s []byte) int64 {
	var v uint64
	for i := range int64(f.Width) {
		v = v<<1 | uint64(Bit(s, f.At+i))
	}
	return f.fit(v)
}

// Put writes the low bits of v into s, which must be long enough.
func (f Bitfield) Put(s []byte, v int64) {
	for i := range int64(f.Width) {
		PutBit(s, f.At+i, byte(uint64(v)>>(int64(f.Width)-1-i)&1))
	}
}

// fit returns the number that the low Width bits of v represent.
func (f Bitfield) fit(v uint64) int64 {
	unused := 64 - f.Width
	if f.Signed {
		return int64(v<<unused) >> unused
	}
	return int64(v << unused >> unused)
}

// Fit returns v, adjusted to the field by o; ok is false if it does not fit and o is Fail. As in Redis, an unsigned field treats a negative
// number as a large one, and a signed field does the same with a number more than an int64 below its maximum.
func (f Bitfield) Fit(v int64, o Overflow) (fitted int64, ok bool) {
	_, most := f.bounds()
	if v < 0 && (!f.Signed || f.Width < 64 && v < most-math.MaxInt64) {
		return f.settle(uint64(v), most, o)
	}
	return f.Sum(v, 0, o)
}

// Sum is Fit for a + b.
func (f Bitfield) Sum(a, b int64, o Overflow) (sum int64, ok bool) {
	low, carry := bits.Add64(uint64(a), uint64(b), 0)
	high := a>>63 + b>>63 + int64(carry) // high and low are the sum in 128 bits
	least, most := f.bounds()
	switch {
	case high < -1 || high == -1 && (int64(low) >= 0 || int64(low) < least):
		return f.settle(low, least, o)
	case high > 0 || high == 0 && low > uint64(most):
		return f.settle(low, most, o)
	}
	return int64(low), true
}

// settle adjusts a number that does not fit: low are its low bits, bound is the nearest number that fits.
func (f Bitfield) settle(low uint64, bound int64, o Overflow) (int64, bool) {
	switch o {
	case Wrap:
		return f.fit(low), true
	case Saturate:
		return bound, true
	}
	return 0, false
}

// bounds returns the smallest and the largest number that the field can hold.
func (f Bitfield) bounds() (least, most int64) {
	if f.Signed {
		return -1 << (f.Width - 1), int64(1<<(f.Width-1) - 1)
	}
	return 0, int64(1<<f.Width - 1)
}
