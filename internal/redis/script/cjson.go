package script

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"
)

// cjsonLibrary is the table cjson: JSON as Redis's module of that name reads and writes it.
func (m *Machine) cjsonLibrary() *lua.LTable {
	t := m.state.NewTable()
	m.state.SetFuncs(t, map[string]lua.LGFunction{
		"encode": func(l *lua.LState) int {
			oneArgument(l, "encode")
			e := encoder{m: m, l: l}
			e.value(l.Get(1), 0)
			m.spend(len(e.out))
			return give(l, lua.LString(e.out))
		},
		"decode": func(l *lua.LState) int {
			oneArgument(l, "decode")
			d := decoder{m: m, l: l, text: l.CheckString(1), null: m.null}
			m.charge(16 * len(d.text))
			v := d.value(0)
			if d.space(); d.at < len(d.text) {
				d.fail("the end")
			}
			return give(l, v)
		},
	})
	t.RawSetString("null", m.null)
	t.RawSetString("_NAME", lua.LString("cjson"))
	t.RawSetString("_VERSION", lua.LString("2.1.0"))
	return t
}

func oneArgument(l *lua.LState, function string) {
	if l.GetTop() != 1 {
		l.RaiseError("bad argument #1 to '%s' (expected 1 argument)", function)
	}
}

// deepest is how deep tables may be nested.
const deepest = 1000

type encoder struct {
	m    *Machine
	l    *lua.LState
	out  []byte
	paid int // bytes of out that have been charged
}

func (e *encoder) fail(what, why string) {
	e.l.RaiseError("Cannot serialise %s: %s", what, why)
}

func (e *encoder) value(v lua.LValue, depth int) {
	e.m.work(1)
	e.pay()
	switch v := v.(type) {
	case *lua.LNilType:
		e.out = append(e.out, "null"...)
	case lua.LBool:
		e.out = strconv.AppendBool(e.out, bool(v))
	case lua.LNumber:
		e.number(float64(v))
	case lua.LString:
		e.text(string(v))
	case *lua.LTable:
		if depth++; depth > deepest {
			e.l.RaiseError("Cannot serialise, excessive nesting (%d)", depth)
		}
		e.table(e.m.behind(v), depth)
	default:
		if v != lua.LValue(e.m.null) {
			e.fail(v.Type().String(), "type not supported")
		}
		e.out = append(e.out, "null"...)
	}
}

// pay charges from time to time for what has been written, because a table that occurs in many places is written that many times.
func (e *encoder) pay() {
	if len(e.out)-e.paid > 1<<20 {
		e.m.spend(cap(e.out))
		e.paid = len(e.out)
	}
}

// number writes 14 significant digits, like C's %.14g.
func (e *encoder) number(f float64) {
	if isSpecial(f) {
		e.fail("number", "must not be NaN or Inf")
	}
	e.out = appendG14(e.out, f)
}

// appendG14 formats f like C's %.14g.
func appendG14(dst []byte, f float64) []byte {
	if isSpecial(f) {
		return appendSpecial(dst, f)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'g', 14, 64)
	// Go pads to the requested digits only in the form with an exponent; C drops trailing zeros.
	mantissa, exponent := dst[start:], []byte(nil)
	if at := bytes.IndexByte(mantissa, 'e'); at >= 0 {
		mantissa, exponent = mantissa[:at], bytes.Clone(mantissa[at:])
	}
	if bytes.IndexByte(mantissa, '.') >= 0 {
		mantissa = bytes.TrimRight(bytes.TrimRight(mantissa, "0"), ".")
	}
	return append(dst[:start+len(mantissa)], exponent...)
}

