package script

import (
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxNested is how deep pcalls may be nested: as deep as Redis's Lua allows C calls.
const maxNested = 195

// raiseValue is Lua's error: a string gets the position that its level selects, if that is in the script.
func (m *Machine) raiseValue(l *lua.LState) int {
	value, level := l.Get(1), intOr(l, 2, 1)
	if isText(value) && level > 0 {
		if line := m.lineAt(level); line > 0 {
			m.spend(2 * textSize(value))
			value = lua.LString(appendText(fmt.Appendf(nil, "%s:%d: ", chunkName, line), value))
		}
	}
	l.Error(value, 0)
	return 0
}

// assert raises its second argument, which may be a number, if the first is nil or false.
func assert(l *lua.LState) int {
	switch {
	case l.GetTop() == 0:
		l.ArgError(1, "value expected")
	case lua.LVAsBool(l.Get(1)):
		return l.GetTop()
	case l.Get(2) == lua.LNil:
		l.RaiseError("assertion failed!")
	}
	l.RaiseError("%s", textArgument(l, 2))
	return 0
}

// functions are the running functions, the innermost first.
func (m *Machine) functions(yield func(l *lua.LState, d *lua.Debug) bool) {
	l := m.state
	for outer := len(m.waiting); ; outer-- {
		for level := 0; ; level++ {
			d, ok := l.GetStack(level)
			if !ok {
				break
			}
			if !yield(l, d) {
				return
			}
		}
		if outer == 0 {
			return
		}
		l = m.waiting[outer-1]
	}
}

// lineAt returns the current line of the function at a level, or 0 if that function is not part of the script.
func (m *Machine) lineAt(level int) int {
	for l, d := range m.functions {
		if level == 0 {
			return lineOf(l, d)
		}
		level--
	}
	return 0
}

// currentLine returns the current line of the innermost Lua function of the script.
func (m *Machine) currentLine() int {
	for l, d := range m.functions {
		if line := lineOf(l, d); line > 0 {
			return line
		}
	}
	return 1
}

func lineOf(l *lua.LState, d *lua.Debug) int {
	if _, err := l.GetInfo("Sl", d, nil); err != nil {
		return 0
	}
	return d.CurrentLine
}

// protected calls the function that is argument 1 with arguments from the given one on, and returns its results, or the value of its error.
//
// When an error is raised, this machine detaches all locals that functions share, also those of functions that continue: each of these would then
// have its own copy. So the function called by pcall runs in a state of its own, all of whose functions end with the error.
func (m *Machine) protected(l *lua.LState, from int) (results []lua.LValue, failed bool, value lua.LValue) {
	if m.nested++; m.nested > maxNested {
		m.nested--
		l.Error(lua.LString("C stack overflow"), 0)
	}
	inner := m.spareState(l)
	m.state, m.waiting = inner, append(m.waiting, l)
	defer func() { m.nested, m.state, m.waiting = m.nested-1, l, m.waiting[:len(m.waiting)-1] }()
	function, top := l.Get(1), l.GetTop()
	inner.Push(function)
	for i := from; i <= top; i++ {
		inner.Push(l.Get(i))
	}
	if err := inner.PCall(max(top-from+1, 0), lua.MultRet, nil); err != nil {
		api, ok := err.(*lua.ApiError)
		if !ok {
			return nil, true, lua.LString(err.Error())
		}
		if text, ok := api.Object.(lua.LString); ok {
			said := translate(string(text))
			if f, ok := function.(*lua.LFunction); !ok || f.IsG {
				said = strings.TrimPrefix(said, " ") // after the position, of which there is none
			}
			return nil, true, lua.LString(said)
		}
		return nil, true, api.Object
	}
	results = make([]lua.LValue, inner.GetTop())
	for i := range results {
		results[i] = inner.Get(i + 1)
	}
	inner.SetTop(0)
	m.spare = append(m.spare, inner)
	return results, false, nil
}

// spareState returns a state in which nothing runs.
func (m *Machine) spareState(l *lua.LState) *lua.LState {
	var inner *lua.LState
	if last := len(m.spare) - 1; last >= 0 {
		inner, m.spare = m.spare[last], m.spare[:last]
	} else {
		l.RemoveContext() // otherwise the new state would wrap it
		inner, _ = l.NewThread()
		l.SetContext(m.run)
	}
	inner.SetContext(m.run)
	return inner
}

// pcall is Lua's function, except that an error of redis.call is returned as its message.
func (m *Machine) pcall(l *lua.LState) int {
	l.CheckAny(1)
	results, failed, value := m.protected(l, 2)
	if !failed {
		return giveAll(l, results)
	}
	l.Push(lua.LFalse)
	t, ok := value.(*lua.LTable)
	if !ok {
		l.Push(value)
		return 2
	}
	message := l.GetField(t, "err")
	if isText(message) {
		l.Push(message)
		return 2
	}
	l.Push(value)
	l.Push(message) // as Redis leaves it
	return 3
}

// xpcall is Lua's function. The functions have ended when it calls the handler, which could not inspect them anyway.
func (m *Machine) xpcall(l *lua.LState) int {
	l.CheckAny(2)
	l.SetTop(2)
	results, failed, value := m.protected(l, 3)
	if !failed {
		return giveAll(l, results)
	}
	handler := l.Get(2)
	l.SetTop(0)
	l.Push(handler)
	l.Push(value)
	var result lua.LValue = lua.LNil
	if results, failed, _ := m.protected(l, 2); failed {
		result = lua.LString("error in error handling")
	} else if len(results) > 0 {
		result = results[0]
	}
	l.Push(lua.LFalse)
	l.Push(result)
	return 2
}

// giveAll returns true and results.
func giveAll(l *lua.LState, results []lua.LValue) int {
	l.Push(lua.LTrue)
	for _, v := range results {
		l.Push(v)
	}
	return len(results) + 1
}
