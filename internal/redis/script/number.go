package script

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// isSpecial reports whether f is infinite or NaN.
func isSpecial(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) }

// appendSpecial formats infinities and NaN as C does.
func appendSpecial(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f) && math.Signbit(f):
		return append(dst, "-nan"...) // what dividing zero by zero prints in C
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case f > 0:
		return append(dst, "inf"...)
	}
	return append(dst, "-inf"...)
}

// blanks are what C accepts as space around a number.
const blanks = " \t\n\v\f\r"

// tonumber is Lua's function, which accepts what C's strtod and strtoul accept.
func (m *Machine) tonumber(l *lua.LState) int {
	if text, ok := l.Get(1).(lua.LString); ok {
		m.spend(len(text))
	}
	base := intOr(l, 2, 10)
	if base == 10 {
		switch v := l.CheckAny(1).(type) {
		case lua.LNumber:
			return give(l, v)
		case lua.LString:
			if f, ok := parseNumber(string(v)); ok {
				return give(l, lua.LNumber(f))
			}
		}
		return give(l, lua.LNil)
	}
	text := l.CheckString(1)
	if base < 2 || base > 36 {
		l.ArgError(2, "base out of range")
	}
	if f, ok := parseWhole(text, base); ok {
		return give(l, lua.LNumber(f))
	}
	return give(l, lua.LNil)
}

// nan matches the ways in which C writes NaN.
var nan = regexp.MustCompile(`^nan(\([0-9a-z]*\))?$`)

// parseNumber reads a number: 12, 1e400, 0x1p4, inf, nan. As in C, a text ends at its first zero byte.
func parseNumber(text string) (float64, bool) {
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.Trim(text, blanks)
	digits := strings.ToLower(strings.TrimLeft(text, "+-"))
	if strings.Contains(text, "_") || len(text)-len(digits) > 1 {
		return 0, false
	}
	if strings.HasPrefix(digits, "nan") && nan.MatchString(digits) { // Go takes no sign there
		if strings.HasPrefix(text, "-") {
			return math.Copysign(math.NaN(), -1), true
		}
		return math.NaN(), true
	}
	if strings.HasPrefix(digits, "0x") && !strings.Contains(digits, "p") {
		text += "p0" // Go requires the exponent
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) { // a number that is too large is infinite
		return 0, false
	}
	return f, true
}

func isDigit(r rune, base int) bool {
	_, err := strconv.ParseUint(string(r), base, 64)
	return err == nil
}

// parseWhole reads a number in a base, as an unsigned 64-bit integer: a negative one wraps around.
func parseWhole(text string, base int) (float64, bool) {
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.Trim(text, blanks)
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(digits, "+")
	}
	if base == 16 && len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	n, err := strconv.ParseUint(digits, base, 64)
	switch {
	case err != nil && (n != math.MaxUint64 || strings.ContainsFunc(digits, func(r rune) bool { return !isDigit(r, base) })):
		return 0, false // if the number is too large, ParseUint may have stopped before an invalid digit
	case negative && err == nil:
		n = -n
	}
	return float64(n), true
}
