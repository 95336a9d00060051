package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// open makes the Lua state: the libraries that Redis allows, behind read-only tables.
func (m *Machine) open() {
	l := lua.NewState(lua.Options{SkipOpenLibs: true, MinimizeStackMemory: true, CallStackSize: 8192, RegistrySize: 1024, RegistryMaxSize: 1 << 20, RegistryGrowStep: 4096})
	for _, lib := range []struct {
		name string
		open lua.LGFunction
	}{
		{lua.BaseLibName, lua.OpenBase}, {lua.TabLibName, lua.OpenTable}, {lua.StringLibName, lua.OpenString}, {lua.MathLibName, lua.OpenMath},
	} {
		l.Push(l.NewFunction(lib.open))
		l.Push(lua.LString(lib.name))
		l.Call(1, 0)
	}
	m.state, m.sealed = l, make(map[*lua.LTable]*lua.LTable)
	m.null, m.empty = l.NewUserData(), l.NewTable()
	m.globals = l.G.Global
	for _, name := range []string{"dofile", "loadfile", "print", "module", "require", "newproxy", "setfenv", "getfenv", "_printregs", "_GOPHER_LUA_VERSION"} {
		m.globals.RawSetString(name, lua.LNil)
	}
	os := l.NewTable()
	os.RawSetString("clock", l.NewFunction(clock))
	m.globals.RawSetString("os", os)
	m.globals.RawSetString("redis", m.redisLibrary())
	m.globals.RawSetString("cjson", m.cjsonLibrary())
	m.globals.RawSetString("bit", m.bitLibrary())
	m.globals.RawSetString("pcall", l.NewFunction(m.pcall))
	m.globals.RawSetString("xpcall", l.NewFunction(m.xpcall))
	m.globals.RawSetString("tostring", l.NewFunction(m.tostring))
	m.globals.RawSetString("unpack", l.NewFunction(unpack))
	m.globals.RawSetString("select", l.NewFunction(choose))
	m.globals.RawSetString("load", l.NewFunction(m.load))
	m.globals.RawSetString("loadstring", l.NewFunction(m.load))
	m.globals.RawSetString("collectgarbage", l.NewFunction(m.collectgarbage))
	m.globals.RawSetString("gcinfo", l.NewFunction(func(l *lua.LState) int { return give(l, lua.LNumber(math.Trunc(m.held()))) }))
	m.globals.RawSetString("assert", l.NewFunction(assert))
	m.globals.RawSetString("(concat)", l.NewFunction(m.concat))
	m.globals.RawSetString("(set)", l.NewFunction(m.set))
	m.globals.RawSetString("(key)", l.NewFunction(m.key))
	for _, function := range computed {
		compute := operator("__" + function)
		m.globals.RawSetString("("+function+")", l.NewFunction(compute))
		m.globals.RawSetString("("+function+swapped+")", l.NewFunction(inTurn(compute)))
	}
	m.globals.RawSetString("(bound)", l.NewFunction(m.bound))
	m.globals.RawSetString("(list)", l.NewFunction(func(l *lua.LState) int { return give(l, l.Get(1)) }))
	m.globals.RawGetString("string").(*lua.LTable).RawSetString("__index", lua.LNil)
	numbers := m.globals.RawGetString("math").(*lua.LTable)
	numbers.RawSetString("huge", lua.LNumber(math.Inf(1)))
	l.SetFuncs(numbers, map[string]lua.LGFunction{"random": m.random, "randomseed": m.randomseed,
		"pow": func(l *lua.LState) int {
			return give(l, lua.LNumber(pow(number(l, 1), number(l, 2))))
		}})
	for name, compute := range computedByC {
		l.SetFuncs(numbers, map[string]lua.LGFunction{name: func(l *lua.LState) int { return give(l, lua.LNumber(compute(number(l, 1)))) }})
	}
	m.globals.RawSetString("error", l.NewFunction(m.raiseValue))
	m.globals.RawSetString("tonumber", l.NewFunction(m.tonumber))
	m.textLibrary(m.globals.RawGetString("string").(*lua.LTable))
	m.listLibrary(m.globals.RawGetString("table").(*lua.LTable))
	for _, name := range []string{"math", "string", "table"} {
		m.coerceAll(m.globals.RawGetString(name).(*lua.LTable), name == "math")
	}
	m.sealedLibrary()
	for _, name := range []string{"redis", "cjson", "bit", "os", "table", "math", "string"} {
		m.globals.RawSetString(name, m.seal(m.globals.RawGetString(name).(*lua.LTable)))
	}
	texts, shown := l.NewTable(), l.NewTable() // the metatable of strings, and what getmetatable shows of it
	for _, t := range []*lua.LTable{texts, shown} {
		t.RawSetString("__index", m.globals.RawGetString("string"))
	}
	m.textArithmetic(texts)
	texts.RawSetString("__metatable", m.seal(shown))
	l.SetMetatable(lua.LString(""), texts)
	meta := l.NewTable()
	meta.RawSetString("__index", l.NewFunction(func(l *lua.LState) int {
		l.RaiseError("Script attempted to access nonexistent global variable '%s'", l.ToStringMeta(l.Get(2)).String())
		return 0
	}))
	m.globals.Metatable, m.strict = meta, m.seal(meta)
	m.env = m.seal(m.globals)
	m.globals.RawSetString("_G", m.env)
}

// raise raises an error as redis.call does: a table with the message and the position.
func (m *Machine) raise(l *lua.LState, message string) {
	t := l.NewTable()
	t.RawSetString("err", lua.LString(message))
	t.RawSetString("source", lua.LString("@"+chunkName))
	t.RawSetString("line", lua.LNumber(m.currentLine()))
	l.Error(t, 0)
}

// tostring formats a number with 14 digits, as Lua 5.1 does.
func (m *Machine) tostring(l *lua.LState) int {
	v := l.CheckAny(1)
	switch n, isNumber := v.(lua.LNumber); {
	case isNumber:
		return give(l, lua.LString(appendG14(nil, float64(n))))
	case v == lua.LValue(m.null):
		return give(l, lua.LString("userdata: (nil)"))
	}
	return give(l, l.ToStringMeta(v))
}

// clock stands still: a script gets the time only from the command TIME.
func clock(l *lua.LState) int { return give(l, lua.LNumber(0)) }

// list makes a Lua list of strings.
func (m *Machine) list(items [][]byte) *lua.LTable {
	t := m.state.CreateTable(len(items), 0)
	for _, item := range items {
		t.Append(lua.LString(item))
	}
	return t
}
