package script

import (
	lua "github.com/yuin/gopher-lua"
)

// textual lists the arguments that functions take as strings, as the first and the last index. The machine would write 1e15 in all its digits. The
// functions of math would read "010" as 8.
var textual = map[string][2]int{"len": {1, 1}, "rep": {1, 1}, "sub": {1, 1}, "byte": {1, 1}, "lower": {1, 1}, "upper": {1, 1}, "reverse": {1, 1},
	"find": {1, 2}, "match": {1, 2}, "gmatch": {1, 2}, "gsub": {1, 3}, "concat": {2, 2}}

// coerceAll makes the functions of a library read strings as numbers, and write numbers as strings, as Redis's Lua does.
func (m *Machine) coerceAll(t *lua.LTable, isMath bool) {
	type function struct {
		name  string
		plain *lua.LFunction
	}
	var all []function
	t.ForEach(func(key, value lua.LValue) {
		if f, ok := value.(*lua.LFunction); ok {
			all = append(all, function{key.String(), f})
		}
	})
	for _, f := range all {
		numbers, texts := [2]int{}, textual[f.name]
		if isMath {
			numbers, texts = [2]int{1, maxResults}, [2]int{}
		}
		if numbers[0] == 0 && texts[0] == 0 {
			continue
		}
		plain := f.plain.GFunction
		t.RawSetString(f.name, m.state.NewFunction(func(l *lua.LState) int {
			top := l.GetTop()
			for i := max(numbers[0], 1); i <= min(numbers[1], top); i++ {
				if text, ok := l.Get(i).(lua.LString); ok {
					if n, ok := parseNumber(string(text)); ok {
						l.Replace(i, lua.LNumber(n))
					}
				}
			}
			for i := max(texts[0], 1); i <= min(texts[1], top); i++ {
				if n, ok := l.Get(i).(lua.LNumber); ok {
					l.Replace(i, lua.LString(appendG14(nil, float64(n))))
				}
			}
			return plain(l)
		}))
	}
}
