package engine

import (
	"strconv"
)

// drawSortedSets draws a command of the sorted sets.
func drawSortedSets(r *dice) []string {
	key := func() string {
		if r.IntN(12) == 0 {
			return r.key("k", 3) // usually of another type
		}
		return r.key("z", 5)
	}
	keys := func() (some []string) {
		for range 1 + r.IntN(3) {
			some = append(some, key())
		}
		return some
	}
	members := func() (some []string) {
		for range 1 + r.IntN(5) {
			some = append(some, drawMember(r))
		}
		return some
	}
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	switch r.IntN(44) {
	case 0, 1, 2, 3, 4, 5, 6:
		args := []string{"ZADD", key()}
		for r.IntN(3) == 0 {
			args = append(args, pick("NX", "XX", "GT", "LT", "CH", "INCR", "ch", "FOO"))
		}
		n := 1 + r.IntN(6)
		if r.IntN(40) == 0 {
			n = 150
		}
		for range n {
			args = append(args, drawScore(r), drawMember(r))
		}
		return args
	case 7:
		return []string{"ZINCRBY", key(), drawScore(r), drawMember(r)}
	case 8, 9:
		return append([]string{"ZREM", key()}, members()...)
	case 10:
		return []string{"ZSCORE", key(), drawMember(r)}
	case 11:
		return append([]string{"ZMSCORE", key()}, members()...)
	case 12:
		return []string{"ZCARD", key()}
	case 13:
		return []string{"ZCOUNT", key(), drawScoreEnd(r), drawScoreEnd(r)}
	case 14:
		return []string{"ZLEXCOUNT", drawLexKey(r), drawLexEnd(r), drawLexEnd(r)}
	case 15:
		return drawOptional(r, []string{pick("ZRANK", "ZREVRANK"), key(), drawMember(r)}, pick("WITHSCORE", "withscore", "WITHSCORES"))
	case 16, 17, 18, 19:
		return drawRange(r, []string{"ZRANGE"}, key, true)
	case 20, 21:
		return drawRange(r, []string{"ZRANGESTORE", key()}, key, true)
	case 22:
		return drawRange(r, []string{"ZREVRANGE"}, key, false)
	case 23:
		return drawRange(r, []string{pick("ZRANGEBYSCORE", "ZREVRANGEBYSCORE")}, key, false)
	case 24:
		return drawRange(r, []string{pick("ZRANGEBYLEX", "ZREVRANGEBYLEX")}, key, false)
	case 25:
		return []string{"ZREMRANGEBYRANK", key(), drawRank(r), drawRank(r)}
	case 26:
		return []string{"ZREMRANGEBYSCORE", key(), drawScoreEnd(r), drawScoreEnd(r)}
	case 27:
		return []string{"ZREMRANGEBYLEX", drawLexKey(r), drawLexEnd(r), drawLexEnd(r)}
	case 28:
		return drawOptional(r, []string{pick("ZPOPMIN", "ZPOPMAX"), key()}, drawCount(r))
	case 29:
		args := append(drawCounted(r, []string{"ZMPOP"}, keys()), pick("MIN", "MAX", "min", "FOO"))
		if r.IntN(2) == 0 {
			args = append(args, "COUNT", drawCount(r))
		}
		return args
	case 30:
		return append(append([]string{pick("BZPOPMIN", "BZPOPMAX")}, keys()...), pick("0.001", "0.001", "-1", "x", "inf", "1e20"))
	case 31:
		args := append(drawCounted(r, []string{"BZMPOP", pick("0.001", "0.001", "-1", "x")}, keys()), pick("MIN", "MAX"))
		if r.IntN(2) == 0 {
			args = append(args, "COUNT", drawCount(r))
		}
		return args
	case 32:
		args := drawOptional(r, []string{"ZRANDMEMBER", key()}, drawCount(r))
		if len(args) == 3 && r.IntN(2) == 0 {
			args = append(args, pick("WITHSCORES", "withscores", "x"))
		}
		return args
	case 33, 34, 35:
		return drawCombination(r, drawCounted(r, []string{pick("ZUNION", "ZINTER", "ZDIFF")}, keys()), true)
	case 36, 37, 38:
		return drawCombination(r, drawCounted(r, []string{pick("ZUNIONSTORE", "ZINTERSTORE", "ZDIFFSTORE"), key()}, keys()), false)
	case 39:
		args := drawCounted(r, []string{"ZINTERCARD"}, keys())
		if r.IntN(2) == 0 {
			args = append(args, "LIMIT", drawCount(r))
		}
		return args
	case 40:
		return drawScan(r, "ZSCAN", key())
	case 41:
		return drawLife(r, key())
	case 42:
		return append([]string{"SADD", "k" + strconv.Itoa(r.IntN(3))}, members()...)
	}
	// All scores in this set are equal, so that ranges of members are defined.
	args := []string{"ZADD", "lex"}
	for _, m := range members() {
		args = append(args, "0", m)
	}
	return args
}