// table writes a list if all keys are positive integers and few are missing, otherwise an object.
func (e *encoder) table(t *lua.LTable, depth int) {
	most, count, list := 0, 0, true
	t.ForEach(func(k, _ lua.LValue) {
		n, ok := k.(lua.LNumber)
		if !ok || float64(n) != math.Trunc(float64(n)) || n < 1 {
			list = false
			return
		}
		count++
		most = max(most, int(n))
	})
	if list && count > 0 {
		if most > 10 && most > 2*count {
			e.fail("table", "excessively sparse array")
		}
		e.out = append(e.out, '[')
		for i := 1; i <= most; i++ {
			if i > 1 {
				e.out = append(e.out, ',')
			}
			e.value(t.RawGetInt(i), depth)
		}
		e.out = append(e.out, ']')
		return
	}
	e.out = append(e.out, '{')
	first := true
	t.ForEach(func(k, v lua.LValue) {
		if !first {
			e.out = append(e.out, ',')
		}
		first = false
		switch k := k.(type) {
		case lua.LString:
			e.text(string(k))
		case lua.LNumber:
			e.out = append(e.out, '"')
			e.number(float64(k))
			e.out = append(e.out, '"')
		default:
			e.fail("table", "table key must be a number or string")
		}
		e.out = append(e.out, ':')
		e.value(v, depth)
	})
	e.out = append(e.out, '}')
}

// text writes a string. Bytes from 128 on are copied as they are.
func (e *encoder) text(s string) {
	e.out = append(e.out, '"')
	for i := range len(s) {
		c := s[i]
		if i%stretch == stretch-1 {
			e.m.work(stretch / perByte)
			e.pay()
		}
		if at := strings.IndexByte(escaped, c); at >= 0 {
			e.out = append(e.out, '\\', escapes[at])
		} else if c < ' ' || c == 0x7f {
			e.out = fmt.Appendf(e.out, `\u%04x`, c)
		} else {
			e.out = append(e.out, c)
		}
	}
	e.out = append(e.out, '"')
}

// Text is read and written byte by byte, several bytes in the time of one instruction, so work is counted per stretch of bytes.
const (
	perByte = 8
	stretch = 1 << 12
)

// The bytes with one-letter escapes and, in the same order, those letters.
const (
	escaped = "\"\\/\b\f\n\r\t"
	escapes = `"\/bfnrt`
)

type decoder struct {
	m    *Machine
	l    *lua.LState
	null *lua.LUserData
	text string
	at   int
}

// fail raises an error that says what was expected and what was found.
func (d *decoder) fail(expected string) {
	found := "invalid token"
	if d.at >= len(d.text) {
		found = "T_END"
	} else if c := d.text[d.at]; startsNumber(c) {
		found = "T_NUMBER"
	} else if name, ok := tokens[c]; ok {
		found = name
	}
	d.l.RaiseError("Expected %s but found %s at character %d", expected, found, d.at+1)
}

// startsNumber reports whether a number may begin with c: also "+5", as the C library reads it.
func startsNumber(c byte) bool { return c == '-' || c == '+' || '0' <= c && c <= '9' }

var tokens = map[byte]string{'{': "T_OBJ_BEGIN", '}': "T_OBJ_END", '[': "T_ARR_BEGIN", ']': "T_ARR_END", ',': "T_COMMA", ':': "T_COLON", '"': "T_STRING"}

func (d *decoder) space() {
	for d.at < len(d.text) && strings.IndexByte(" \t\n\r", d.text[d.at]) >= 0 {
		d.at++
	}
}

// take skips c if it comes next.
func (d *decoder) take(c byte) bool {
	d.space()
	if d.at < len(d.text) && d.text[d.at] == c {
		d.at++
		return true
	}
	return false
}

func (d *decoder) value(depth int) lua.LValue {
	if depth++; depth > deepest {
		d.l.RaiseError("Found too many nested data structures (%d) at character %d", depth, d.at+1)
	}
	d.m.work(1)
	d.space()
	if d.at >= len(d.text) {
		d.fail("value")
	}
	switch c := d.text[d.at]; {
	case c == '{':
		d.at++
		return d.object(depth)
	case c == '[':
		d.at++
		return d.list(depth)
	case c == '"':
		return lua.LString(d.str("value"))
	case startsNumber(c):
		return d.number()
	}
	for word, v := range map[string]lua.LValue{"true": lua.LTrue, "false": lua.LFalse, "null": d.null} {
		if strings.HasPrefix(d.text[d.at:], word) {
			d.at += len(word)
			return v
		}
	}
	d.fail("value")
	return nil
}

