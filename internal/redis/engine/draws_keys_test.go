package engine

import (
	"strconv"
)

// drawKeys returns a random command about keys and their deadlines.
func drawKeys(r *dice) []string {
	key := func() string { return r.key("k", 5) }
	keys := func() (list []string) {
		for range 1 + r.IntN(4) {
			list = append(list, key())
		}
		return list
	}
	condition := func() []string {
		return cat(some(r, "NX", "XX", "GT", "LT", "nx", "FOO"), some(r, "NX", "XX", "GT", "LT"))
	}
	database := func() string { return one(r, "0", "1", "1", "2", "16", "-1", "x", "", "99999999999") }
	switch r.IntN(30) {
	case 0, 1, 2:
		return cat([]string{"SET", key(), one(r, "v", "10", "w")}, lifetime(r, "KEEPTTL"))
	case 3:
		return []string{"RPUSH", key(), "a"}
	case 4:
		return []string{"SADD", key(), "1"}
	case 5:
		return []string{"HSET", key(), "f", "v"}
	case 6:
		return []string{"ZADD", key(), "1", "a"}
	case 7, 8:
		return cat([]string{"EXPIRE", key(), seconds(r)}, condition())
	case 9, 10:
		return cat([]string{"PEXPIRE", key(), milliseconds(r)}, condition())
	case 11:
		return cat([]string{"EXPIREAT", key(), unixSeconds(r)}, condition())
	case 12:
		return cat([]string{"PEXPIREAT", key(), unixMilliseconds(r)}, condition())
	case 13, 14:
		return []string{one(r, "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"), key()}
	case 15:
		return []string{"PERSIST", key()}
	case 16:
		return cat([]string{one(r, "DEL", "UNLINK", "EXISTS", "TOUCH")}, keys())
	case 17:
		return []string{"TYPE", key()}
	case 18, 19:
		return []string{one(r, "RENAME", "RENAMENX"), key(), key()}
	case 20, 21:
		return cat([]string{"COPY", key(), key()}, pair(r, "DB", database()), some(r, "REPLACE", "replace", "FOO", "DB"))
	case 22:
		return []string{"MOVE", key(), database()}
	case 23:
		return []string{"OBJECT", one(r, "ENCODING", "REFCOUNT", "FREQ", "IDLETIME", "FOO"), key()}
	case 24:
		return []string{one(r, "PING", "ECHO"), one(r, "0", "a b", "")}
	case 25:
		if r.IntN(3) == 0 {
			return cat([]string{one(r, "FLUSHDB", "FLUSHALL")}, some(r, "ASYNC", "SYNC", "FOO"))
		}
		return []string{"DBSIZE"}
	case 26:
		return []string{"SWAPDB", one(r, "0", "1", "x", "16"), one(r, "0", "1", "2", "x", "-1")}
	case 27:
		switch r.IntN(4) {
		case 0:
			return []string{"KEYS", one(r, "*", "k?", "k[1-3]", "[^k]*", "x")}
		case 1:
			return cat([]string{"SCAN", one(r, "0", "0", "x", "-1", "+0", " 0", "")}, pair(r, "COUNT", "1000", "0", "x", "-1"), pair(r, "MATCH", "k*", "k[12]"),
				pair(r, "TYPE", "string", "LIST", "zset", "foo"), some(r, "FOO", "NOVALUES"))
		case 2:
			return []string{"RANDOMKEY"}
		}
		return []string{"DBSIZE"}
	case 28:
		return cat([]string{"MEMORY"}, []string{"FOO", key(), "SAMPLES", "x"}[:r.IntN(4)])
	}
	name := one(r, "EXPIRE", "TTL", "RENAME", "COPY", "MOVE", "SCAN", "OBJECT", "TYPE", "PERSIST", "NOSUCH", "RESTORE", "KEYS", "DBSIZE")
	return cat([]string{name}, []string{key(), "7000", "8000", "9000"}[:r.IntN(5)])
}

// drawTransactions returns a command of drawKeys, or one that opens, watches, ends or aborts a transaction, or changes the database.
func drawTransactions(r *dice) []string {
	switch r.IntN(10) {
	case 0:
		return []string{"MULTI"}
	case 1:
		return []string{"EXEC"}
	case 2:
		return []string{one(r, "DISCARD", "UNWATCH", "EXEC", "QUEUED", "RESET", "MULTI")}
	case 3:
		return []string{"WATCH", "k" + strconv.Itoa(r.IntN(5)), "k" + strconv.Itoa(r.IntN(5))}
	case 4:
		return []string{"SELECT", one(r, "0", "0", "1", "16", "-1", "x")}
	}
	return drawKeys(r)
}
