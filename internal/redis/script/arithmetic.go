package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// arithmetic are the operators that this machine looks for in the metatables of values that are not numbers.
var arithmetic = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": modulo,
	"__pow": math.Pow,
	"__unm": func(a, _ float64) float64 { return -a },
}

// modulo is "%" as Lua defines it. The division is rounded, so what is left is not always the exact remainder, and not a number for infinite b.
func modulo(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

// mod is a % b.
func (m *Machine) mod(l *lua.LState) int {
	a, ok := l.Get(1).(lua.LNumber)
	b, also := l.Get(2).(lua.LNumber)
	if ok && also {
		return give(l, lua.LNumber(modulo(float64(a), float64(b))))
	}
	return operate(l, "__mod")
}

// rem is b % a, of operands that were computed in that order.
func (m *Machine) rem(l *lua.LState) int {
	a, b := l.Get(1), l.Get(2)
	l.SetTop(0)
	l.Push(b)
	l.Push(a)
	return m.mod(l)
}

// textArithmetic gives strings the operators: this machine would take "010" for 8.
func (m *Machine) textArithmetic(meta *lua.LTable) {
	for event := range arithmetic {
		meta.RawSetString(event, m.state.NewFunction(func(l *lua.LState) int { return operate(l, event) }))
	}
}

// operate is an operator whose operands are not both numbers.
func operate(l *lua.LState, event string) int {
	var numbers [2]float64
	wrong := -1 // the first operand that is no number
	for i := range numbers {
		var ok bool
		if numbers[i], ok = asNumber(l.Get(i + 1)); !ok && wrong < 0 && (i == 0 || event != "__unm") {
			wrong = i
		}
	}
	if wrong < 0 {
		return give(l, lua.LNumber(arithmetic[event](numbers[0], numbers[1])))
	}
	for i := range numbers {
		if v := l.Get(i + 1); v.Type() != lua.LTString {
			if op := l.GetMetaField(v, event); op != lua.LNil {
				a, b := l.Get(1), l.Get(2)
				l.Push(op)
				l.Push(a)
				l.Push(b)
				l.Call(2, 1)
				return 1
			}
		}
	}
	l.RaiseError("attempt to perform arithmetic on a %s value", l.Get(wrong+1).Type())
	return 0
}

// asNumber returns a number, or the number that a string is.
func asNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

// bound is a number that a numeric for begins with, ends at, or adds.
func (m *Machine) bound(l *lua.LState) int {
	n, ok := asNumber(l.Get(1))
	if !ok {
		l.RaiseError("'for' %s must be a number", [...]string{"initial value", "limit", "step"}[l.CheckInt(2)-1])
	}
	return give(l, lua.LNumber(n))
}
