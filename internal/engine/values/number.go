package values

import (
	"math"
	"math/big"
	"strconv"
)

// ParseInt reads b as Redis reads an integer: decimal digits, a minus sign only before a number that is not 0, no leading zero, no plus
// sign, no space, 64 bits. ("01" is a string, not a number: string2ll.)
func ParseInt(b []byte) (n int64, ok bool) {
	if len(b) == 0 || len(b) > 20 {
		return 0, false
	}
	digits, negative := b, false
	if b[0] == '-' {
		digits, negative = b[1:], true
	}
	if len(digits) == 0 {
		return 0, false
	}
	if digits[0] == '0' {
		return 0, len(b) == 1
	}
	var u uint64
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		if u > math.MaxUint64/10 {
			return 0, false
		}
		u *= 10
		if u > math.MaxUint64-uint64(d-'0') {
			return 0, false
		}
		u += uint64(d - '0')
	}
	if negative {
		if u > 1<<63 {
			return 0, false
		}
		return -int64(u), true
	}
	return int64(u), u <= math.MaxInt64
}

// ParseFloat reads b as Redis reads a double: the whole of it, no space before or after, "inf" and "-inf" in any case, never NaN.
func ParseFloat(b []byte) (f float64, ok bool) {
	if !plausibleFloat(b) {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		// Out of range: strtod's overflow is an error for Redis, its underflow is a number.
		return f, !math.IsInf(f, 0)
	}
	return f, !math.IsNaN(f)
}

// plausibleFloat refuses what Go's parser takes and C's does not.
func plausibleFloat(b []byte) bool {
	for _, c := range b {
		if c == '_' {
			return false
		}
	}
	return len(b) > 0
}

// Float is a number of the precision that Redis does its INCRBYFLOAT and HINCRBYFLOAT in: an x87 long double, 64 bits of mantissa.
type Float struct{ f big.Float }

// ParseBigFloat reads b as a Float; ok is false where ParseFloat's would be.
func ParseBigFloat(b []byte) (x Float, ok bool) {
	f, ok := ParseFloat(b)
	if !ok {
		return x, false
	}
	x.f.SetPrec(64).SetMode(big.ToNearestEven)
	if math.IsInf(f, 0) {
		x.f.SetInf(f < 0)
		return x, true
	}
	if _, _, err := x.f.Parse(string(b), 0); err != nil {
		x.f.SetFloat64(f)
	}
	return x, true
}

// Add returns x + y; ok is false when the sum is not a finite number.
func (x Float) Add(y Float) (sum Float, ok bool) {
	if x.f.IsInf() || y.f.IsInf() {
		return sum, false
	}
	sum.f.SetPrec(64).Add(&x.f, &y.f)
	return sum, !sum.f.IsInf()
}

// Append appends x as Redis writes it for people: 17 digits after the point at most, no exponent, no trailing zeros.
func (x Float) Append(dst []byte) []byte {
	start := len(dst)
	dst = x.f.Append(dst, 'f', 17)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	if dst[len(dst)-1] == '.' {
		dst = dst[:len(dst)-1]
	}
	if string(dst[start:]) == "-0" {
		dst = append(dst[:start], '0')
	}
	return dst
}

// AppendInt appends n in decimal.
func AppendInt(dst []byte, n int64) []byte { return strconv.AppendInt(dst, n, 10) }
