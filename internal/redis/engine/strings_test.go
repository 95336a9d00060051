package engine

import "testing"

func TestStringsAsRedis(t *testing.T) {
	play(t, Options{}, `
		SET k v                      +OK
		GET k                        "v"
		SET k w NX                   (nil)
		SET k w XX GET               "v"
		SET k 10 EX 100              +OK
		INCRBY k 5                   :15
		DECRBY k -9223372036854775808  -ERR decrement would overflow
		INCRBYFLOAT k 0.5            "15.5"
		INCR k                       -ERR value is not an integer or out of range
		INCRBYFLOAT k 1e20           "100000000000000000016"
		INCRBYFLOAT k 1e999999999    -ERR value is not a valid float
		INCRBYFLOAT k -inf           -ERR increment would produce NaN or Infinity
		SET k abc                    +OK
		APPEND k def                 :6
		GETRANGE k -3 -1             "def"
		GETRANGE k 5 2               ""
		SETRANGE k 8 x               :9
		GET k                        "abcdef\x00\x00x"
		SETRANGE k 9223372036854775807 x  -ERR string exceeds maximum allowed size (proto-max-bulk-len)
		SETRANGE k -1 x              -ERR offset is out of range
		SETRANGE none 5 ""           :0
		MSET a 1 b                   -ERR wrong number of arguments for 'mset' command
		MSET a ohmytext b mynewtext  +OK
		MGET a b c                   ["ohmytext", "mynewtext", (nil)]
		LCS a b                      "mytext"
		LCS a b LEN                  :6
		LCS a b IDX MINMATCHLEN 4 WITHMATCHLEN  ["matches", [[[:4, :7], [:5, :8], :4]], "len", :6]
		LCS a b IDX LEN              -ERR If you want both the length and indexes, please just use IDX.
		GETDEL a                     "ohmytext"
		GETDEL a                     (nil)
		GETSET b x                   "mynewtext"
		GETEX b PX 10                "x"
		@sleep 10
		GET b                        "x"
		@sleep 1
		GET b                        (nil)
	`)
}
