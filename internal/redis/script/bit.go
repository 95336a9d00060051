package script

import (
	"fmt"
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"
)

// bitLibrary is the table bit: operations on 32-bit numbers.
func (m *Machine) bitLibrary() *lua.LTable {
	fold := func(op func(a, b uint32) uint32) lua.LGFunction {
		return func(l *lua.LState) int {
			n := word(l, 1)
			for i := 2; i <= l.GetTop(); i++ {
				n = op(n, word(l, i))
			}
			return push(l, n)
		}
	}
	shift := func(op func(a uint32, n uint) uint32) lua.LGFunction {
		return func(l *lua.LState) int { return push(l, op(word(l, 1), uint(word(l, 2)&31))) }
	}
	t := m.state.NewTable()
	m.state.SetFuncs(t, map[string]lua.LGFunction{
		"tobit":   func(l *lua.LState) int { return push(l, word(l, 1)) },
		"bnot":    func(l *lua.LState) int { return push(l, ^word(l, 1)) },
		"bswap":   func(l *lua.LState) int { return push(l, bits.ReverseBytes32(word(l, 1))) },
		"band":    fold(func(a, b uint32) uint32 { return a & b }),
		"bor":     fold(func(a, b uint32) uint32 { return a | b }),
		"bxor":    fold(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  shift(func(a uint32, n uint) uint32 { return a << n }),
		"rshift":  shift(func(a uint32, n uint) uint32 { return a >> n }),
		"arshift": shift(func(a uint32, n uint) uint32 { return uint32(int32(a) >> n) }),
		"rol":     shift(func(a uint32, n uint) uint32 { return bits.RotateLeft32(a, int(n)) }),
		"ror":     shift(func(a uint32, n uint) uint32 { return bits.RotateLeft32(a, -int(n)) }),
		"tohex":   tohex,
	})
	return t
}

// word reads an argument modulo 2^32. The library adds 2^52 + 2^51 and takes the low bits of the double. That rounds fractions, and also numbers
// from 2^51 on: their result is not the remainder, but it is the same as in Redis.
func word(l *lua.LState, i int) uint32 {
	return uint32(math.Float64bits(number(l, i) + 3<<51))
}

func push(l *lua.LState, n uint32) int { return give(l, lua.LNumber(int32(n))) }

func tohex(l *lua.LState) int {
	n, digits, format := word(l, 1), 8, "%08x"
	if l.GetTop() > 1 {
		digits = int(int32(word(l, 2)))
	}
	if digits < 0 {
		digits, format = -digits, "%08X"
	}
	s := fmt.Sprintf(format, n)
	return give(l, lua.LString(s[8-min(digits, 8):]))
}
