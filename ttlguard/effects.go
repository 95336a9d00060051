package ttlguard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// words are a command as it was sent.
type words []any

// text returns a word as text.
func (w words) text(i int) string {
	if i >= len(w) {
		return ""
	}
	switch word := w[i].(type) {
	case string:
		return word
	case []byte:
		return string(word)
	case int:
		return strconv.Itoa(word)
	case int64:
		return strconv.FormatInt(word, 10)
	}
	return fmt.Sprint(w[i])
}

// number returns a word as a number, and reports false if it is none.
func (w words) number(i int) (int64, bool) {
	n, err := strconv.ParseInt(w.text(i), 10, 64)
	return n, err == nil && n < beyond
}

// beyond is greater than any time that Redis accepts: 100,000 years in milliseconds.
const beyond = 1 << 52

// find returns where one of options stands, from i on; 0 if nowhere.
func (w words) find(i int, options ...string) int {
	for ; i < len(w); i++ {
		if slices.ContainsFunc(options, func(o string) bool { return strings.EqualFold(w.text(i), o) }) {
			return i
		}
	}
	return 0
}

// effect says what a command does to its keys.
type effect func(w words, r *ruling)

// effects are the commands that can create a key, or take its TTL, or give it one. Whatever is not here reads, or removes parts
// of what is there, or alters what must be there already: none of that leaves a key without an end that had one.
var effects = map[string]effect{
	// Replaces the value, and the TTL with it.
	"set": set, "setnx": func(w words, r *ruling) { r.createdWith(w.text(1), none) },
	"setex": timed, "psetex": timed,
	"getset": storesFirst, "restore": restore,
	"mset":   every(2, func(r *ruling, key string) { r.replaced(key, none) }),
	"msetnx": every(2, func(r *ruling, key string) { r.createdWith(key, none) }),

	// *STORE: the destination is a new key, or none.
	"sdiffstore": storesFirst, "sinterstore": storesFirst, "sunionstore": storesFirst,
	"zdiffstore": storesFirst, "zinterstore": storesFirst, "zunionstore": storesFirst, "zrangestore": storesFirst,
	"geosearchstore": storesFirst, "bitop": func(w words, r *ruling) { r.stored(w.text(2)) },
	"sort": stores("store"), "georadius": stores("store", "storedist"), "georadiusbymember": stores("store", "storedist"),

	// Alters the value, or creates it, and leaves the TTL.
	"append": alters, "incr": alters, "decr": alters, "pfadd": alters,
	"hset": alters, "hmset": alters, "hsetnx": alters, "lpush": alters, "rpush": alters, "sadd": alters,

	// The same, unless an argument is wrong, a condition is not met, or there is nothing to take.
	"incrby": mayAlter, "incrbyfloat": mayAlter, "decrby": mayAlter, "setrange": mayAlter, "setbit": mayAlter, "bitfield": mayAlter,
	"hincrby": mayAlter, "hincrbyfloat": mayAlter, "hsetex": mayAlter, "zadd": mayAlter, "zincrby": mayAlter, "geoadd": mayAlter,
	"xadd": mayAlter, "vadd": mayAlter, "pfmerge": mayAlter, "pfdebug": mayAlter,
	"smove": mayAlterSecond, "lmove": mayAlterSecond, "blmove": mayAlterSecond, "rpoplpush": mayAlterSecond, "brpoplpush": mayAlterSecond,
	"xgroup": func(w words, r *ruling) {
		if w.find(1, "mkstream") > 0 {
			r.altered(w.text(2), true)
		}
	},

	// Moves a key, and its TTL with it.
	"rename":   func(w words, r *ruling) { r.inherited(w.text(1), w.text(2), false); r.removed(w.text(1)) },
	"renamenx": func(w words, r *ruling) { r.inherited(w.text(1), w.text(2), true); r.doubted(w.text(1)) },
	"copy": func(w words, r *ruling) {
		if w.find(3, "db") == 0 {
			r.inherited(w.text(1), w.text(2), w.find(3, "replace") == 0)
		}
	},
	"move": doubts,

	// Takes keys away.
	"del": removes, "unlink": removes, "getdel": doubts, // if it is no string it stays
	"lpop": doubts, "rpop": doubts, "blpop": doubts, "brpop": doubts, "lmpop": doubts, "blmpop": doubts, "lrem": doubts, "ltrim": doubts,
	"spop": doubts, "srem": doubts, "zrem": doubts, "zpopmin": doubts, "zpopmax": doubts, "bzpopmin": doubts, "bzpopmax": doubts,
	"zmpop": doubts, "bzmpop": doubts, "zremrangebyrank": doubts, "zremrangebyscore": doubts, "zremrangebylex": doubts,
	"hdel": doubts, "hgetdel": doubts, "hgetex": doubts, "hexpire": doubts, "hpexpire": doubts, "hexpireat": doubts, "hpexpireat": doubts,
	"vrem": doubts, "flushdb": doubtsAll, "flushall": doubtsAll, "swapdb": doubtsAll,

	// Gives a TTL, or takes it.
	"expire": limits, "pexpire": limits, "expireat": limits, "pexpireat": limits,
	"persist": func(w words, r *ruling) { r.persisted(w.text(1)) },
	"getex": func(w words, r *ruling) {
		switch {
		case w.find(2, "persist") > 0:
			r.persisted(w.text(1))
		case w.ttl(2) != none:
			r.limitedIfString(w.text(1), w.ttl(2))
		}
	},

	// Whatever a script does with its keys.
	"eval": scripted, "evalsha": scripted, "fcall": scripted,
}

