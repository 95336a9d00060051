package engine

import (
	"strconv"
	"strings"
)

// drawLists returns a random command about lists. The elements are few, so that LREM, LPOS and LINSERT find some, but of all sizes, so that
// lists cross the limits of their forms in both directions.
func drawLists(r *dice) []string {
	key := func() string { return r.key("l", 3) }
	element := func() string {
		switch r.IntN(12) {
		case 0:
			return strings.Repeat("m", 60+r.IntN(10))
		case 1:
			return strings.Repeat("k", 1000+r.IntN(3))
		case 2:
			return strings.Repeat("g", oneOf(r, 126, 4000, 4095, 4096, 8170, 8192, 8193, 9000))
		}
		return one(r, "a", "b", "c", "", "7", "-1", "127", "128", "-4097", "100000", "3000000000", "9223372036854775807", "007")
	}
	elements := func() []string {
		list := make([]string, 1+r.IntN(4))
		for i := range list {
			list[i] = element()
		}
		return list
	}
	end := func() string {
		if r.IntN(30) == 0 {
			return "MIDDLE"
		}
		return one(r, "LEFT", "RIGHT", "left")
	}
	index := func() string {
		if r.IntN(10) == 0 {
			return one(r, "x", "", "1.0", "9223372036854775807", "-9223372036854775808", "9223372036854775808")
		}
		return strconv.Itoa(r.IntN(12) - 6)
	}
	count := func() string {
		if r.IntN(6) == 0 {
			return one(r, "-1", "x", "9223372036854775807", "-9223372036854775807", "-9223372036854775808", "9223372036854775808")
		}
		return strconv.Itoa(r.IntN(4))
	}
	// Either a list, so that a blocking command need not wait, or a timeout that is refused or over at once.
	timeout := func() string {
		return one(r, "0.001", "0.001", "0.001", "0.001", "-1", "x", "", "1e30", "inf", "-inf", "nan")
	}
	severalKeys := func() (n string, keys []string) {
		for range 1 + r.IntN(2) {
			keys = append(keys, key())
		}
		n = strconv.Itoa(len(keys))
		if r.IntN(12) == 0 {
			n = one(r, "0", "-1", "x", "3", "9223372036854775807")
		}
		return n, keys
	}
	switch r.IntN(30) {
	case 0, 1, 2:
		return cat([]string{"LPUSH", key()}, elements())
	case 3, 4, 5:
		return cat([]string{"RPUSH", key()}, elements())
	case 6:
		return cat([]string{one(r, "LPUSHX", "RPUSHX"), key()}, elements())
	case 7, 8:
		return []string{one(r, "LPOP", "RPOP"), key()}
	case 9:
		return []string{one(r, "LPOP", "RPOP"), key(), count()}
	case 10:
		return []string{"LLEN", key()}
	case 11:
		return []string{"LINDEX", key(), index()}
	case 12, 13:
		return []string{"LSET", key(), index(), element()}
	case 14:
		return []string{"LRANGE", key(), index(), index()}
	case 15:
		return []string{"LTRIM", key(), index(), index()}
	case 16:
		return []string{"LREM", key(), count(), element()}
	case 17, 18, 19:
		return []string{"LINSERT", key(), one(r, "BEFORE", "AFTER", "after", "BEFORE", "AFTER", "BESIDE"), element(), element()}
	case 20, 21:
		return cat([]string{"LPOS", key(), element()}, pair(r, "RANK", "1", "-1", "2", "-3", "0", "x", "-9223372036854775808"),
			pair(r, "COUNT", count(), "0"), pair(r, "MAXLEN", count(), "3", "0"))
	case 22:
		return []string{"LMOVE", key(), key(), end(), end()}
	case 23:
		return []string{"RPOPLPUSH", key(), key()}
	case 24:
		n, keys := severalKeys()
		return cat([]string{"LMPOP", n}, keys, []string{end()}, pair(r, "COUNT", count(), "1", "2", "10"))
	case 25:
		return []string{one(r, "BLPOP", "BRPOP"), key(), key(), timeout()}
	case 26:
		return []string{"BLMOVE", key(), key(), end(), end(), timeout()}
	case 27:
		if r.IntN(2) == 0 {
			return []string{"BRPOPLPUSH", key(), key(), timeout()}
		}
		n, keys := severalKeys()
		return cat([]string{"BLMPOP", timeout(), n}, keys, []string{end()}, pair(r, "COUNT", count(), "2"))
	case 28:
		switch r.IntN(12) {
		case 0:
			return []string{"SET", key(), "string"}
		case 1:
			return []string{"COPY", key(), key(), "REPLACE"}
		case 2:
			return []string{"RENAME", key(), key()}
		case 3:
			return []string{"DEL", key()}
		case 4:
			return []string{"PEXPIRE", key(), r.moment()}
		case 5:
			return []string{"TYPE", key()}
		}
		return []string{"DEL", key()}
	}
	return []string{"OBJECT", "ENCODING", key()}
}

func oneOf(r *dice, numbers ...int) int { return numbers[r.IntN(len(numbers))] }
