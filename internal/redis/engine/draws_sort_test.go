package engine

import (
	"strconv"
)

// drawSort draws SORT, or a command that makes what it sorts or sorts by.
func drawSort(r *dice) []string {
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	number := func() string { return strconv.Itoa(r.IntN(12)) }
	sources := []string{"list", "set", "zset", "none", "dst", "w_1"}
	switch r.IntN(16) {
	case 0:
		return []string{"RPUSH", "list", pick(number(), number(), "1.5", "-1", "1e3", "01", "", "x", "-inf", "a\x00b", "a\x00a")}
	case 1:
		return []string{"LPOP", "list"}
	case 2:
		return []string{"SADD", "set", pick(number(), number(), drawMember(r))}
	case 3:
		return []string{"ZADD", "zset", drawScore(r), pick(number(), number(), drawMember(r))}
	case 4:
		return []string{"SREM", "set", number()}
	case 5:
		return []string{"SET", "w_" + number(), pick(number(), number(), number(), "1.25", "", "b", "B", "inf", "nan")}
	case 6:
		return []string{"HSET", "h_" + number(), pick("f", "g"), pick(number(), number(), "c", "-3.5")}
	case 7:
		return pickLife(r, pick("list", "dst", "w_1", "h_2"))
	}
	return drawSorting(r, pick, sources)
}

func drawSorting(r *dice, pick func(...string) string, sources []string) []string {
	args := []string{pick("SORT", "SORT", "sort", "SORT_RO"), sources[r.IntN(len(sources))]}
	if r.IntN(8) > 0 {
		args[1] = pick("list", "set", "zset")
	}
	for r.IntN(5) < 3 {
		switch r.IntN(10) {
		case 0, 1, 2:
			args = append(args, "BY", pick("w_*", "w_*", "h_*->f", "nosort", "*", "h_*->", "#", "x*->f*"))
		case 3, 4:
			args = append(args, "GET", pick("#", "w_*", "h_*->g", "h_*->", "w_1", "*->f", ""))
		case 5:
			args = append(args, "LIMIT", drawRank(r), drawRank(r))
		case 6:
			args = append(args, pick("DESC", "ASC", "desc"))
		case 7, 8:
			args = append(args, pick("ALPHA", "ALPHA", "ALPHA", "FOO", "BY", "LIMIT"))
		case 9:
			args = append(args, "STORE", pick("dst", "dst", "dst", "list"))
		}
	}
	return args
}

// pickLife is drawLife without the commands that often end the key.
func pickLife(r *dice, key string) []string {
	if r.IntN(4) == 0 {
		return []string{"DEL", key}
	}
	return drawLife(r, key)
}
