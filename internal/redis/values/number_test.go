package values

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

func TestParseIntIsStrict(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "7": 7, "-1": -1, "9223372036854775807": math.MaxInt64, "-9223372036854775808": math.MinInt64,
	} {
		if n, ok := ParseInt([]byte(text)); n != want || !ok {
			t.Errorf("%s: %d, %v", text, n, ok)
		}
	}
	for _, text := range []string{
		"", "-", "+1", "-0", "00", "01", "-01", " 1", "1 ", "1.0", "1e3", "0x1", "1_0", "9223372036854775808", "-9223372036854775809",
		"18446744073709551616", "99999999999999999999", "-99999999999999999999", "123456789012345678901",
	} {
		if n, ok := ParseInt([]byte(text)); ok {
			t.Errorf("%q: %d", text, n)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10000 {
		n := int64(r.Uint64()) >> r.IntN(64)
		if got, ok := ParseInt(strconv.AppendInt(nil, n, 10)); got != n || !ok {
			t.Fatalf("%d: %d, %v", n, got, ok)
		}
	}
}

func TestParseFloatIsC(t *testing.T) {
	for text, want := range map[string]float64{
		"1": 1, "1.5": 1.5, ".5": .5, "5.": 5, "1e3": 1000, "-2": -2, "+2": 2, "inf": math.Inf(1), "-Infinity": math.Inf(-1), "0x10": 16, "0x1p4": 16,
		"0e999999": 0, "5e-324": 5e-324, "1e308": 1e308,
	} {
		if f, ok := ParseFloat([]byte(text)); f != want || !ok {
			t.Errorf("%s: %v, %v", text, f, ok)
		}
	}
	for _, text := range []string{"", " 1", "1 ", "nan", "1e309", "-1e309", "1e-400", "1_0", "x", "1e", "--1", "1,5"} {
		if f, ok := ParseFloat([]byte(text)); ok {
			t.Errorf("%q: %v", text, f)
		}
	}
}

func TestFloatsAddAsLongDoubles(t *testing.T) {
	for _, c := range []struct{ a, b, sum string }{
		{"0.1", "0.2", "0.3"},
		{"3.0e3", "200", "3200"},
		{"1", "-1", "0"},
		{"-0.5", "0.5", "0"},
		{"1e20", "15.5", "100000000000000000016"},
		{"5.0e-19", "0", "0"},
		{"0", "-0", "0"},
	} {
		x, _ := ParseBigFloat([]byte(c.a))
		y, _ := ParseBigFloat([]byte(c.b))
		sum, ok := x.Add(y)
		if got := string(sum.Append(nil)); got != c.sum || !ok {
			t.Errorf("%s + %s = %s, %v", c.a, c.b, got, ok)
		}
	}
	for _, text := range []string{"1e4933", "1e-5000", "1e99999999999", "nan", "", "1 "} {
		if _, ok := ParseBigFloat([]byte(text)); ok {
			t.Errorf("%q is a number", text)
		}
	}
	inf, _ := ParseBigFloat([]byte("inf"))
	if _, ok := inf.Add(inf); ok {
		t.Error("infinity is a sum")
	}
}

// FuzzNumbers tries what a client may send as a number. Whatever is accepted is a number, and every integer has only one accepted notation.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "-0", "1", "-9223372036854775808", "9223372036854775808", "1e400", "nan", "-inf", "0x10", " 1", "1_0", "1.5e-3", "+1", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := ParseInt([]byte(s)); ok && strconv.FormatInt(n, 10) != s {
			t.Errorf("%q is taken for %d", s, n)
		}
		if x, ok := ParseFloat([]byte(s)); ok && math.IsNaN(x) {
			t.Errorf("%q is taken for NaN", s)
		}
	})
}