func timed(w words, r *ruling)          { r.replaced(w.text(1), w.span(2, some)) }
func storesFirst(w words, r *ruling)    { r.stored(w.text(1)) }
func alters(w words, r *ruling)         { r.altered(w.text(1), false) }
func mayAlter(w words, r *ruling)       { r.altered(w.text(1), true) }
func mayAlterSecond(w words, r *ruling) { r.doubted(w.text(1)); r.altered(w.text(2), true) }

var (
	doubts  = every(1, (*ruling).doubted) // of whichever keys are named
	removes = every(1, (*ruling).removed)
)

// every does the same to every step-th word from the first after the command's name on.
func every(step int, do func(r *ruling, key string)) effect {
	return func(w words, r *ruling) {
		for i := 1; i < len(w); i += step {
			do(r, w.text(i))
		}
	}
}

func doubtsAll(_ words, r *ruling) {
	for _, k := range r.keys {
		r.doubted(k.name)
	}
}

func stores(options ...string) effect {
	return func(w words, r *ruling) {
		if i := w.find(2, options...); i > 0 {
			r.stored(w.text(i + 1))
		}
	}
}

func set(w words, r *ruling) {
	key, ttl := w.text(1), w.ttl(3)
	switch {
	case ttl == refused:
		r.change(key, same)
	case w.find(3, "get") > 0 && ttl != none: // fails if what is there is no string
		r.limitedIfString(key, until)
	case w.find(3, "keepttl") > 0:
		r.altered(key, true)
	case w.find(3, "nx") > 0:
		r.createdWith(key, ttl)
	case w.find(3, "xx") > 0 && ttl != none:
		r.limited(key, ttl)
	case w.find(3, "xx") > 0:
		r.persisted(key)
	case w.find(3, "get") > 0:
		r.stored(key)
	default:
		r.replaced(key, ttl)
	}
}

// ttl returns what the options from i on say about it.
func (w words) ttl(i int) length {
	if at := w.find(i, "ex", "px"); at > 0 {
		return w.span(at+1, some)
	}
	if at := w.find(i, "exat", "pxat"); at > 0 {
		return w.span(at+1, until)
	}
	return none
}

// span is l if word i is a number that Redis takes for it.
func (w words) span(i int, l length) length {
	if n, ok := w.number(i); !ok || n <= 0 {
		return refused
	}
	return l
}

// restore  key ttl payload [REPLACE] [ABSTTL]: a ttl of 0 is none. Without REPLACE it fails where something
// is.
func restore(w words, r *ruling) {
	ttl := none
	if n, ok := w.number(2); ok && n > 0 {
		if ttl = some; w.find(4, "absttl") > 0 {
			ttl = until
		}
	}
	switch {
	case w.find(4, "replace") == 0:
		r.createdWith(w.text(1), ttl)
	case ttl == none:
		r.stored(w.text(1))
	default: // it fails if the payload is not one
		r.limitedIfString(w.text(1), ttl)
	}
}

// limits is the EXPIRE family. XX and GT leave a key alone that has no TTL; a time that is over removes it.
func limits(w words, r *ruling) {
	key, l := w.text(1), some
	if strings.HasSuffix(strings.ToLower(w.text(0)), "at") {
		l = until
	}
	switch n, ok := w.number(2); {
	case !ok || w.find(3, "xx", "gt") > 0:
		r.change(key, same)
	case n <= 0 && w.find(3, "nx", "lt") == 0:
		r.removed(key)
	case n <= 0:
		r.limited(key, until)
	default:
		r.limited(key, l)
	}
}

func scripted(w words, r *ruling) {
	n, _ := w.number(2)
	for i := 3; i < len(w) && i < 3+int(n); i++ {
		r.became(w.text(i), state{asBefore, maybe})
	}
}
