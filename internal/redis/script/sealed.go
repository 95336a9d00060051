package script

import (
	lua "github.com/yuin/gopher-lua"
)

// A script leaves nothing for the next one: it can change neither the libraries nor the globals. This machine has no read-only tables, so a script
// gets empty ones that find everything in the table behind them and refuse to be written to. The functions in this file make sure that
// a script cannot tell the difference, or write to the empty table without involving its metatable.

const readOnly = "Attempt to modify a readonly table"

// seal returns a read-only view of t.
func (m *Machine) seal(t *lua.LTable) *lua.LTable {
	view, meta := m.state.NewTable(), m.state.NewTable()
	meta.RawSetString("__index", t)
	meta.RawSetString("__newindex", m.state.NewFunction(func(l *lua.LState) int {
		l.RaiseError(readOnly)
		return 0
	}))
	view.Metatable = meta
	m.sealed[view] = t
	return view
}

// behind returns the table behind a read-only view, and any other table itself.
func (m *Machine) behind(t *lua.LTable) *lua.LTable {
	if behind, ok := m.sealed[t]; ok {
		return behind
	}
	return t
}

// writable refuses to write to a read-only view. As in Redis the error has no position.
func (m *Machine) writable(l *lua.LState, t *lua.LTable) {
	if _, ok := m.sealed[t]; ok {
		l.Error(lua.LString(readOnly), 0)
	}
}

// sealedLibrary replaces the functions that read or change tables without asking metatables.
func (m *Machine) sealedLibrary() {
	m.state.SetFuncs(m.globals, map[string]lua.LGFunction{
		"next":         m.next,
		"rawget":       m.rawget,
		"rawset":       m.rawset,
		"getmetatable": m.getmetatable,
		"setmetatable": m.setmetatable,
	})
	plain, walk := m.globals.RawGetString("pairs").(*lua.LFunction), m.state.NewFunction(m.next)
	m.globals.RawSetString("pairs", m.state.NewClosure(func(l *lua.LState) int {
		t := table(l, 1)
		if _, ok := m.sealed[t]; !ok {
			return plain.GFunction(l)
		}
		l.Push(walk)
		l.Push(t)
		l.Push(lua.LNil)
		return 3
	}, plain.Upvalues[0].Value()))
}

// table is an argument that must be a table.
func table(l *lua.LState, n int) *lua.LTable {
	if l.GetTop() < n {
		l.ArgError(n, "table expected, got no value")
	}
	return l.CheckTable(n)
}

// next skips the globals that only fenced scripts have.
func (m *Machine) next(l *lua.LState) int {
	t, key := m.behind(table(l, 1)), l.Get(2)
	if key != lua.LNil && (t.RawGet(key) == lua.LNil || t == m.globals && isOurs(key)) {
		m.known(l, t, key)
	}
	for {
		var value lua.LValue
		key, value = t.Next(key)
		if key == lua.LNil {
			return give(l, lua.LNil)
		}
		if t != m.globals || !isOurs(key) {
			l.Push(key)
			l.Push(value)
			return 2
		}
	}
}

// known refuses a key that t does not have and never had. A key removed during a walk keeps its place, so that its walk can continue; a new key
// would be the last. For an index that a list might have, this machine does not know whether it was there.
func (m *Machine) known(l *lua.LState, t *lua.LTable, key lua.LValue) {
	n, isNumber := key.(lua.LNumber)
	if at := int64(n); isNumber && at > 0 && at < int64(lua.MaxArrayIndex) && lua.LNumber(at) == n {
		return
	}
	var after lua.LValue = lua.LNil
	if _, ok := m.sealed[l.Get(1).(*lua.LTable)]; !ok && n == n { // nothing is ever removed from a view
		m.spend(entrySize)
		last := l.NewUserData()
		t.RawSet(last, lua.LTrue)
		t.RawSet(key, lua.LTrue)
		after, _ = t.Next(key)
		t.RawSet(last, lua.LNil)
		t.RawSet(key, lua.LNil)
	}
	if after == lua.LNil {
		l.Error(lua.LString("invalid key to 'next'"), 0)
	}
}

// isOurs reports whether the key of a global is one that scripts cannot write.
func isOurs(key lua.LValue) bool {
	name, ok := key.(lua.LString)
	return ok && name != "" && name[0] == '('
}

func (m *Machine) rawget(l *lua.LState) int {
	t, key := m.behind(table(l, 1)), l.CheckAny(2)
	if t == m.globals && isOurs(key) {
		return give(l, lua.LNil)
	}
	return give(l, t.RawGet(key))
}

func (m *Machine) rawset(l *lua.LState) int {
	t, key, value := table(l, 1), l.CheckAny(2), l.CheckAny(3)
	m.writable(l, t)
	m.room(t, key)
	t.RawSet(key, value)
	return give(l, t)
}

// getmetatable hides the metatables of views, except that the globals have one in Redis as well.
func (m *Machine) getmetatable(l *lua.LState) int {
	v := l.CheckAny(1)
	t, ok := v.(*lua.LTable)
	if behind := m.sealed[t]; !ok || behind == nil {
		return give(l, l.GetMetatable(v))
	} else if behind == m.globals {
		return give(l, m.strict)
	}
	return give(l, lua.LNil)
}

// setmetatable is Lua's: numbers, strings and functions each share one metatable, so it takes only tables.
func (m *Machine) setmetatable(l *lua.LState) int {
	t, meta := table(l, 1), l.Get(2)
	if meta.Type() != lua.LTTable && (meta != lua.LNil || l.GetTop() < 2) {
		l.ArgError(2, "nil or table expected")
	}
	m.writable(l, t)
	if old, ok := t.Metatable.(*lua.LTable); ok && old.RawGetString("__metatable") != lua.LNil {
		l.RaiseError("cannot change a protected metatable")
	}
	l.SetMetatable(t, meta)
	return give(l, t)
}
