package script

import (
	"math"

	lua "github.com/yuin/gopher-lua"
)

// arithmetic holds the operators that this machine looks up in the metatables of values that are not numbers.
var arithmetic = map[string]func(a, b float64) float64{
	"__add": func(a, b float64) float64 { return a + b },
	"__sub": func(a, b float64) float64 { return a - b },
	"__mul": func(a, b float64) float64 { return a * b },
	"__div": func(a, b float64) float64 { return a / b },
	"__mod": modulo,
	"__pow": pow,
	"__unm": func(a, _ float64) float64 { return -a },
}

// modulo is "%" as Lua defines it. The division is rounded, so the result is not always the exact remainder, and NaN for infinite b.
func modulo(a, b float64) float64 { return a - float64(math.Floor(a/b)*b) }

// operator returns the function that a fenced script calls in place of an operator.
func operator(event string) lua.LGFunction {
	compute := arithmetic[event]
	return func(l *lua.LState) int {
		a, ok := l.Get(1).(lua.LNumber)
		b, also := l.Get(2).(lua.LNumber)
		if ok && also {
			return give(l, lua.LNumber(compute(float64(a), float64(b))))
		}
		return operate(l, event)
	}
}

// swapped ends the name of an operator's function whose second operand comes first.
const swapped = " of"

// inTurn swaps the operands of an operator back after they were computed in the other order.
func inTurn(compute lua.LGFunction) lua.LGFunction {
	return func(l *lua.LState) int {
		b, a := l.Get(1), l.Get(2)
		l.SetTop(0)
		l.Push(a)
		l.Push(b)
		return compute(l)
	}
}

// textArithmetic gives strings the operators: this machine would read "010" as 8.
func (m *Machine) textArithmetic(meta *lua.LTable) {
	for event := range arithmetic {
		meta.RawSetString(event, m.state.NewFunction(func(l *lua.LState) int { return operate(l, event) }))
	}
}

// operate is an operator with at least one operand that is not a number.
func operate(l *lua.LState, event string) int {
	var numbers [2]float64
	wrong := -1 // the first operand that is not a number
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

// asNumber returns v as a number if it is one, or a string that contains one.
func asNumber(v lua.LValue) (float64, bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return parseNumber(string(v))
	}
	return 0, false
}

// number returns an argument that must be a number, or a string that contains one.
func number(l *lua.LState, i int) float64 {
	n, ok := asNumber(l.Get(i))
	if !ok && i > l.GetTop() {
		l.ArgError(i, "number expected, got no value")
	} else if !ok {
		l.TypeError(i, lua.LTNumber)
	}
	return n
}

// bound checks the start, the limit or the step of a numeric for.
func (m *Machine) bound(l *lua.LState) int {
	n, ok := asNumber(l.Get(1))
	if !ok {
		l.RaiseError("'for' %s must be a number", [...]string{"initial value", "limit", "step"}[l.CheckInt(2)-1])
	}
	return give(l, lua.LNumber(n))
}
