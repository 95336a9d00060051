package engine

// drawServer draws commands about the server and the connection.
func drawServer(r *dice) []string {
	word := func() string { return one(r, "a", "b", "", "a b", "\n") }
	limit := func() string {
		return one(r, "hash-max-listpack-entries", "hash-max-listpack-value", "hash-max-ziplist-entries", "zset-max-listpack-entries", "zset-max-listpack-value",
			"zset-max-ziplist-value", "HASH-max-listpack-value")
	}
	number := func() string {
		return one(r, "0", "1", "2", "8", "128", "512", "-1", "-2", "-5", "x", "", "9223372036854775808", "1kb")
	}
	switch r.IntN(22) {
	case 0:
		return cat([]string{"CONFIG", "GET", one(r, limit(), limit(), "list-max-listpack-size", "list-max-ziplist-size", "set-max-intset-entries", "maxmemory", "maxmemory-policy", "hz", "no-such", "maxmemory-samples")},
			some(r, limit(), "lfu-*", "maxmemory-p*"))
	case 1:
		return []string{"CONFIG", "SET", limit(), number()}
	case 2:
		name := one(r, "maxmemory-samples", "active-expire-effort", "hz", "lfu-log-factor", "lfu-decay-time", "tracking-table-max-keys", "busy-reply-threshold")
		return []string{"CONFIG", "SET", name, one(r, "5", "10", "100", "x", "", "-1", "0", "65")}
	case 3:
		return []string{"CONFIG", "SET", "maxmemory-policy", one(r, "allkeys-lru", "volatile-lfu", "noeviction", "allkeys-LFU", "x", "")}
	case 4:
		return cat([]string{"CONFIG", "SET", one(r, "maxmemory", "no-such", "set-max-intset-entries", "databases"), one(r, "x", "-1", "1q", "?")}, some(r, "hz", "hz 10"))
	case 5:
		return []string{"CONFIG", one(r, "RESETSTAT", "GET", "SET", "FOO")}
	case 6, 7:
		for {
			if f := &families[r.IntN(len(families))]; !f.mixed || f.name == "scripts" {
				return cat([]string{"COMMAND", "GETKEYS"}, f.draw(r))
			}
		}
	case 8:
		return cat([]string{"COMMAND", one(r, "GETKEYS", "FOO")}, some(r, "nosuch", "SET", "PING"))
	case 9:
		return cat([]string{"CLIENT", one(r, "SETNAME", "GETNAME", "SETNAME")}, some(r, "a", "b", "", "a b", "\n", "\x7f"))
	case 10:
		return []string{"CLIENT", one(r, "NO-TOUCH", "NO-EVICT"), one(r, "ON", "OFF", "on", "x")}
	case 11:
		return cat([]string{"CLIENT", one(r, "SETINFO", "SETINFO", "FOO", "GETREDIR", "TRACKINGINFO")}, some(r, "LIB-NAME", "lib-ver", "x"), some(r, word()))
	case 12:
		return []string{"CLIENT", "SETINFO", one(r, "LIB-NAME", "LIB-VER"), word()}
	case 13:
		return []string{"CLIENT", one(r, "UNBLOCK", "CACHING"), one(r, "99999", "x", "YES", "NO", "-1")}
	case 14:
		return []string{"CLIENT", one(r, "TRACKINGINFO", "GETREDIR", "GETNAME")}
	case 15:
		return cat([]string{one(r, "PUBLISH", "SPUBLISH", "PUBLISH"), one(r, "channel", "end!")}, some(r, "m"), some(r, "x"))
	case 16:
		return cat([]string{"PUBSUB", one(r, "CHANNELS", "NUMPAT", "NUMSUB", "SHARDCHANNELS", "SHARDNUMSUB", "FOO")}, some(r, "*", "a"), some(r, "b"))
	case 17:
		return cat([]string{"MEMORY", "USAGE", one(r, shared...)}, pair(r, "SAMPLES", "0", "5", "-1", "x"))
	case 20:
		switch r.IntN(4) {
		case 0: // a pause of any length would hold up the comparison
			return cat([]string{"CLIENT", "PAUSE", one(r, "0", "0", "x", "-1", "9223372036854775807")}, some(r, "WRITE", "all", "x"), some(r, "x"))
		case 1:
			return cat([]string{"CLIENT", "UNPAUSE"}, some(r, "x"))
		case 2:
			return cat([]string{one(r, "REPLICAOF", "SLAVEOF"), one(r, "NO", "no"), "ONE"}, some(r, "x"))
		}
		return []string{"WAIT", one(r, "0", "0", "-1", "x"), one(r, "0", "1", "-1", "x")}
	case 21:
		return cat([]string{"ROLE"}, some(r, "x"))
	case 18:
		return []string{"OBJECT", one(r, "ENCODING", "REFCOUNT", "FREQ", "IDLETIME"), one(r, shared...)}
	}
	return cat([]string{one(r, "PING", "ECHO", "TIME", "DBSIZE", "NOSUCH", "RESET")}, some(r, word()), some(r, word()))
}
