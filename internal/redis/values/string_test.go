package values

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func TestRangeCountsFromTheEnd(t *testing.T) {
	for _, c := range []struct {
		from, to int64
		n        int
		lo, hi   int
	}{
		{0, -1, 5, 0, 5}, {1, 2, 5, 1, 3}, {-3, -1, 5, 2, 5}, {-100, 100, 5, 0, 5}, {3, 1, 5, 0, 0}, {-1, -3, 5, 0, 0}, {-1, -3, 1, 0, 0},
		{5, 9, 5, 0, 0}, {0, -1, 0, 0, 0}, {-9223372036854775808, 9223372036854775807, 5, 0, 5}, {0, -100, 5, 0, 1},
	} {
		if lo, hi := Range(c.from, c.to, c.n); lo != c.lo || hi != c.hi {
			t.Errorf("%d..%d of %d: %d, %d", c.from, c.to, c.n, lo, hi)
		}
	}
	if lo, hi := Span(-1, -3, 1); lo != 0 || hi != 1 {
		t.Errorf("Span: %d, %d", lo, hi)
	}
}

func TestGrowLeavesNoOldBytes(t *testing.T) {
	s := bytes.Repeat([]byte{'x'}, 100)[:3]
	if got := Overwrite(s, 5, []byte("ab")); string(got) != "xxx\x00\x00ab" {
		t.Errorf("%q", got)
	}
}

// The naive versions do bit by bit what the functions do word by word.
func TestBitsAgreeWithTheNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20000 {
		s := make([]byte, r.IntN(40))
		for i := range s {
			s[i] = []byte{0, 0, 0xff, 0xff, byte(r.Uint32())}[r.IntN(5)]
		}
		n := int64(len(s)) * 8
		lo := r.Int64N(n + 1)
		hi := lo + r.Int64N(n-lo+1)
		bit := byte(r.IntN(2))
		count, first := int64(0), int64(-1)
		for i := lo; i < hi; i++ {
			count += int64(Bit(s, i))
			if first < 0 && Bit(s, i) == bit {
				first = i
			}
		}
		if got := CountBits(s, lo, hi); got != count {
			t.Fatalf("CountBits(%x, %d, %d) = %d, not %d", s, lo, hi, got, count)
		}
		if got := FindBit(s, bit, lo, hi); got != first {
			t.Fatalf("FindBit(%x, %d, %d, %d) = %d, not %d", s, bit, lo, hi, got, first)
		}
	}
}

func TestBitfieldsReadBackAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 20000 {
		f := Bitfield{At: r.Int64N(40), Width: 1 + r.IntN(64), Signed: r.IntN(2) == 0}
		if f.Width == 64 {
			f.Signed = true
		}
		least, most := f.bounds()
		v := f.fit(r.Uint64())
		if v < least || v > most {
			t.Fatalf("%+v: %d is not within %d and %d", f, v, least, most)
		}
		s := make([]byte, 14)
		for i := range s {
			s[i] = byte(r.Uint32())
		}
		before := bytes.Clone(s)
		f.Put(s, v)
		if got := f.Get(s); got != v {
			t.Fatalf("%+v: %d came back as %d", f, v, got)
		}
		for i := range int64(len(s)) * 8 {
			if (i < f.At || i >= f.At+int64(f.Width)) && Bit(s, i) != Bit(before, i) {
				t.Fatalf("%+v: bit %d changed", f, i)
			}
		}
	}
}

func TestLCSIsCommonAndLongest(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 2000 {
		a, b := letters(r), letters(r)
		common, matches := LCS(a, b)
		if !within(common, a) || !within(common, b) || len(common) != longest(a, b) {
			t.Fatalf("LCS(%s, %s) = %s", a, b, common)
		}
		var parts []byte
		for i := len(matches) - 1; i >= 0; i-- {
			m := matches[i]
			if !bytes.Equal(a[m.A:m.A+m.Len], b[m.B:m.B+m.Len]) {
				t.Fatalf("LCS(%s, %s): match %+v", a, b, m)
			}
			parts = append(parts, a[m.A:m.A+m.Len]...)
		}
		if !bytes.Equal(parts, common) {
			t.Fatalf("LCS(%s, %s) = %s, its matches %s", a, b, common, parts)
		}
	}
}

func letters(r *rand.Rand) []byte {
	b := make([]byte, r.IntN(9))
	for i := range b {
		b[i] = 'a' + byte(r.IntN(3))
	}
	return b
}

func within(sub, s []byte) bool {
	for _, c := range s {
		if len(sub) > 0 && sub[0] == c {
			sub = sub[1:]
		}
	}
	return len(sub) == 0
}

func longest(a, b []byte) int {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	if a[0] == b[0] {
		return 1 + longest(a[1:], b[1:])
	}
	return max(longest(a[1:], b), longest(a, b[1:]))
}
