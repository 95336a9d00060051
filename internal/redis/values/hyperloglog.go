package values

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
)

// A HyperLogLog estimates how many different elements it was given, from 16384 registers of 6 bits. It is a string in one of Redis's two
// published forms: after a header of 16 bytes come either all registers (dense), or runs of equal ones (sparse).
//
//	"HYLL"  form  0 0 0  cardinality as last counted, 8 bytes little-endian; the highest bit says that it is out of date
//
// Runs: 00nnnnnn is n+1 zeros; 01nnnnnn nnnnnnnn is n+1 zeros; 1vvvvvnn is n+1 times the value v+1.
type HyperLogLog []byte

const (
	hllRegisters = 1 << 14
	hllBits      = 6
	hllHead      = 16
	hllDenseSize = hllHead + hllRegisters*hllBits/8
	hllRanks     = 64 - 14 + 1 // register values above 0

	hllDense  = 0
	hllSparse = 1

	hllSparseMax    = 3000 // largest size of the sparse form in bytes, header included: hll-sparse-max-bytes
	hllSparseValue  = 32   // largest value in a run
	hllSparseLength = 4    // longest run of a value
)

// NewHyperLogLog returns an empty one.
func NewHyperLogLog() HyperLogLog {
	h := append(make(HyperLogLog, 0, 32), "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80"...)
	return appendRun(h, 0, hllRegisters)
}

// Valid reports whether b has the header and size of a HyperLogLog. Its runs may still be broken, which the other functions detect.
func (h HyperLogLog) Valid() bool {
	return len(h) >= hllHead && string(h[:4]) == "HYLL" && (h[4] == hllSparse || h[4] == hllDense && len(h) == hllDenseSize)
}

// Dense reports whether h has the dense form.
func (h HyperLogLog) Dense() bool { return h[4] == hllDense }

// Cached returns the last counted cardinality, if nothing was added since.
func (h HyperLogLog) Cached() (n int64, ok bool) {
	n = int64(binary.LittleEndian.Uint64(h[8:]))
	return n, n >= 0
}

// Cache stores the cardinality.
func (h HyperLogLog) Cache(n int64) { binary.LittleEndian.PutUint64(h[8:], uint64(n)) }

// outdated marks the stored cardinality as out of date.
func (h HyperLogLog) outdated() HyperLogLog {
	h[15] |= 0x80
	return h
}

// Add adds an element. It returns the string to keep from now on, h or another one, and whether it changed; ok is false if h is broken.
func (h HyperLogLog) Add(element []byte) (next HyperLogLog, changed, ok bool) {
	return h.raise(hllPlace(element))
}

// raise sets a register to value unless it is already as high. The runs are changed, and given up, exactly as Redis does it, so that the same
// elements in the same order make the same string.
func (h HyperLogLog) raise(at int, value uint8) (next HyperLogLog, changed, ok bool) {
	if h.Dense() {
		if h.register(at) >= value {
			return h, false, true
		}
		h.setRegister(at, value)
		return h.outdated(), true, true
	}
	before, here, first := hllHead, hllHead, 0 // where the previous run and the run of at are, and its first register
	old, n, size := h.run(here)
	for ; size > 0 && at >= first+n; old, n, size = h.run(here) {
		before, here, first = here, here+size, first+n
	}
	if size == 0 {
		return h, false, false
	}
	if old >= value {
		return h, false, true
	}
	var room [5]byte
	runs := appendRun(room[:0], old, at-first)
	if value <= hllSparseValue {
		runs = appendRun(runs, value, 1)
		runs = appendRun(runs, old, first+n-at-1)
	}
	if value > hllSparseValue || len(runs) > size && len(h)+len(runs)-size > hllSparseMax {
		var r Registers
		if !r.Merge(h) {
			return h, false, false
		}
		next, _, _ = r.dense(h).raise(at, value)
		return next, true, true
	}
	h = slices.Replace(h, here, here+size, runs...)
	return h.joined(before).outdated(), true, true
}

// joined merges neighbours with the same value among the five runs from position at on, like Redis: merging more would make a different
// string.
func (h HyperLogLog) joined(at int) HyperLogLog {
	for range 5 {
		value, n, size := h.run(at)
		if size == 0 {
			break
		}
		if next, m, _ := h.run(at + size); value > 0 && next == value && n+m <= hllSparseLength {
			h = slices.Replace(h, at, at+2, appendRun(nil, value, n+m)...)
			continue
		}
		at += size
	}
	return h
}

// run returns the value and the length of the run at an offset, and its size in bytes; a size of 0 means there is none.
func (h HyperLogLog) run(at int) (value uint8, n, size int) {
	switch {
	case at >= len(h):
		return 0, 0, 0
	case h[at]&0x80 != 0:
		return h[at]>>2&0x1f + 1, int(h[at]&3) + 1, 1
	case h[at]&0x40 == 0:
		return 0, int(h[at]) + 1, 1
	case at+1 < len(h):
		return 0, int(h[at]&0x3f)<<8 + int(h[at+1]) + 1, 2
	}
	return 0, 0, 0
}

