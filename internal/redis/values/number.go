package values

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// ParseInt reads b as Redis reads an integer of 64 bits: decimal digits, with a minus sign unless the number is 0, without leading zeros,
// plus sign or spaces. ("01" is a string, not a number: string2ll.)
func ParseInt(b []byte) (n int64, ok bool) {
	if len(b) == 0 {
		return 0, false
	}
	digits, negative := b, false
	if b[0] == '-' {
		digits, negative = b[1:], true
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	if digits[0] == '0' {
		return 0, len(b) == 1
	}
	var u uint64 // 19 digits cannot overflow it
	for _, d := range digits {
		if d < '0' || d > '9' {
			return 0, false
		}
		u = u*10 + uint64(d-'0')
	}
	if negative {
		if u > 1<<63 {
			return 0, false
		}
		return -int64(u), true
	}
	return int64(u), u <= math.MaxInt64
}

// ParseFloat reads b as Redis reads a double: no space before or after, "inf" and "-inf" in any case, never NaN, and neither overflow nor
// underflow.
func ParseFloat(b []byte) (f float64, ok bool) {
	text, ok := cNumber(b)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || f == 0 && !zero(text) {
		return 0, false
	}
	return f, true
}

// cNumber returns b in the form that Go's parsers need for what C's accept, and refuses what only Go's accept.
func cNumber(b []byte) (string, bool) {
	text := string(b)
	if text == "" || strings.Contains(text, "_") {
		return "", false
	}
	if strings.ContainsAny(text, "xX") && !strings.ContainsAny(text, "pP") {
		text += "p0" // C does not require the exponent of a hexadecimal number
	}
	return text, true
}

// zero reports whether text is a way of writing 0.
func zero(text string) bool {
	exponent := "e"
	if strings.ContainsAny(text, "xX") {
		exponent = "p"
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(text), exponent)
	return !strings.ContainsAny(mantissa, "123456789abcdef")
}

// Float is a number with the precision that Redis has in INCRBYFLOAT and HINCRBYFLOAT: an x87 long double, with a mantissa of 64 bits.
type Float struct{ f big.Float }

const (
	floatBits  = 64
	floatMax   = 16384    // binary exponents of a long double: the largest
	floatMin   = -16444   // and the smallest
	floatChars = 5 * 1024 // Redis reads no longer text
)

// ParseBigFloat reads b as a Float.
func ParseBigFloat(b []byte) (x Float, ok bool) {
	text, ok := cNumber(b)
	if !ok || len(b) >= floatChars {
		return x, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(f) {
		return x, false
	}
	x.f.SetPrec(floatBits).SetMode(big.ToNearestEven)
	if math.IsInf(f, 0) && err == nil { // written as "inf"
		x.f.SetInf(f < 0)
		return x, true
	}
	if zero(text) {
		return x, true
	}
	if _, exponent, _ := strings.Cut(strings.ToLower(text), "e"); len(exponent) > 6 && !strings.ContainsAny(text, "xX") {
		return x, false // far out of range: do not compute it
	}
	if _, _, err := x.f.Parse(strings.TrimPrefix(text, "+"), 0); err != nil {
		return x, false
	}
	return x, !x.huge() && x.f.MantExp(nil) >= floatMin
}

// Double is the double nearest to x, but 0 only if x is 0.
func (x Float) Double() float64 {
	f, _ := x.f.Float64()
	if f == 0 && x.f.Sign() != 0 {
		return math.Copysign(math.SmallestNonzeroFloat64, float64(x.f.Sign()))
	}
	return f
}

func (x *Float) huge() bool { return x.f.IsInf() || x.f.MantExp(nil) > floatMax }

// Add returns x + y; ok is false when the sum is not a finite number.
func (x Float) Add(y Float) (sum Float, ok bool) {
	if x.f.IsInf() || y.f.IsInf() {
		return sum, false
	}
	sum.f.SetPrec(floatBits).Add(&x.f, &y.f)
	return sum, !sum.huge()
}

// Append appends x as Redis prints it: at most 17 digits after the point, no exponent, no trailing zeros.
func (x Float) Append(dst []byte) []byte {
	start := len(dst)
	dst = bytes.TrimRight(x.f.Append(dst, 'f', 17), "0")
	dst = bytes.TrimSuffix(dst, []byte("."))
	if string(dst[start:]) == "-0" {
		dst = append(dst[:start], '0')
	}
	return dst
}
