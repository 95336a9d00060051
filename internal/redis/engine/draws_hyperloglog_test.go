package engine

import (
	"strconv"
)

// drawHyperLogLogs returns a random command about HyperLogLogs.
func drawHyperLogLogs(r *dice) []string {
	key := func() string { return r.key("p", 4) }
	switch r.IntN(12) {
	case 0, 1, 2, 3, 4:
		args := []string{"PFADD", key()}
		for range r.IntN(4) * r.IntN(60) {
			args = append(args, strconv.Itoa(r.IntN(50000)))
		}
		return args
	case 5, 6:
		return []string{"PFCOUNT", key()}
	case 7:
		return []string{"PFCOUNT", key(), key(), key()}
	case 8:
		return []string{"PFMERGE", key(), key(), key()}
	case 9:
		return drawLife(r, key())
	case 10:
		if r.IntN(10) > 0 {
			return []string{"PFCOUNT", key(), key()}
		}
		return []string{"SET", key(), []string{"x", "HYLL", "HYLL\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x80\x00", "HYLLxxxxxxxxxxxxxxxx"}[r.IntN(4)]}
	}
	if r.IntN(10) > 0 {
		return []string{"GET", key()}
	}
	return []string{"DEL", key()}
}