// appendRun appends n registers with this value.
func appendRun(b []byte, value uint8, n int) []byte {
	switch {
	case n == 0:
		return b
	case value > 0:
		return append(b, 0x80|(value-1)<<2|byte(n-1))
	case n > 64:
		return append(b, 0x40|byte((n-1)>>8), byte(n-1))
	}
	return append(b, byte(n-1))
}

func (h HyperLogLog) register(i int) uint8 {
	bit := i * hllBits
	b := h[hllHead+bit/8:]
	v := uint16(b[0])
	if len(b) > 1 {
		v |= uint16(b[1]) << 8
	}
	return uint8(v >> (bit % 8) & (1<<hllBits - 1))
}

func (h HyperLogLog) setRegister(i int, value uint8) {
	bit := i * hllBits
	b := h[hllHead+bit/8:]
	shift := bit % 8
	b[0] = b[0]&^byte((1<<hllBits-1)<<shift) | value<<shift
	if shift > 8-hllBits {
		b[1] = b[1]&^byte((1<<hllBits-1)>>(8-shift)) | value>>(8-shift)
	}
}

// Registers are the registers of one HyperLogLog, or of several merged.
type Registers [hllRegisters]uint8

// Merge adds the elements of h to r; it reports false if h is broken.
func (r *Registers) Merge(h HyperLogLog) bool {
	if h.Dense() {
		for i := range r {
			r[i] = max(r[i], h.register(i))
		}
		return true
	}
	at, i := 0, hllHead
	for value, n, size := h.run(i); size > 0; value, n, size = h.run(i) {
		if at+n > hllRegisters {
			return false
		}
		for range n {
			r[at] = max(r[at], value)
			at++
		}
		i += size
	}
	return at == hllRegisters && i == len(h)
}

// MergeInto raises the registers of h, which may be nil, to those of r, and marks its cardinality as out of date. The result is dense if
// asked for, or if the runs grow too long. It is nil if h is broken.
func (r *Registers) MergeInto(h HyperLogLog, dense bool) HyperLogLog {
	if h == nil {
		h = NewHyperLogLog()
	}
	if dense && !h.Dense() {
		h = r.dense(h)
	}
	for at, value := range r {
		if value == 0 {
			continue
		}
		next, _, ok := h.raise(at, value)
		if !ok {
			return nil
		}
		h = next
	}
	return h.outdated()
}

// dense returns r in the dense form, with the header of h.
func (r *Registers) dense(h HyperLogLog) HyperLogLog {
	next := append(make(HyperLogLog, 0, hllDenseSize), h[:hllHead]...)[:hllDenseSize]
	next[4] = hllDense
	for i, value := range r {
		next.setRegister(i, value)
	}
	return next
}

// Count estimates the number of elements with the improved estimator of O. Ertl, "New cardinality estimation algorithms for HyperLogLog
// sketches" (2017), which Redis uses.
func (r *Registers) Count() int64 {
	var having [hllRanks + 1]int
	for _, value := range r {
		having[min(value, hllRanks)]++
	}
	const m = float64(hllRegisters)
	z := m * hllTau((m-float64(having[hllRanks]))/m)
	for k := hllRanks - 1; k >= 1; k-- {
		z = (z + float64(having[k])) * 0.5
	}
	z += m * hllSigma(float64(having[0])/m)
	return int64(math.Round(0.5 / math.Ln2 * m * m / z))
}

func hllSigma(x float64) float64 {
	if x == 1 {
		return math.Inf(1)
	}
	z, y := x, 1.0
	for {
		x *= x
		before := z
		z += x * y
		y += y
		if z == before {
			return z
		}
	}
}

func hllTau(x float64) float64 {
	if x == 0 || x == 1 {
		return 0
	}
	y, z := 1.0, 1-x
	for {
		x = math.Sqrt(x)
		before := z
		y *= 0.5
		z -= (1 - x) * (1 - x) * y
		if z == before {
			return z / 3
		}
	}
}

// hllPlace returns the register of an element, and the value that it proposes: the number of trailing zeros of its hash, plus one.
func hllPlace(element []byte) (at int, value uint8) {
	h := murmur64(element, 0xadc83b19)
	return int(h % hllRegisters), uint8(bits.TrailingZeros64(h>>14|1<<(hllRanks-1))) + 1
}

// murmur64 is MurmurHash64A by Austin Appleby, who put it into the public domain.
func murmur64(b []byte, seed uint64) uint64 {
	const m, shift = 0xc6a4a7935bd1e995, 47
	h := seed ^ uint64(len(b))*m
	for ; len(b) >= 8; b = b[8:] {
		k := binary.LittleEndian.Uint64(b) * m
		k ^= k >> shift
		h = (h ^ k*m) * m
	}
	if len(b) > 0 {
		for i, c := range b {
			h ^= uint64(c) << (8 * i)
		}
		h *= m
	}
	h = (h ^ h>>shift) * m
	return h ^ h>>shift
}
