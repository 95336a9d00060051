package script

import (
	"math"
)

// Redis's Lua uses the C library's exp, log and pow, which nearly always return the double nearest to the exact result. Go's are off in the last
// digit more often. So this file computes them with twice the digits, and rounds once.

// computedByC are the functions of math that this machine would compute differently.
var computedByC = map[string]func(float64) float64{
	"exp": exp, "log": log, "log10": log10,
	"deg": func(x float64) float64 { return x / (math.Pi / 180) },
	"rad": func(x float64) float64 { return x * (math.Pi / 180) },
}

// double is the sum of two floats, the second of which is too small to change the first: about 32 digits.
type double struct{ hi, lo float64 }

// sum is a + b.
func sum(a, b float64) double {
	s := a + b
	part := s - a
	return double{s, a - (s - part) + (b - part)}
}

// product is a * b.
func product(a, b float64) double {
	p := a * b
	return double{p, math.FMA(a, b, -p)}
}

func (a double) plus(b double) double {
	s := sum(a.hi, b.hi)
	return sum(s.hi, s.lo+a.lo+b.lo)
}

func (a double) times(b double) double {
	p := product(a.hi, b.hi)
	return sum(p.hi, p.lo+(a.hi*b.lo+a.lo*b.hi))
}

// over is a / b.
func (a double) over(b double) double {
	q := a.hi / b.hi
	p := product(q, b.hi)
	return sum(q, (a.hi-p.hi-p.lo+a.lo-q*b.lo)/b.hi)
}

// The natural logarithm of 2. All parts but the last end in zeros, so that their products with small integers are exact.
const ln2Hi, ln2Mid, ln2Lo = 0x1.62e42fefap-1, 0x1.cf79abc9ep-40, 0x1.d9cc01f97b57ap-79

// squarings is how often the power of e to a small fraction is squared.
const squarings = 8

var factorials = func() (inverse [9]double) {
	inverse[0] = double{1, 0}
	for n := 1; n < len(inverse); n++ {
		inverse[n] = inverse[n-1].over(double{float64(n), 0})
	}
	return inverse
}()

// power returns e^x as d * 2^k, for x with a finite result above zero.
func power(x double) (d double, k int) {
	k = int(math.RoundToEven(x.hi / math.Ln2))
	n := float64(k)
	r := sum(x.hi-n*ln2Hi, -n*ln2Mid).plus(double{x.lo, 0}).plus(double{-n * ln2Lo, 0})
	r = double{math.Ldexp(r.hi, -squarings), math.Ldexp(r.lo, -squarings)}
	// First e^r - 1 by its series, then repeatedly for twice r: (1 + d)^2 - 1 = 2d + d^2.
	last := len(factorials) - 1
	d = factorials[last]
	for i := last - 1; i > 0; i-- {
		d = d.times(r).plus(factorials[i])
	}
	d = d.times(r)
	for range squarings {
		d = double{2 * d.hi, 2 * d.lo}.plus(d.times(d))
	}
	return double{1, 0}.plus(d), k
}

// logarithm returns the logarithm of a positive number: Go's, corrected by a step of Newton's method.
func logarithm(x float64) double {
	m, k := math.Frexp(x)
	y := math.Log(x)
	if x < 0x1p-1022 { // too few digits for Go's Log
		y = math.Log(m) + float64(k)*math.Ln2
	}
	d, n := power(double{y, 0})
	// x / e^y is near 1, so its logarithm is about its distance from 1.
	scaled := math.Ldexp(m, k-n)
	rest := sum(scaled, -d.hi)
	c := (rest.hi + (rest.lo - d.lo)) / d.hi
	return sum(y, c-c*c/2)
}

// small reports whether e^x is a number that is neither infinite nor zero.
func small(x float64) bool { return x > -745 && x < 710 }

// exp is e^x.
func exp(x float64) float64 {
	if !small(x) {
		return math.Exp(x)
	}
	d, k := power(double{x, 0})
	return math.Ldexp(d.hi, k)
}

// log is the natural logarithm.
func log(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log(x)
	}
	return logarithm(x).hi
}

// log10 returns the logarithm to base 10 as the C library computes it, from the logarithm of a number near 1 and the exponent of 2. It is not
// always the nearest double.
func log10(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return math.Log10(x)
	}
	const inverse, twoHi, twoLo = 4.34294481903251816668e-01, 3.01029995663611771306e-01, 3.69423907715893078616e-13
	m, k := math.Frexp(x)
	n := k - 1
	if n < 0 {
		n++
	}
	y := float64(n)
	z := float64(y*twoLo) + float64(inverse*log(math.Ldexp(m, k-n)))
	return z + float64(y*twoHi)
}

// pow is x^y.
func pow(x, y float64) float64 {
	if y == math.Trunc(y) && 0 < y && y <= 53 && x == math.Trunc(x) {
		n := x // small whole numbers, which are exact
		for i := 1.0; i < y && math.Abs(n) < 1<<53; i++ {
			n *= x
		}
		if math.Abs(n) < 1<<53 {
			return n
		}
	}
	switch {
	case x == 0 || isSpecial(x) || isSpecial(y) || y == 0:
		return math.Pow(x, y)
	case x < 0 && y != math.Trunc(y):
		return math.Copysign(math.NaN(), -1)
	}
	l := logarithm(math.Abs(x))
	t := product(l.hi, y)
	t = sum(t.hi, t.lo+l.lo*y)
	if !small(t.hi) {
		return math.Pow(x, y)
	}
	d, k := power(t)
	n := math.Ldexp(d.hi, k)
	if x < 0 && math.Mod(y, 2) != 0 {
		n = -n
	}
	return n
}