func (d *decoder) object(depth int) lua.LValue {
	d.m.spend(tableSize)
	t := d.l.CreateTable(0, 1)
	for more := !d.take('}'); more; more = d.more('}', "comma or object end") {
		d.space()
		key := d.str("object key string")
		if !d.take(':') {
			d.fail("colon")
		}
		d.m.spend(entrySize)
		t.RawSetString(key, d.value(depth))
	}
	return t
}

func (d *decoder) list(depth int) lua.LValue {
	d.m.spend(tableSize)
	t, n := d.l.CreateTable(0, 0), 0
	for more := !d.take(']'); more; more = d.more(']', "comma or array end") {
		n++
		d.m.spend(40) // a growing slice is two slices for a while
		t.RawSetInt(n, d.value(depth))
	}
	return t
}

// more skips the comma before another element, or the closing bracket.
func (d *decoder) more(end byte, expected string) bool {
	if d.take(end) {
		return false
	}
	if !d.take(',') {
		d.fail(expected)
	}
	return true
}

func (d *decoder) number() lua.LValue {
	start := d.at
	for d.at < len(d.text) && strings.IndexByte("0123456789-+.eE", d.text[d.at]) >= 0 {
		d.at++
	}
	f, err := strconv.ParseFloat(d.text[start:d.at], 64)
	if err != nil && !math.IsInf(f, 0) {
		d.at = start
		d.l.RaiseError("Expected value but found invalid number at character %d", start+1)
	}
	return lua.LNumber(f)
}

// str reads a string; the error for anything else says that expected was expected.
func (d *decoder) str(expected string) string {
	if d.at >= len(d.text) || d.text[d.at] != '"' {
		d.fail(expected)
	}
	d.at++
	var out []byte
	for d.at < len(d.text) {
		c := d.text[d.at]
		if d.at++; d.at%stretch == 0 {
			d.m.work(stretch / perByte)
		}
		switch c {
		case '"':
			return string(out)
		case '\\':
			out = d.escape(out)
		default:
			out = append(out, c)
		}
	}
	d.l.RaiseError("Expected %s but found unexpected end of string at character %d", expected, d.at+1)
	return ""
}

func (d *decoder) escape(out []byte) []byte {
	if d.at >= len(d.text) {
		d.l.RaiseError("Expected value but found invalid escape code at character %d", d.at)
	}
	c := d.text[d.at]
	d.at++
	if c == 'u' {
		return d.unicode(out)
	}
	if at := strings.IndexByte(escapes, c); at >= 0 {
		return append(out, escaped[at])
	}
	d.l.RaiseError("Expected value but found invalid escape code at character %d", d.at-1)
	return nil
}

// unicode reads the digits of \u, and those of a second \u for a rune above 65,535.
func (d *decoder) unicode(out []byte) []byte {
	unit := func() (rune, bool) {
		if d.at+4 > len(d.text) {
			return 0, false
		}
		n, err := strconv.ParseUint(d.text[d.at:d.at+4], 16, 32)
		d.at += 4
		return rune(n), err == nil
	}
	backslash := d.at - 1 // counted from 1
	r, ok := unit()
	if ok && 0xd800 <= r && r < 0xdc00 {
		var low rune
		if ok = strings.HasPrefix(d.text[d.at:], `\u`); ok {
			d.at += 2
			low, ok = unit()
			ok = ok && 0xdc00 <= low && low < 0xe000
			r = 0x10000 + (r-0xd800)<<10 + (low - 0xdc00)
		}
	}
	if !ok {
		d.l.RaiseError("Expected value but found invalid unicode escape code at character %d", backslash)
	}
	return utf8.AppendRune(out, r)
}
