package script

import (
	"math/rand/v2"

	lua "github.com/yuin/gopher-lua"
)

// newChance returns a script's random generator: it starts the same for each script, as in Redis, and is separate from the process's own.
func newChance() *rand.Rand { return rand.New(rand.NewPCG(0, 0)) }

// random is math.random.
func (m *Machine) random(l *lua.LState) int {
	from, to := int64(1), int64(0)
	switch l.GetTop() {
	case 0:
		return give(l, lua.LNumber(m.chance.Float64()))
	case 1:
		to = asInt(l, 1)
	case 2:
		from, to = asInt(l, 1), asInt(l, 2)
	default:
		l.RaiseError("wrong number of arguments")
	}
	if from > to {
		l.ArgError(l.GetTop(), "interval is empty")
	}
	return give(l, lua.LNumber(from+m.chance.Int64N(to-from+1)))
}

// asInt converts an argument to a 32-bit C int.
func asInt(l *lua.LState, n int) int64 {
	if l.GetTop() < n {
		l.ArgError(n, "number expected, got no value")
	}
	return int64(int32(whole(float64(l.CheckNumber(n)))))
}

func (m *Machine) randomseed(l *lua.LState) int {
	m.chance = rand.New(rand.NewPCG(uint64(asInt(l, 1)), 0))
	return 0
}
