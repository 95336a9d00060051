package script

import (
	"sort"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// listLibrary replaces those functions of table that could take all memory in one instruction, or that differ from Redis's.
func (m *Machine) listLibrary(t *lua.LTable) {
	m.state.SetFuncs(t, map[string]lua.LGFunction{
		"concat": m.listConcat,
		"insert": m.listInsert,
		"remove": listRemove,
		"sort":   m.listSort,
	})
}

func (m *Machine) listConcat(l *lua.LState) int {
	t, sep := l.CheckTable(1), l.OptString(2, "")
	from, to := int64(intOr(l, 3, 1)), int64(intOr(l, 4, t.Len()))
	var out []byte
	for i := from; i <= to; i++ {
		v := t.RawGet(lua.LNumber(i))
		if !isText(v) {
			l.RaiseError("invalid value (%s) at index %d in table for 'concat'", v.Type(), i)
		}
		before := cap(out)
		m.spend(textSize(v))
		out = appendText(out, v)
		if i == to {
			break
		}
		out = append(out, sep...)
		m.spend(cap(out) - before)
		m.work(1)
	}
	m.spend(len(out))
	return give(l, lua.LString(out))
}

func (m *Machine) listInsert(l *lua.LState) int {
	t := l.CheckTable(1)
	m.writable(l, t)
	switch l.GetTop() {
	case 2:
		t.Append(l.Get(2))
	case 3:
		at, n := intArgument(l, 2), t.Len()
		m.room(t, lua.LNumber(at))
		if 1 <= at && at <= n {
			m.work((n - at) / 16)
			t.Insert(at, l.Get(3))
			break
		}
		for i := n + 1; i > at; i-- { // a place before the first element also moves all elements up to it
			m.work(1)
			t.RawSet(lua.LNumber(i), t.RawGet(lua.LNumber(i-1)))
		}
		t.RawSet(lua.LNumber(at), l.Get(3))
	default:
		l.RaiseError("wrong number of arguments to 'insert'")
	}
	return 0
}

func listRemove(l *lua.LState) int {
	t := l.CheckTable(1)
	n := t.Len()
	at := intOr(l, 2, n)
	if at < 1 || at > n {
		return 0
	}
	return give(l, t.Remove(at))
}

// listSort sorts the elements from 1 to #t.
func (m *Machine) listSort(l *lua.LState) int {
	t := l.CheckTable(1)
	var before *lua.LFunction
	if l.Get(2) != lua.LNil {
		before = l.CheckFunction(2)
	}
	items := make([]lua.LValue, t.Len())
	m.spend(16 * len(items))
	for i := range items {
		items[i] = t.RawGetInt(i + 1)
	}
	sort.Slice(items, func(i, j int) bool {
		if before == nil {
			m.work(1 + min(textLength(items[i]), textLength(items[j]))/copied)
			return l.LessThan(items[i], items[j])
		}
		l.Push(before)
		l.Push(items[i])
		l.Push(items[j])
		l.Call(2, 1)
		less := l.ToBool(-1)
		l.Pop(1)
		return less
	})
	for i, v := range items {
		t.RawSetInt(i+1, v)
	}
	return 0
}

func textLength(v lua.LValue) int {
	s, _ := v.(lua.LString)
	return len(s)
}

// unpack returns the elements of a list.
func unpack(l *lua.LState) int {
	t := l.CheckTable(1)
	from, to := intOr(l, 2, 1), intOr(l, 3, t.Len())
	if from > to {
		return 0
	}
	if n := to - from; n < 0 || n >= maxResults-l.GetTop() {
		l.RaiseError("too many results to unpack")
	}
	for i := from; i <= to; i++ {
		l.Push(t.RawGet(lua.LNumber(i)))
	}
	return to - from + 1
}

// choose is Lua's select: it returns the arguments from a number on or, for "#", their number.
func choose(l *lua.LState) int {
	n := l.GetTop()
	if text, ok := l.Get(1).(lua.LString); ok && strings.HasPrefix(string(text), "#") {
		return give(l, lua.LNumber(n-1))
	}
	from := intArgument(l, 1)
	if from < 0 {
		from += n
	}
	if from < 1 {
		l.ArgError(1, "index out of range")
	}
	return n - min(from, n)
}

// load is loadstring and load: it compiles a text, or the pieces that a function returns. For invalid Lua it returns nil and the error.
func (m *Machine) load(l *lua.LState) int {
	var text strings.Builder
	if read, ok := l.Get(1).(*lua.LFunction); ok {
		for {
			l.Push(read)
			l.Call(0, 1)
			piece, ok := l.Get(-1).(lua.LString)
			l.Pop(1)
			if !ok || piece == "" {
				break
			}
			m.spend(2 * len(piece))
			text.WriteString(string(piece))
		}
	} else {
		text.WriteString(l.CheckString(1))
	}
	m.spend(text.Len())
	proto, err := compile(text.String())
	if err != nil {
		l.Push(lua.LNil)
		l.Push(lua.LString(err.Error()))
		return 2
	}
	fn := l.NewFunctionFromProto(proto)
	fn.Env = m.env
	return give(l, fn)
}
