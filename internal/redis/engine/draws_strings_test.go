package engine

import (
	"strconv"
	"strings"
)

// drawStrings returns a random command about strings and numbers.
func drawStrings(r *dice) []string {
	key := func() string { return r.key("s", 4) }
	text := func() string {
		switch r.IntN(12) {
		case 0:
			return strings.Repeat("t", oneOf(r, 43, 44, 45, 100, 1000, 1700))
		case 1:
			return strconv.Itoa(r.IntN(20000) - 5000)
		}
		return one(r, "", "a", "ohmytext", "mynewtext", "7", "-3", "007", "+5", "1.5", "9223372036854775807", "-9223372036854775808",
			"9223372036854775808", " 1", "1 ", "3.0e3", "0x1F", "inf", "nan", "-0", "1e400", "5e-324", "\x00\x01\xff", "18446744073709551615")
	}
	number := func() string {
		return one(r, "1", "-1", "5", "0", "-0", "100", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "x", "", "1.0", "01", "+1")
	}
	index := func() string {
		return one(r, "0", "1", "2", "5", "-1", "-3", "-100", "100", "9223372036854775807", "-9223372036854775808", "x", "", "1.0")
	}
	pairs := func() (list []string) {
		for range 1 + r.IntN(3) {
			list = append(list, key(), text())
		}
		if r.IntN(20) == 0 {
			list = append(list, key())
		}
		return list
	}
	keys := func() (list []string) {
		for range 1 + r.IntN(3) {
			list = append(list, key())
		}
		return list
	}
	switch r.IntN(24) {
	case 0, 1, 2, 3:
		args := cat([]string{"SET", key(), text()}, some(r, "NX", "XX", "GET", "nx"), lifetime(r, one(r, "KEEPTTL", "PERSIST")), some(r, "GET", "XX", "FOO", "EX"))
		if r.IntN(4) > 0 {
			args = args[:3]
		}
		return args
	case 4:
		return []string{"GET", key()}
	case 5:
		return cat([]string{"GETEX", key()}, lifetime(r, one(r, "PERSIST", "KEEPTTL")), some(r, "PERSIST", "EX", "NX"))
	case 6:
		return []string{one(r, "GETDEL", "STRLEN", "GET"), key()}
	case 7:
		return []string{"GETSET", key(), text()}
	case 8:
		if r.IntN(2) == 0 {
			return []string{"SETEX", key(), seconds(r), text()}
		}
		return []string{"PSETEX", key(), milliseconds(r), text()}
	case 9:
		return []string{"SETNX", key(), text()}
	case 10:
		return cat([]string{"MGET"}, keys())
	case 11:
		return cat([]string{one(r, "MSET", "MSETNX")}, pairs())
	case 12:
		return []string{"APPEND", key(), text()}
	case 13:
		offset := one(r, "0", "1", "3", "10", "50", "-1", "536870912", "9223372036854775807", "x")
		return []string{"SETRANGE", key(), offset, text()}
	case 14:
		return []string{one(r, "GETRANGE", "SUBSTR"), key(), index(), index()}
	case 15, 16:
		return []string{one(r, "INCR", "DECR"), key()}
	case 17:
		return []string{one(r, "INCRBY", "DECRBY"), key(), number()}
	case 18, 19:
		return []string{"INCRBYFLOAT", key(), one(r, "1", "0.1", "-2.5", "3.0e-2", "1e17", "1e-17", "123456789.987654321", "inf", "-inf", "nan", "x", "", " 1",
			"0x10", "1e400", "-1e4931", "1e4932", "1e5000", "1e-5000", "1e9999999999", "0e9999999999", "1_0", "infinity", ".5", "5.", "+3", "1e", "1d3")}
	case 20:
		return cat([]string{"LCS", key(), key()}, some(r, "LEN", "IDX", "len"), some(r, "IDX", "LEN", "FOO"), pair(r, "MINMATCHLEN", "0", "2", "4", "-1", "x"), some(r, "WITHMATCHLEN"))
	case 21:
		return []string{one(r, "DEL", "TYPE", "TTL", "EXPIRETIME", "PERSIST"), key()}
	case 22:
		if r.IntN(6) == 0 {
			return []string{"RPUSH", key(), "element"}
		}
		return []string{"DEL", key()}
	}
	name := one(r, "SET", "GET", "GETEX", "GETDEL", "GETSET", "SETEX", "SETNX", "MSET", "MGET", "APPEND", "SETRANGE", "GETRANGE", "INCR", "INCRBY", "LCS", "STRLEN")
	return cat([]string{name, key()}, []string{"7000", "8000", "9000"}[:r.IntN(4)])
}

// drawBits returns a random command about bits.
func drawBits(r *dice) []string {
	key := func() string { return r.key("b", 3) }
	bit := func() string { return one(r, "0", "1", "0", "1", "2", "x", "-1") }
	offset := func() string {
		if r.IntN(8) == 0 {
			return one(r, "-1", "x", "", "4294967296", "9223372036854775807", "#1")
		}
		return strconv.Itoa(r.IntN(200))
	}
	index := func() string {
		return one(r, "0", "1", "2", "5", "-1", "-3", "13", "-100", "100", "9223372036854775807", "-9223372036854775808", "x", "")
	}
	span := func() []string {
		return []string{index(), index(), one(r, "BIT", "BYTE", "bit", "FOO")}[:r.IntN(4)]
	}
	field := func() string {
		return one(r, "u1", "u8", "i8", "i5", "u13", "i16", "u31", "u32", "u63", "i64", "i1", "u64", "i65", "u0", "x", "i", "I8")
	}
	fieldOffset := func() string {
		return one(r, "0", "3", "7", "64", "#0", "#1", "#2", "100", "-1", "#-1", "#", "x", "4294967296")
	}
	value := func() string {
		return one(r, "0", "1", "-1", "100", "300", "-300", "9223372036854775807", "-9223372036854775808", "4611686018427387904", "x")
	}
	switch r.IntN(14) {
	case 0, 1, 2:
		return []string{"SETBIT", key(), offset(), bit()}
	case 3:
		return []string{"GETBIT", key(), offset()}
	case 4, 5:
		args := cat([]string{"BITCOUNT", key()}, span())
		if r.IntN(10) == 0 {
			args = append(args, "1", "BIT", "x")
		}
		return args
	case 6, 7:
		return cat([]string{"BITPOS", key(), bit()}, span())
	case 8:
		args := []string{"BITOP", one(r, "AND", "OR", "XOR", "NOT", "and", "DIFF"), key(), key()}
		for range r.IntN(3) {
			args = append(args, key())
		}
		return args
	case 9, 10, 11:
		args := []string{one(r, "BITFIELD", "BITFIELD", "BITFIELD_RO"), key()}
		for range r.IntN(4) {
			switch r.IntN(5) {
			case 0:
				args = append(args, "OVERFLOW", one(r, "WRAP", "SAT", "FAIL", "sat", "FOO"))
			case 1:
				args = append(args, "SET", field(), fieldOffset(), value())
			case 2, 3:
				args = append(args, "INCRBY", field(), fieldOffset(), value())
			default:
				args = append(args, "GET", field(), fieldOffset())
			}
		}
		if r.IntN(15) == 0 {
			args = args[:len(args)-1]
		}
		return args
	case 12:
		return []string{"SET", key(), one(r, "foobar", "\xff\xf0\x00", "\x00\xff\xf0", "", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "12")}
	}
	return []string{one(r, "GET", "DEL", "STRLEN"), key()}
}
