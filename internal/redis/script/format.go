package script

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// format is string.format, with C's output.
func (m *Machine) format(l *lua.LState) int {
	text, arg := l.CheckString(1), 1
	var out []byte
	for {
		plain, rest, found := strings.Cut(text, "%")
		out = append(out, plain...)
		if !found {
			m.spend(len(out))
			return give(l, lua.LString(out))
		}
		if strings.HasPrefix(rest, "%") {
			out, text = append(out, '%'), rest[1:]
			continue
		}
		if arg++; arg > l.GetTop() {
			l.ArgError(arg, "no value")
		}
		spec, verb, after := conversion(l, rest)
		text = after
		if verb == 's' || verb == 'q' {
			s := textArgument(l, arg)
			m.spend(2*len(out) + 4*len(s))
			out = spec.text(out, s, verb)
			continue
		}
		if strings.IndexByte("cdiouxXeEfgG", verb) < 0 {
			l.RaiseError("invalid option '%%%c' to 'format'", verb)
		}
		n, ok := asNumber(l.Get(arg))
		if !ok {
			n = float64(l.CheckNumber(arg)) // which fails
		}
		out = spec.number(out, n, verb)
	}
}

// textArgument is a string, or a number as Lua writes it.
func textArgument(l *lua.LState, arg int) string {
	if n, ok := l.Get(arg).(lua.LNumber); ok {
		return string(appendG14(nil, float64(n)))
	}
	return l.CheckString(arg)
}

// layout is the layout of a conversion: %-08.3f.
type layout struct {
	flags            string
	width, precision int // -1: not given
}

func conversion(l *lua.LState, text string) (spec layout, verb byte, rest string) {
	at := 0
	for at < len(text) && strings.IndexByte("-+ #0", text[at]) >= 0 {
		at++
	}
	if at >= len("-+ #0")+1 {
		l.RaiseError("invalid format (repeated flags)")
	}
	digits := func() int {
		n, from := -1, at
		for ; at < len(text) && at < from+2 && '0' <= text[at] && text[at] <= '9'; at++ {
			n = max(n, 0)*10 + int(text[at]-'0')
		}
		return n
	}
	spec = layout{flags: text[:at]}
	spec.width, spec.precision = digits(), -1
	if at < len(text) && text[at] == '.' {
		at++
		spec.precision = max(digits(), 0)
	}
	if at < len(text) && '0' <= text[at] && text[at] <= '9' {
		l.RaiseError("invalid format (width or precision too long)")
	}
	if at >= len(text) {
		l.RaiseError("invalid option '%s' to 'format'", "%")
	}
	return spec, text[at], text[at+1:]
}

// pad pads s to the width.
func (f layout) pad(out []byte, s string) []byte {
	space := strings.Repeat(" ", max(f.width-len(s), 0))
	if strings.Contains(f.flags, "-") {
		return append(append(out, s...), space...)
	}
	return append(append(out, space...), s...)
}

func (f layout) text(out []byte, s string, verb byte) []byte {
	if verb == 'q' {
		return quote(out, s)
	}
	if f.precision < 0 && len(s) >= 100 { // as Redis's Lua does it: the string itself
		return append(out, s...)
	}
	s, _, _ = strings.Cut(s, "\x00") // a C string ends at the first zero byte
	if f.precision >= 0 {
		s = s[:min(f.precision, len(s))]
	}
	return f.pad(out, s)
}

// number writes n. Go's verbs are C's, except for negative numbers where C reads them as unsigned, and for infinities and NaN.
func (f layout) number(out []byte, n float64, verb byte) []byte {
	form := "%" + f.flags
	if f.width >= 0 {
		form += fmt.Sprint(f.width)
	}
	if f.precision >= 0 {
		form += fmt.Sprintf(".%d", f.precision)
	}
	switch verb {
	case 'c':
		code := byte(whole(n))
		if n >= 1<<31 || n < -1<<31 { // here C converts to 32 bits
			code = 0
		}
		padded, _, _ := strings.Cut(string(f.pad(nil, string([]byte{code}))), "\x00") // a C string ends at the first zero byte
		return append(out, padded...)
	case 'd', 'i':
		return fmt.Appendf(out, form+"d", whole(n))
	case 'u':
		return fmt.Appendf(out, form+"d", unsigned(n))
	case 'o', 'x', 'X':
		return fmt.Appendf(out, form+string(verb), unsigned(n))
	}
	if isSpecial(n) {
		s := string(appendSpecial(nil, n))
		if n > 0 && strings.Contains(f.flags, "+") {
			s = "+inf"
		}
		if verb < 'a' {
			s = strings.ToUpper(s)
		}
		return f.pad(out, s)
	}
	if f.precision < 0 {
		form += ".6"
	}
	return fmt.Appendf(out, form+string(verb), n)
}

// quote writes a string as a Lua literal.
func quote(out []byte, s string) []byte {
	out = append(out, '"')
	for _, c := range []byte(s) {
		switch c {
		case '"', '\\', '\n':
			out = append(out, '\\', c)
		case '\r':
			out = append(out, `\r`...)
		case 0:
			out = append(out, `\000`...)
		default:
			out = append(out, c)
		}
	}
	return append(out, '"')
}
