package engine

import (
	"strconv"
)

// drawHashes returns a random command about hashes. Keys and fields are few, so that commands find what earlier ones left.
func drawHashes(r *dice) []string {
	key := r.key("h", 3)
	field := func() string { return r.key("f", 5) }
	fields := func() []string {
		list := make([]string, 1+r.IntN(3))
		for i := range list {
			list[i] = field()
		}
		return list
	}
	value := func() string {
		return one(r, "", "a", "7", "-3", "1.5", "9223372036854775807", "-9223372036854775808", "x y", " 1", "1e3", long(r))
	}
	pairs := func() (list []string) {
		for _, f := range fields() {
			list = append(list, f, value())
		}
		return list
	}
	named := func(head ...string) []string {
		list := fields()
		n := strconv.Itoa(len(list))
		if r.IntN(20) == 0 {
			n = one(r, "0", "-1", "x", "4", "9223372036854775807", "")
		}
		word := one(r, "FIELDS", "FIELDS", "fields")
		if r.IntN(60) == 0 {
			word = "FIELD"
		}
		return cat(head, []string{word, n}, list)
	}
	switch r.IntN(34) {
	case 0, 1:
		return cat([]string{"HSET", key}, pairs())
	case 2:
		return cat([]string{"HMSET", key}, pairs())
	case 3:
		return []string{"HSETNX", key, field(), value()}
	case 4:
		return []string{"HGET", key, field()}
	case 5:
		return cat([]string{"HMGET", key}, fields())
	case 6:
		return []string{one(r, "HGETALL", "HKEYS", "HVALS", "HLEN"), key}
	case 7:
		return []string{one(r, "HSTRLEN", "HEXISTS"), key, field()}
	case 8:
		return cat([]string{"HDEL", key}, fields())
	case 9, 10:
		return []string{"HINCRBY", key, field(), one(r, "1", "-1", "9223372036854775807", "-9223372036854775808", "x", "1.0", "")}
	case 11, 12:
		return []string{"HINCRBYFLOAT", key, field(), one(r, "1", "0.1", "-2.5", "1e3", "3.0e-2", "inf", "-inf", "nan", "x", "", "100000000000000000")}
	case 13:
		return []string{"HRANDFIELD", key}
	case 14:
		return cat([]string{"HRANDFIELD", key, one(r, "1", "3", "100", "-2", "-7", "0", "x", "-9223372036854775808", "9223372036854775807")},
			some(r, "WITHVALUES", "withvalues", "FOO"))
	case 15:
		return cat([]string{"HSCAN", key, one(r, "0", "0", "0", "0", "x", "-1", "+0")}, some(r, "NOVALUES", "FOO"), pair(r, "MATCH", "f*", "[f]1", "", "*"),
			pair(r, "COUNT", "1000", "5000", "1000", "0", "x"))
	case 16, 17:
		return named(cat([]string{"HEXPIRE", key, seconds(r)}, some(r, "NX", "XX", "GT", "LT", "FOO"))...)
	case 18, 19:
		return named(cat([]string{"HPEXPIRE", key, milliseconds(r)}, some(r, "NX", "XX", "GT", "LT", "lt"))...)
	case 20:
		return named(cat([]string{"HEXPIREAT", key, unixSeconds(r)}, some(r, "NX", "XX", "GT", "LT"))...)
	case 21, 22:
		return named(cat([]string{"HPEXPIREAT", key, unixMilliseconds(r)}, some(r, "NX", "XX", "GT", "LT"))...)
	case 23, 24:
		return named(one(r, "HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME"), key)
	case 25:
		return named("HPERSIST", key)
	case 26, 27:
		return named(cat([]string{"HGETEX", key}, lifetime(r, "PERSIST"))...)
	case 28:
		return named("HGETDEL", key)
	case 29, 30:
		list := pairs()
		n := strconv.Itoa(len(list) / 2)
		if r.IntN(20) == 0 {
			n = one(r, "0", "-1", "x", "4", "9223372036854775807")
		}
		options := cat(some(r, "FNX", "FXX"), lifetime(r, "KEEPTTL"))
		if r.IntN(20) == 0 {
			options = append(options, one(r, "KEEPTTL", "FXX", "EX", "FOO"))
		}
		return cat([]string{"HSETEX", key}, options, []string{"FIELDS", n}, list)
	case 31:
		return []string{"OBJECT", "ENCODING", key}
	case 32:
		switch r.IntN(8) {
		case 0:
			return []string{"SET", key, "string"}
		case 1:
			return []string{"RENAME", key, "h0"}
		case 2:
			return []string{"COPY", key, "h1", "REPLACE"}
		case 3:
			return []string{"EXPIRE", key, strconv.Itoa(r.seconds())}
		case 4:
			return []string{"TTL", key}
		case 5:
			return []string{"PERSIST", key}
		case 6:
			return []string{"TYPE", key}
		}
		return []string{"DEL", key}
	}
	// Too few arguments for any command.
	name := one(r, "HSET", "HGET", "HDEL", "HEXPIRE", "HTTL", "HGETEX", "HSETEX", "HGETDEL", "HSCAN", "HINCRBY", "HRANDFIELD")
	return cat([]string{name, key}, []string{field(), "1", "FIELDS"}[:r.IntN(4)])
}