func drawScore(r *dice) string {
	switch r.IntN(6) {
	case 0, 1:
		return strconv.Itoa(r.IntN(9) - 3)
	case 2:
		return strconv.FormatFloat(float64(r.IntN(2000)-1000)/100, 'g', -1, 64)
	case 3:
		return strconv.FormatFloat(r.NormFloat64()*[]float64{1e-9, 1, 1e5, 1e15, 1e17, 1e20, 1e300}[r.IntN(7)], 'g', -1, 64)
	case 4:
		return []string{"inf", "-inf", "+inf", "Infinity", "1e10", "1e17", "9007199254740993", "4611686018427387904", "9223372036854775807", "1e21", "1e22",
			"0.1", "3.3", "1e-5", "1e-7", "123456789012345678", "-0", "0", "5e-324", "1.7976931348623157e308", "0x10", "-1e-4"}[r.IntN(22)]
	}
	if r.IntN(6) > 0 {
		return "1"
	}
	return []string{"nan", "x", "", " 1", "1 ", "1e400", "1e-400", "1_0", "(1", "--1"}[r.IntN(10)]
}

func drawScoreEnd(r *dice) string {
	switch r.IntN(5) {
	case 0:
		return "(" + drawScore(r)
	case 1:
		return []string{"-inf", "+inf"}[r.IntN(2)]
	}
	return drawScore(r)
}

func drawRank(r *dice) string {
	if r.IntN(20) == 0 {
		return []string{"x", "9223372036854775807", "-9223372036854775808", "1.5", ""}[r.IntN(5)]
	}
	return strconv.Itoa(r.IntN(16) - 6)
}

// drawLexKey draws the key whose scores are equal. With different scores, the replies of a large sorted set depend on Redis's random choices.
func drawLexKey(r *dice) string {
	if r.IntN(20) > 0 {
		return "lex"
	}
	return "nolex"
}

func drawLexEnd(r *dice) string {
	switch r.IntN(12) {
	case 0, 1:
		return "-"
	case 2, 3:
		return "+"
	case 4, 5, 6:
		return "(" + drawMember(r)
	case 7:
		return []string{"x", "", "--", "+x", "(", "["}[r.IntN(6)]
	}
	return "[" + drawMember(r)
}

// drawRange adds a key, two ends and options; all says that ZRANGE's options are allowed.
func drawRange(r *dice, args []string, key func() string, all bool) []string {
	by := []string{"", "BYSCORE", "BYLEX"}[r.IntN(3)]
	switch args[0] {
	case "ZREVRANGE":
		by = ""
	case "ZRANGEBYSCORE", "ZREVRANGEBYSCORE":
		by = "BYSCORE"
	case "ZRANGEBYLEX", "ZREVRANGEBYLEX":
		by = "BYLEX"
	}
	switch by {
	case "BYSCORE":
		args = append(args, key(), drawScoreEnd(r), drawScoreEnd(r))
	case "BYLEX":
		args = append(args, drawLexKey(r), drawLexEnd(r), drawLexEnd(r))
	default:
		args = append(args, key(), drawRank(r), drawRank(r))
	}
	if all && by != "" {
		args = append(args, by)
	}
	if all && r.IntN(2) == 0 {
		args = append(args, "REV")
	}
	if by == "" && r.IntN(20) == 0 || by != "" && r.IntN(2) == 0 {
		args = append(args, "LIMIT", drawRank(r), drawRank(r))
	}
	if by != "BYLEX" && args[0] != "ZRANGESTORE" && r.IntN(2) == 0 || r.IntN(20) == 0 {
		args = append(args, "WITHSCORES")
	}
	if r.IntN(30) == 0 {
		args = append(args, []string{"REV", "BYLEX", "BYSCORE", "LIMIT", "FOO"}[r.IntN(5)])
	}
	return args
}

// drawCombination adds the options of ZUNION and its relatives.
func drawCombination(r *dice, args []string, withScores bool) []string {
	if r.IntN(4) == 0 {
		args = append(args, "WEIGHTS")
		for range 1 + r.IntN(3) {
			args = append(args, drawScore(r))
		}
	}
	if r.IntN(3) == 0 {
		args = append(args, "AGGREGATE", []string{"SUM", "MIN", "MAX", "min", "AVG"}[r.IntN(5)])
	}
	if withScores && r.IntN(3) > 0 || r.IntN(30) == 0 {
		args = append(args, "WITHSCORES")
	}
	return args
}
