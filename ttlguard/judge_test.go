package ttlguard_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/ttlguard"
)

// commands are lines, one command each.
func commands(lines string) (cmds []redis.Cmder) {
	for line := range strings.SplitSeq(lines, ";") {
		var args []any
		for _, word := range strings.Fields(line) {
			args = append(args, word)
		}
		cmds = append(cmds, redis.NewCmd(context.Background(), args...))
	}
	return cmds
}

func TestVerdicts(t *testing.T) {
	for line, want := range map[string]string{
		// The guide's correct and incorrect lines.
		"SETEX k 3600 v": "k safe", "SET k v EX 3600": "k safe", "PSETEX k 60000 v": "k safe", "SET k v": "k leaves none",

		"SET k v KEEPTTL": "k depends", "SET k v NX": "k leaves none", "SET k v NX PX 5": "k safe", "SET k v XX EX 5": "k safe",
		"SET k v EXAT 99999999999": "k safe", "SET k v GET EX 5": "k safe", "SET k v EX 0": "k safe", "SETNX k v": "k leaves none",
		"GETSET k v": "k leaves none", "MSET a 1 b 2": "a leaves none, b leaves none", "MSETNX a 1": "a leaves none",
		"APPEND k v": "k depends", "INCR k": "k depends", "SETRANGE k 0 v": "k depends",
		"GETDEL k": "", "GETEX k": "", "GETEX k EX 5": "k safe", "GETEX k PERSIST": "k leaves none",
		"DEL a b": "a safe, b safe", "UNLINK a": "a safe",

		// The documentation: DEL, SET, GETSET and all *STORE clear the timeout; INCR, LPUSH, HSET leave it; PERSIST takes it;
		// RENAME hands it on.
		"SUNIONSTORE d a b": "d leaves none", "ZRANGESTORE d a 0 1": "d leaves none", "SORT a STORE d": "d leaves none",
		"SORT a": "", "BITOP AND d a b": "d leaves none", "PFMERGE d a": "d depends", "GEOSEARCHSTORE d a": "d leaves none",
		"LPUSH k v": "k depends", "HSET k f v": "k depends", "HSETEX k EX 5 FIELDS 1 f v": "k depends",
		"PERSIST k": "k leaves none", "RENAME a b": "b depends, a safe", "COPY a b": "b depends", "COPY a b DB 1": "",
		"RESTORE k 0 x": "k leaves none", "RESTORE k 5 x": "k safe", "RESTORE k 5 x REPLACE": "k safe",
		"EXPIRE k 5": "k safe", "EXPIRE k 5 XX": "k safe", "EXPIRE k 0": "k safe",
		"XADD k * f v": "k depends", "XGROUP CREATE k g $": "", "XGROUP CREATE k g $ MKSTREAM": "k depends",
		"LMOVE a b LEFT RIGHT": "b depends", "EVAL s 2 a b c": "a depends, b depends",
		"GET k": "", "TTL k": "", "LPOP k": "",

		// What is sent together counts together.
		"RPUSH k v; EXPIRE k 5":                           "k safe",
		"MULTI; RPUSH k v; LTRIM k 0 9; EXPIRE k 5; EXEC": "k safe",
		"EXPIRE k 5; RPUSH k v":                           "k depends",
		"SET k v; EXPIRE k 5":                             "k safe",
		"SET k v EX 5; SET k v":                           "k leaves none",
		"SET k v EX 5; INCR k":                            "k safe",
		"SET k v EX 5; DEL k; INCR k":                     "k leaves none",
		"SET k v EX 5; PERSIST k":                         "k leaves none",
		"DEL k; EXPIRE k 5; INCR k":                       "k leaves none",
		"SET k v; EXPIRE k 5 GT":                          "k leaves none",
		"SET k v; EXPIRE k 5 LT":                          "k safe",
		"SET k v; EXPIRE k 99999999999999999":             "k leaves none",
		"SET a v EX 5; RENAME a b":                        "a safe, b safe",
		"SET a v; RENAME a b":                             "a safe, b leaves none",
		"SET b v; RENAME a b":                             "b leaves none, a safe",
		"SET b v; COPY a b":                               "b leaves none",
		"SET a v EX 5; SET b v; COPY a b":                 "a safe, b leaves none",
		"SET a v EX 5; SET b v; COPY a b REPLACE":         "a safe, b safe",
		"SADD k v; EXPIRE k 5; SREM k v; SADD k v":        "k depends",
		"SET k v EXAT 1; INCR k":                          "k depends",
		"SET a v EX 5; FLUSHALL; INCR a":                  "a depends",
		"SET a v EX 0; INCR a":                            "a depends",
	} {
		var got []string
		for _, j := range ttlguard.Judge(commands(line)) {
			got = append(got, fmt.Sprint(j.Key, " ", j.Verdict))
		}
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", line, s, want)
		}
	}
}
