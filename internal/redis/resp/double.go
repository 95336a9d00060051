package resp

import (
	"math"
	"strconv"
)

// AppendDouble appends f as Redis writes scores and RESP3 doubles: the digits of [grisu], integers without a point, an exponent only for very
// large and very small numbers. Redis: util.c, d2string.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0"...)
	case math.Abs(f) <= math.MaxInt64/2 && f == math.Trunc(f):
		return strconv.AppendInt(dst, int64(f), 10)
	}
	const zeros = "0000000" // as many as are ever needed before or after the digits
	var scratch [24]byte
	digits, last := grisu(scratch[:0], math.Abs(f))
	n := len(digits)
	exp := last + n - 1 // of the first digit
	if f < 0 {
		dst = append(dst, '-')
	}
	switch {
	case last >= 0 && exp < n+7:
		dst = append(dst, digits...)
		return append(dst, zeros[:last]...)
	case last < 0 && (last > -7 || -4 < exp && exp < 4):
		if exp < 0 {
			dst = append(dst, "0."...)
			dst = append(dst, zeros[:-exp-1]...)
			return append(dst, digits...)
		}
		dst = append(dst, digits[:exp+1]...)
		dst = append(dst, '.')
		return append(dst, digits[exp+1:]...)
	}
	dst = append(dst, digits[0])
	if n > 1 {
		dst = append(dst, '.')
		dst = append(dst, digits[1:]...)
	}
	dst = append(dst, 'e')
	if exp >= 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exp), 10)
}
