package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// newMatcher returns a matcher, and whether the pattern is anchored at the beginning.
func (m *Machine) newMatcher(text, pattern string) (g *matcher, anchored bool) {
	pattern, _, _ = strings.Cut(pattern, "\x00") // where it ends in C
	pattern, anchored = strings.CutPrefix(pattern, "^")
	return &matcher{text: text, pattern: pattern, work: m.work, raise: func(why string) { m.state.RaiseError("%s", why) }}, anchored
}

// at matches only at s, and returns the end of the match or -1.
func (g *matcher) at(s int) int {
	g.captures = g.captures[:0]
	return g.match(s, 0)
}

// push pushes the captures of a match, or the whole match if there are none and whole is true, and returns how many values it pushed.
func (g *matcher) push(l *lua.LState, start, end int, whole bool) int {
	if len(g.captures) == 0 && whole {
		return give(l, lua.LString(g.text[start:end]))
	}
	for i := range g.captures {
		l.Push(g.capture(i))
	}
	return len(g.captures)
}

func (g *matcher) capture(i int) lua.LValue {
	switch c := g.captures[i]; c.length {
	case positional:
		return lua.LNumber(c.at + 1)
	case openCapture:
		g.raise("unfinished capture")
		return nil
	default:
		return lua.LString(g.text[c.at : c.at+c.length])
	}
}

// find is string.find, which returns the position of a match, and string.match, which returns its text.
func (m *Machine) find(l *lua.LState, where bool) int {
	text, pattern := l.CheckString(1), l.CheckString(2)
	start := min(max(position(longOr(l, 3, 1), len(text)), 1)-1, int64(len(text)))
	special, _, _ := strings.Cut(pattern, "\x00")
	if where && (lua.LVAsBool(l.Get(4)) || !strings.ContainsAny(special, "^$*+?.([%-")) {
		at := strings.Index(text[start:], pattern)
		if at < 0 {
			return give(l, lua.LNil)
		}
		l.Push(lua.LNumber(int(start) + at + 1))
		l.Push(lua.LNumber(int(start) + at + len(pattern)))
		return 2
	}
	g, anchored := m.newMatcher(text, pattern)
	for s := int(start); s <= len(text); s++ {
		if end := g.at(s); end >= 0 {
			if !where {
				return g.push(l, s, end, true)
			}
			l.Push(lua.LNumber(s + 1))
			l.Push(lua.LNumber(end))
			return 2 + g.push(l, s, end, false)
		}
		if anchored {
			break
		}
	}
	return give(l, lua.LNil)
}

// gmatch returns a function that returns one match after another.
func (m *Machine) gmatch(l *lua.LState) int {
	g, anchored := m.newMatcher(l.CheckString(1), l.CheckString(2))
	if anchored { // in gmatch "^" is an ordinary byte
		g.pattern = "^" + g.pattern
	}
	s := 0
	return give(l, l.NewFunction(func(l *lua.LState) int {
		for ; s <= len(g.text); s++ {
			if end := g.at(s); end >= 0 {
				from := s
				if s = end; end == from {
					s++
				}
				return g.push(l, from, end, true)
			}
		}
		return give(l, lua.LNil)
	}))
}

// gsub replaces matches.
func (m *Machine) gsub(l *lua.LState) int {
	text := l.CheckString(1)
	g, anchored := m.newMatcher(text, l.CheckString(2))
	by := l.Get(3)
	switch by.Type() {
	case lua.LTNumber, lua.LTString, lua.LTTable, lua.LTFunction:
	default:
		l.ArgError(3, "string/function/table expected")
	}
	limit := int64(intOr(l, 4, len(text)+1))
	var out []byte
	s, n := 0, int64(0)
	for more := true; more && n < limit; more = more && !anchored {
		end := g.at(s)
		if end >= 0 {
			n++
			before := cap(out)
			out = m.replacement(l, out, g, by, s, end)
			m.spend(cap(out) - before)
		}
		switch {
		case end > s:
			s = end
		case s < len(text):
			out = append(out, text[s])
			s++
		default:
			more = false
		}
	}
	out = append(out, text[s:]...)
	m.spend(2 * len(out))
	l.Push(lua.LString(out))
	l.Push(lua.LNumber(n))
	return 2
}

// replacement appends what replaces a match.
func (m *Machine) replacement(l *lua.LState, out []byte, g *matcher, by lua.LValue, start, end int) []byte {
	var value lua.LValue
	switch by.Type() {
	case lua.LTTable, lua.LTFunction:
		first := lua.LValue(lua.LString(g.text[start:end]))
		if len(g.captures) > 0 {
			first = g.capture(0)
		}
		if by.Type() == lua.LTTable {
			value = l.GetTable(by, first)
			break
		}
		l.Push(by)
		l.Call(g.push(l, start, end, true), 1)
		value = l.Get(-1)
		l.Pop(1)
	default:
		return m.template(out, g, string(appendText(nil, by)), start, end)
	}
	switch {
	case !lua.LVAsBool(value):
		return append(out, g.text[start:end]...)
	case !isText(value):
		l.RaiseError("invalid replacement value (a %s)", value.Type())
	}
	m.spend(textSize(value))
	return appendText(out, value)
}

// template appends a replacement in which %1 stands for a capture.
func (m *Machine) template(out []byte, g *matcher, by string, start, end int) []byte {
	for {
		plain, rest, found := strings.Cut(by, "%")
		m.spend(len(plain))
		out = append(out, plain...)
		if !found {
			return out
		}
		if rest == "" {
			return append(out, 0) // as C reads the end of a string
		}
		switch d := rest[0]; {
		case d < '0' || d > '9':
			out = append(out, d)
		case d == '0' || d == '1' && len(g.captures) == 0:
			m.spend(end - start)
			out = append(out, g.text[start:end]...)
		case int(d-'1') >= len(g.captures):
			g.raise("invalid capture index")
		default:
			v := g.capture(int(d - '1'))
			m.spend(textSize(v))
			out = appendText(out, v)
		}
		by = rest[1:]
	}
}
