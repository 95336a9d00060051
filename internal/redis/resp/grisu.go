package resp

import (
	"math"
	"math/big"
	"math/bits"
	"sync"
)

// Redis prints doubles by Grisu2 (F. Loitsch, "Printing Floating-Point Numbers Quickly and Accurately with Integers", 2010). Its digits
// always read back as the number, but in about one case of a thousand they are not the fewest digits, or not the closest of the fewest, which
// strconv finds. The algorithm is repeated here to make replies the same to the byte.

// extended is frac * 2^exp: the paper's do-it-yourself floating point.
type extended struct {
	frac uint64
	exp  int
}

// times is the product, rounded to 64 bits.
func (x extended) times(y extended) extended {
	const low = 1<<32 - 1
	a, b, c, d := x.frac>>32, x.frac&low, y.frac>>32, y.frac&low
	middle := b*d>>32 + a*d&low + b*c&low + 1<<31
	return extended{a*c + a*d>>32 + b*c>>32 + middle>>32, x.exp + y.exp + 64}
}

func (x extended) normal() extended {
	n := bits.LeadingZeros64(x.frac)
	return extended{x.frac << n, x.exp - n}
}

// The powers of ten in the table: every eighth, so that one of them brings any number into the range where digits can be cut off.
const (
	firstPower = -348
	powerStep  = 8
	powerCount = 87
	minExp     = -60
	maxExp     = -32
)

// powers computes them once, rounded to 64 bits each.
var powers = sync.OnceValue(func() (all [powerCount]extended) {
	for i := range all {
		all[i] = power(firstPower + i*powerStep)
	}
	return all
})

// power returns the nearest extended number to 10^k.
func power(k int) extended {
	f := new(big.Float).SetPrec(2048).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(k, -k))), nil))
	if k < 0 {
		f.Quo(new(big.Float).SetPrec(2048).SetInt64(1), f)
	}
	f.SetPrec(64)
	exp := f.MantExp(nil) - 64
	frac, _ := new(big.Float).SetMantExp(f, -exp).Uint64()
	return extended{frac, exp}
}

// scale returns a power of ten, and its exponent, that brings a number with this binary exponent into range.
func scale(exp int) (p extended, k int) {
	all := powers()
	i := (int(-float64(exp+powerCount)*math.Log10(2)) - firstPower) / powerStep
	for {
		switch e := exp + all[i].exp + 64; {
		case e < minExp:
			i++
		case e > maxExp:
			i--
		default:
			return all[i], firstPower + i*powerStep
		}
	}
}

// grisu appends the digits of f, which must be finite and above 0, to dst; f is these digits times 10^exp.
func grisu(dst []byte, f float64) (digits []byte, exp int) {
	const hidden = 1 << 52
	b := math.Float64bits(f)
	w := extended{b & (hidden - 1), int(b>>52) - 1075}
	if b>>52 == 0 {
		w.exp++
	} else {
		w.frac |= hidden
	}
	// The boundaries lie halfway between f and its neighbours: whatever is between them reads back as f.
	upper := extended{w.frac<<1 + 1, w.exp - 1}.normal()
	lower := extended{w.frac<<1 - 1, w.exp - 1}
	if w.frac == hidden {
		lower = extended{w.frac<<2 - 1, w.exp - 2}
	}
	lower.frac <<= lower.exp - upper.exp
	p, k := scale(upper.exp)
	w, upper, lower.exp = w.normal().times(p), upper.times(p), upper.exp
	lower = lower.times(p)
	lower.frac++
	upper.frac--
	return cutDigits(dst, w.frac, upper, lower.frac, -k)
}

// cutDigits cuts digits off upper until the rest is within the boundaries.
func cutDigits(dst []byte, w uint64, upper extended, lower uint64, exp int) ([]byte, int) {
	shift := -upper.exp
	one := uint64(1) << shift
	delta, distance := upper.frac-lower, upper.frac-w
	whole, part := upper.frac>>shift, upper.frac&(one-1)
	start, kappa := len(dst), 10
	for div := uint64(1e9); kappa > 0; div /= 10 {
		digit := whole / div
		if digit != 0 || len(dst) > start {
			dst = append(dst, byte('0'+digit))
		}
		whole -= digit * div
		kappa--
		if rest := whole<<shift + part; rest <= delta {
			nearer(dst, delta, rest, div<<shift, distance)
			return dst, exp + kappa
		}
	}
	for unit := uint64(10); ; unit *= 10 {
		part *= 10
		delta *= 10
		kappa--
		if digit := part >> shift; digit != 0 || len(dst) > start {
			dst = append(dst, byte('0'+digit))
		}
		part &= one - 1
		if part < delta {
			nearer(dst, delta, part, one, distance*unit)
			return dst, exp + kappa
		}
	}
}

// nearer lowers the last digit as long as that brings the result nearer to the number and keeps it within the boundaries.
func nearer(digits []byte, delta, rest, unit, distance uint64) {
	for rest < distance && delta-rest >= unit && (rest+unit < distance || distance-rest > rest+unit-distance) {
		digits[len(digits)-1]--
		rest += unit
	}
}
