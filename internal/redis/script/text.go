package script

import (
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxResults is how many values a function may return or accept, its arguments included.
const maxResults = 8000

// textLibrary replaces those functions of string that could take all memory or run forever in one instruction, or that differ from Redis's.
func (m *Machine) textLibrary(t *lua.LTable) {
	m.state.SetFuncs(t, map[string]lua.LGFunction{
		"byte":    m.textByte,
		"char":    textChar,
		"rep":     m.textRep,
		"sub":     m.textSub,
		"lower":   func(l *lua.LState) int { return m.eachByte(l, lowerByte) },
		"upper":   func(l *lua.LState) int { return m.eachByte(l, upperByte) },
		"reverse": m.textReverse,
		"format":  m.format,
		"find":    func(l *lua.LState) int { return m.find(l, true) },
		"match":   func(l *lua.LState) int { return m.find(l, false) },
		"gmatch":  m.gmatch,
		"gfind":   m.gmatch,
		"gsub":    m.gsub,
	})
}

// position is an index in Lua's counting: from 1, or from the end if negative.
func position(n int64, length int) int64 {
	if n < 0 {
		return max(n+int64(length)+1, 0)
	}
	return n
}

func (m *Machine) textByte(l *lua.LState) int {
	s := l.CheckString(1)
	from := position(longOr(l, 2, 1), len(s))
	to := min(position(longOr(l, 3, from), len(s)), int64(len(s)))
	from = max(from, 1)
	if from > to {
		return 0
	}
	if to-from >= int64(maxResults-l.GetTop()) {
		l.RaiseError("stack overflow (string slice too long)")
	}
	for _, b := range []byte(s[from-1 : to]) {
		l.Push(lua.LNumber(b))
	}
	return int(to - from + 1)
}

func textChar(l *lua.LState) int {
	b := make([]byte, l.GetTop())
	for i := range b {
		n := intArgument(l, i+1)
		if n < 0 || n > 255 {
			l.ArgError(i+1, "invalid value")
		}
		b[i] = byte(n)
	}
	return give(l, lua.LString(b))
}

func (m *Machine) textRep(l *lua.LState) int {
	s, n := l.CheckString(1), max(intArgument(l, 2), 0)
	if s == "" {
		n = 0
	}
	if n > m.memory {
		m.fail(outOfMemory)
	}
	m.spend(n * len(s))
	return give(l, lua.LString(strings.Repeat(s, n)))
}

func (m *Machine) textSub(l *lua.LState) int {
	s := l.CheckString(1)
	from := max(position(longArgument(l, 2), len(s)), 1)
	to := min(position(longOr(l, 3, -1), len(s)), int64(len(s)))
	if from > to {
		return give(l, lua.LString(""))
	}
	return give(l, lua.LString(s[from-1:to]))
}

func (m *Machine) eachByte(l *lua.LState, change func(byte) byte) int {
	b := []byte(m.newText(l.CheckString(1)))
	for i, c := range b {
		b[i] = change(c)
	}
	return give(l, lua.LString(b))
}

// newText charges for another string as long as s.
func (m *Machine) newText(s string) string {
	m.spend(2 * len(s))
	return s
}

func lowerByte(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b += 'a' - 'A'
	}
	return b
}

func upperByte(b byte) byte {
	if 'a' <= b && b <= 'z' {
		b -= 'a' - 'A'
	}
	return b
}

func (m *Machine) textReverse(l *lua.LState) int {
	s := m.newText(l.CheckString(1))
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	return give(l, lua.LString(b))
}
