package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// Lua's numbers are doubles, which its functions convert to C's integers: some to 64 bits, others to the lower 32 of these. So string.rep takes
// 2^32+1 for 1, and most functions take NaN for 0, but string.sub takes it for a number far below zero.

// whole is C's conversion of a double to 64 bits: a number that does not fit becomes the smallest integer.
func whole(f float64) int64 {
	if math.IsNaN(f) || f >= 1<<63 || f < -1<<63 {
		return math.MinInt64
	}
	return int64(f)
}

// unsigned is C's conversion to 64 bits without a sign: a number that is too large becomes 0, and a negative one wraps around.
func unsigned(f float64) uint64 {
	switch {
	case f >= 1<<64:
		return 0
	case f >= 1<<63:
		return uint64(f)
	}
	return uint64(whole(f))
}

// longArgument returns an argument of 64 bits: a number, or a string that contains one.
func longArgument(l *lua.LState, i int) int64 {
	n, ok := asNumber(l.Get(i))
	if !ok {
		n = float64(l.CheckNumber(i)) // fails
	}
	return whole(n)
}

// intArgument returns an argument of 32 bits.
func intArgument(l *lua.LState, i int) int { return int(int32(longArgument(l, i))) }

// longOr returns an argument that may be missing.
func longOr(l *lua.LState, i int, missing int64) int64 {
	if l.Get(i) == lua.LNil {
		return missing
	}
	return longArgument(l, i)
}

func intOr(l *lua.LState, i, missing int) int {
	if l.Get(i) == lua.LNil {
		return missing
	}
	return intArgument(l, i)
}
