package ttlguard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
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
		"PERSIST k": "k leaves none", "RENAME a b": "b depends, a safe", "COPY a b": "b depends", "COPY a b DB 1": "b depends",
		"RESTORE k 0 x": "k leaves none", "RESTORE k 5 x": "k safe", "RESTORE k 5 x REPLACE": "k safe",
		"EXPIRE k 5": "k safe", "EXPIRE k 5 XX": "k safe", "EXPIRE k 0": "k safe",
		"XADD k * f v": "k depends", "XGROUP CREATE k g $": "", "XGROUP CREATE k g $ MKSTREAM": "k depends",
		"LMOVE a b LEFT RIGHT": "b depends", "EVAL s 2 a b c": "a depends, b depends",
		"GET k": "", "TTL k": "", "LPOP k": "",

		// Commands sent together are judged together.
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

		// Commands that the server refuses are not done, and those that it may refuse are perhaps not done.
		"SET k 1 EX 10 PX 10; INCR k":   "k depends",
		"SET k 1 EX 10 KEEPTTL; INCR k": "k depends",
		"SET k 1 NX XX EX 10; INCR k":   "k depends",
		"SET k 1 EX; INCR k":            "k depends",
		"SET k 1 EX 10 NEWER; INCR k":   "k depends",
		"SET k 1 EX 10 IFEQ 0; INCR k":  "k depends",
		"SET k 1 IFEQ 0":                "k leaves none",
		"SETEX k 10; INCR k":            "k depends",
		"SETEX k 10 v more; INCR k":     "k depends",
		"INCR k; EXPIRE k 5 NX LT":      "k depends",
		"INCR k; EXPIRE k 5 NEWER":      "k depends",
		"INCR k; EXPIRE k 5 EX 5":       "k depends",
		"INCR k; GETEX k EX 5 PX 5":     "k depends",
		"SET k v; GETEX k EX 5 PERSIST": "k leaves none",
		"DEL k; RESTORE k 5; INCR k":    "k leaves none",
		"MSETEX 1 k v":                  "k leaves none", "MSETEX 2 a 1 b 2 EX 5": "a safe, b safe", "MSETEX 1 k v EX 5 PX 5; INCR k": "k depends",
		"MSETEX 1 k v NX EX 5; INCR k": "k depends",

		// Other databases, and transactions that were not executed.
		"INCR k; SELECT 5; EXPIRE k 5":                          "k depends",
		"INCR k; EXPIRE k 5; SELECT 5; SET k v":                 "k leaves none",
		"SELECT 5; INCR k; EXPIRE k 5":                          "k safe",
		"SET a v EX 5; COPY a b DB 1 REPLACE; SELECT 1; INCR b": "a safe, b safe",
		"INCR k; MULTI; EXPIRE k 5; DISCARD":                    "k depends",
		"INCR k; MULTI; EXPIRE k 5":                             "k depends",
		"INCR k; MULTI; EXPIRE k 5; RESET":                      "k depends",
		"INCR k; MULTI; EXPIRE k 5; EXEC":                       "k depends", // if it was: EXECABORT
		"MULTI; SET k v EX 5; EXEC; INCR k":                     "k depends",
		"MULTI; SET k v; DISCARD":                               "",
		"MULTI; SET k v; EXEC":                                  "k leaves none",
		"MULTI; SELECT 5; DISCARD; INCR k; EXPIRE k 5":          "k safe",
		"INCR k; MULTI; SELECT 5; EXEC; EXPIRE k 5":             "k depends",
		"INCR k; EXPIRE k 5; EXEC; DISCARD; INCR k; MULTI":      "k safe",

		// Words that are no options where they stand.
		"SORT a BY w_* STORE d": "d leaves none", "SORT a BY store STORE d": "d leaves none", "SORT a GET store": "", "SORT a STORE c STORE d": "d leaves none",
		"SORT a LIMIT 0 5 GET # DESC ALPHA STORE d": "d leaves none", "GEORADIUSBYMEMBER a store 5 km STORE d": "d leaves none",
		"GEORADIUS a 1 1 5 km STORE c STOREDIST d": "d leaves none", "XGROUP CREATE mkstream g $": "", "RESTORE-ASKING k 0 x": "k leaves none",
	} {
		var got []string
		ttlguard.Judge(commands(line), func(key, verdict string) { got = append(got, key+" "+verdict) })
		if s := strings.Join(got, ", "); s != want {
			t.Errorf("%s: %s, want %s", line, s, want)
		}
	}
}

type marshaled string

func (m marshaled) MarshalBinary() ([]byte, error) { return []byte(m), nil }

// A key is known by what go-redis writes of it, whatever the program gave.
func TestKeysOfAllTypes(t *testing.T) {
	key, ctx := "cache:k", t.Context()
	for _, given := range []any{key, []byte(key), &key, marshaled(key), new(marshaled(key))} {
		rdb, _, found := guarded(t, ttlguard.Options{})
		if err := rdb.Do(ctx, "set", given, 1).Err(); !errors.Is(err, mayfly.ErrNoTTL) || len(*found) != 1 || (*found)[0].Key != key {
			t.Errorf("%T: %v, %v", given, err, *found)
		}
		seconds, d := int64(60), 60*time.Nanosecond // go-redis writes a Duration as its nanoseconds
		for _, ttl := range []any{60, &seconds, uint8(60), "60", float64(60), d, &d} {
			if err := rdb.Do(ctx, "set", given, 1, "EX", ttl).Err(); err != nil {
				t.Errorf("%T, EX as %T: %v", given, ttl, err)
			}
		}
	}
}
