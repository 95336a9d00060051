package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// The functions that fenced scripts call in place of operators.

// concat is "..": it joins strings and numbers from the right, and uses the metatables of other values.
func (m *Machine) concat(l *lua.LState) int {
	i := l.GetTop()
	joined := l.Get(i)
	for i--; i > 0; i-- {
		if !isText(joined) || !isText(l.Get(i)) {
			joined = m.concatOthers(l, l.Get(i), joined)
			continue
		}
		last, size := i, textSize(joined)+textSize(l.Get(i))
		for i > 1 && isText(l.Get(i-1)) {
			i--
			size += textSize(l.Get(i))
		}
		m.spend(size)
		text := make([]byte, 0, size)
		for at := i; at <= last; at++ {
			text = appendText(text, l.Get(at))
		}
		joined = lua.LString(appendText(text, joined))
	}
	return give(l, joined)
}

func (m *Machine) concatOthers(l *lua.LState, a, b lua.LValue) lua.LValue {
	op := l.GetMetaField(a, "__concat")
	if op == lua.LNil {
		op = l.GetMetaField(b, "__concat")
	}
	if op == lua.LNil {
		if isText(a) {
			a = b
		}
		l.RaiseError("attempt to concatenate a %s value", a.Type())
	}
	l.Push(op)
	l.Push(a)
	l.Push(b)
	l.Call(2, 1)
	joined := l.Get(-1)
	l.Pop(1)
	return joined
}

func isText(v lua.LValue) bool { return v.Type() == lua.LTString || v.Type() == lua.LTNumber }

// textSize is the most bytes that appendText appends.
func textSize(v lua.LValue) int {
	if s, ok := v.(lua.LString); ok {
		return len(s)
	}
	return 24
}

// appendText writes a string, or a number as Lua does.
func appendText(dst []byte, v lua.LValue) []byte {
	if n, ok := v.(lua.LNumber); ok {
		return appendG14(dst, float64(n))
	}
	return append(dst, string(v.(lua.LString))...)
}

// set is t[key] = value.
func (m *Machine) set(l *lua.LState) int {
	t, key := l.Get(1), l.Get(2)
	if t, ok := t.(*lua.LTable); ok {
		m.room(t, key)
	}
	l.SetTable(t, key, l.Get(3))
	return 0
}

// room refuses an index that no table accepts, and charges for the growth of a list by a numeric index, since this machine also stores the
// elements in between.
func (m *Machine) room(t *lua.LTable, key lua.LValue) {
	if key == lua.LNil {
		m.state.RaiseError("table index is nil")
	}
	n, ok := key.(lua.LNumber)
	if !ok {
		return
	}
	switch at := float64(n); {
	case math.IsNaN(at):
		m.state.RaiseError("table index is NaN")
	case at > 1000 && at < float64(lua.MaxArrayIndex) && t.RawGetInt(int(at)-1) == lua.LNil:
		if longer := int(at) - t.MaxN(); longer > 1 {
			m.spend(longer * 40) // a growing slice is two slices for a while
		}
	}
}

// key is an index in a table literal.
func (m *Machine) key(l *lua.LState) int {
	m.room(m.empty, l.Get(1))
	return give(l, l.Get(1))
}
