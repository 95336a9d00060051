package rdb

import (
	"encoding/binary"
	"math"
	"strconv"
)

// Reader reads a payload from its beginning. After an error, or past the end, everything it returns is empty and Err says so, so it need be
// checked only once, at the end. It trusts no length: memory grows with what is there.
type Reader struct {
	b     []byte
	err   error
	short bool // the failed read might succeed with more bytes
}

// Err returns ErrFormat if anything could not be read.
func (r *Reader) Err() error { return r.err }

// Done reports whether everything was read without an error.
func (r *Reader) Done() bool { return r.err == nil && len(r.b) == 0 }

func (r *Reader) fail() { r.b, r.err = nil, ErrFormat }

// take returns the next n bytes.
func (r *Reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.short = r.short || r.err == nil
		r.fail()
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// Byte returns the next byte, such as a type.
func (r *Reader) Byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

// length returns the next length. If special is set, n is instead the encoding of a string that has no length.
func (r *Reader) length() (n uint64, special bool) {
	first := r.Byte()
	switch first >> 6 {
	case 0:
		return uint64(first & 0x3f), false
	case 1:
		return uint64(first&0x3f)<<8 | uint64(r.Byte()), false
	case 3:
		return uint64(first & 0x3f), true
	}
	switch first {
	case 0x80:
		if b := r.take(4); b != nil {
			return uint64(binary.BigEndian.Uint32(b)), false
		}
	case 0x81:
		if b := r.take(8); b != nil {
			return binary.BigEndian.Uint64(b), false
		}
	default:
		r.fail()
	}
	return 0, false
}

// Len returns the number of things that follow. It is never larger than the number of bytes left.
func (r *Reader) Len() int {
	n, special := r.length()
	if special || n > uint64(len(r.b)) {
		r.short = r.short || r.err == nil && !special
		r.fail()
		return 0
	}
	return int(n)
}

// Number is Len for a number that is not a count.
func (r *Reader) Number() uint64 {
	n, special := r.length()
	if special {
		r.fail()
		return 0
	}
	return n
}

// Bytes returns a string. It may alias the payload.
func (r *Reader) Bytes() []byte {
	n, special := r.length()
	if !special {
		return r.take(n)
	}
	switch n {
	case encInt8, encInt16, encInt32:
		if b := r.take(1 << n); b != nil {
			return decimal(signed(b))
		}
	case encLZF:
		packed, size := r.Number(), r.Number()
		if s, ok := unpackLZF(r.take(packed), size); ok {
			return s
		}
		r.fail()
	default:
		r.fail()
	}
	return nil
}

// Double returns a score in binary.
func (r *Reader) Double() float64 { return math.Float64frombits(uint64(signed(r.take(8)))) }

// OldDouble returns a score stored as text after its length.
func (r *Reader) OldDouble() float64 {
	switch n := r.Byte(); n {
	case 253:
		return math.NaN()
	case 254:
		return math.Inf(1)
	case 255:
		return math.Inf(-1)
	default:
		f, err := strconv.ParseFloat(string(r.take(uint64(n))), 64)
		if err != nil {
			r.fail()
		}
		return f
	}
}

// Milliseconds returns a time.
func (r *Reader) Milliseconds() int64 { return signed(r.take(8)) }

func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// unpackLZF unpacks size bytes packed by LZF: runs of up to 32 literal bytes, and references of at least 3 bytes to the previous 8 KiB.
func unpackLZF(b []byte, size uint64) ([]byte, bool) {
	if size > 300*uint64(len(b)) { // a reference of 3 bytes stands for 264
		return nil, false
	}
	in, out := Reader{b: b}, make([]byte, 0, size)
	for len(in.b) > 0 {
		head := int(in.Byte())
		if head < 32 {
			out = append(out, in.take(uint64(head)+1)...)
			continue
		}
		n := head >> 5
		if n == 7 {
			n += int(in.Byte())
		}
		from := len(out) - (head&0x1f)<<8 - int(in.Byte()) - 1
		if in.err != nil || from < 0 {
			return nil, false
		}
		for i := range n + 2 { // byte by byte, because the two may overlap
			out = append(out, out[from+i])
		}
	}
	return out, in.err == nil && uint64(len(out)) == size
}
