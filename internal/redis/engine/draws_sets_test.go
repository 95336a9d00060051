package engine

import (
	"strconv"
)

// drawSets returns a random command about sets, mostly with correct arguments, and with few keys and members, so that they meet.
func drawSets(r *dice) []string {
	key := func() string { return r.key("k", 6) }
	keys := func() (some []string) {
		for range 1 + r.IntN(4) {
			some = append(some, key())
		}
		return some
	}
	members := func() (some []string) {
		n := 1 + r.IntN(6)
		if r.IntN(40) == 0 {
			n = 150
		}
		for range n {
			some = append(some, drawMember(r))
		}
		return some
	}
	switch r.IntN(26) {
	case 0, 1, 2, 3, 4, 5:
		return append([]string{"SADD", key()}, members()...)
	case 6, 7:
		return append([]string{"SREM", key()}, members()...)
	case 8:
		return []string{"SISMEMBER", key(), drawMember(r)}
	case 9:
		return append([]string{"SMISMEMBER", key()}, members()...)
	case 10:
		return []string{"SMEMBERS", key()}
	case 11:
		return []string{"SCARD", key()}
	case 12:
		return drawOptional(r, []string{"SPOP", key()}, drawCount(r))
	case 13:
		return drawOptional(r, []string{"SRANDMEMBER", key()}, drawCount(r))
	case 14:
		return []string{"SMOVE", key(), key(), drawMember(r)}
	case 15:
		return append([]string{"SINTER"}, keys()...)
	case 16:
		return append([]string{"SUNION"}, keys()...)
	case 17:
		return append([]string{"SDIFF"}, keys()...)
	case 18:
		return append([]string{"SINTERSTORE", key()}, keys()...)
	case 19:
		return append([]string{"SUNIONSTORE", key()}, keys()...)
	case 20:
		return append([]string{"SDIFFSTORE", key()}, keys()...)
	case 21:
		args := drawCounted(r, []string{"SINTERCARD"}, keys())
		if r.IntN(2) == 0 {
			args = append(args, "LIMIT", drawCount(r))
		}
		return args
	case 22:
		return drawScan(r, "SSCAN", key())
	case 23:
		return drawLife(r, key())
	case 24:
		return []string{"SET", key(), "string"}
	}
	return []string{"DEL", key()}
}

// drawMember draws a member: an integer or not, occasionally a long one.
func drawMember(r *dice) string {
	switch r.IntN(8) {
	case 0, 1, 2:
		return strconv.Itoa(r.IntN(12) - 2)
	case 3:
		return strconv.FormatInt([]int64{1 << 62, -1 << 63, 1<<31 - 1, 40000, 1e6}[r.IntN(5)], 10)
	case 4:
		return []string{"", "-0", "01", "+1", "1.5", "a long member indeed", "with\x00zero", "9223372036854775808"}[r.IntN(8)]
	case 5:
		return "m" + strconv.Itoa(r.IntN(200))
	}
	return string(rune('a' + r.IntN(10)))
}

// drawCount draws a count, usually a small one.
func drawCount(r *dice) string {
	if r.IntN(4) > 0 {
		return strconv.Itoa(r.IntN(9))
	}
	return []string{"-1", "-5", "100", "x", "1.5", "", "9223372036854775807", "-9223372036854775808", "9223372036854775808"}[r.IntN(9)]
}

// drawOptional may add an argument, occasionally one too many.
func drawOptional(r *dice, args []string, arg string) []string {
	switch n := r.IntN(30); {
	case n == 0:
		return append(args, arg, "x")
	case n < 20:
		return append(args, arg)
	}
	return args
}

// drawCounted adds the number of keys, occasionally a wrong one, and the keys.
func drawCounted(r *dice, args, keys []string) []string {
	n := strconv.Itoa(len(keys))
	if r.IntN(20) == 0 {
		n = []string{"0", "-1", "9", "x", "2", "1"}[r.IntN(6)]
	}
	return append(append(args, n), keys...)
}

// drawScan draws the scan of a small collection; with a large one only the end of the scan is defined.
func drawScan(r *dice, command, key string) []string {
	args := []string{command, key, []string{"0", "0", "0", "0", "0", "x", " 0", "1a", "-1"}[r.IntN(9)]}
	for r.IntN(2) == 0 {
		switch r.IntN(8) {
		case 0, 1, 2:
			args = append(args, "MATCH", []string{"*", "a*", "[a-d]", "?", "m1*", "*\\*", "[^a]*"}[r.IntN(7)])
		case 3, 4, 5:
			args = append(args, "COUNT", []string{"1000", "5000", "0", "-1", "x"}[r.IntN(5)])
		case 6:
			args = append(args, "NOVALUES")
		case 7:
			args = append(args, "TYPE")
		}
	}
	return args
}

// drawLife draws a command about the lifetime of a key.
func drawLife(r *dice, key string) []string {
	switch r.IntN(6) {
	case 0, 1, 2:
		return []string{"EXPIRE", key, strconv.Itoa(r.seconds())}
	case 3:
		return []string{"PERSIST", key}
	case 4:
		return []string{"EXPIRE", key, "-1"}
	}
	return []string{"TTL", key}
}
