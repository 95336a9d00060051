package ttlguard

import "strings"

// effect says what a command does to its keys.
type effect func(w words, r *ruling)

// effects are the commands that can create a key, or give or remove its TTL. All other commands read, remove parts of a value, or change a
// value that must already exist: none of them leaves a key without a TTL that had one.
var effects = map[string]effect{
	// These replace the value, and the TTL with it.
	"set": set, "setnx": func(w words, r *ruling) { r.createdWith(w.text(1), none) },
	"setex": timed, "psetex": timed,
	"getset": storesFirst, "restore": restore, "restore-asking": restore, "msetex": msetex,
	"mset":   every(2, func(r *ruling, key string) { r.replaced(key, none) }),
	"msetnx": every(2, func(r *ruling, key string) { r.createdWith(key, none) }),

	// *STORE: the destination is a new key, or no key.
	"sdiffstore": storesFirst, "sinterstore": storesFirst, "sunionstore": storesFirst,
	"zdiffstore": storesFirst, "zinterstore": storesFirst, "zunionstore": storesFirst, "zrangestore": storesFirst,
	"geosearchstore": storesFirst, "bitop": func(w words, r *ruling) { r.stored(w.text(2)) },
	"sort": sortStore, "georadius": stores(6, "store", "storedist"), "georadiusbymember": stores(5, "store", "storedist"),

	// These change the value or create it, and keep the TTL.
	"append": alters, "incr": alters, "decr": alters, "pfadd": alters,
	"hset": alters, "hmset": alters, "hsetnx": alters, "lpush": alters, "rpush": alters, "sadd": alters,

	// The same, but they do nothing if an argument is wrong, a condition is not met, or there is nothing to take.
	"incrby": mayAlter, "incrbyfloat": mayAlter, "decrby": mayAlter, "setrange": mayAlter, "setbit": mayAlter, "bitfield": mayAlter,
	"hincrby": mayAlter, "hincrbyfloat": mayAlter, "hsetex": mayAlter, "zadd": mayAlter, "zincrby": mayAlter, "geoadd": mayAlter,
	"xadd": mayAlter, "vadd": mayAlter, "pfmerge": mayAlter, "pfdebug": mayAlter,
	"smove": mayAlterSecond, "lmove": mayAlterSecond, "blmove": mayAlterSecond, "rpoplpush": mayAlterSecond, "brpoplpush": mayAlterSecond,
	"xgroup": func(w words, r *ruling) {
		if w.find(5, "mkstream") > 0 {
			r.altered(w.text(2), true)
		}
	},

	// These move a key, and its TTL with it.
	"rename":   func(w words, r *ruling) { r.inherited(w.text(1), w.text(2), false); r.removed(w.text(1)) },
	"renamenx": func(w words, r *ruling) { r.inherited(w.text(1), w.text(2), true); r.doubted(w.text(1)) },
	"copy": func(w words, r *ruling) {
		to := r.db
		if i := w.find(3, "db"); i > 0 {
			to = w.text(i + 1)
		}
		r.inheritedIn(to, w.text(1), w.text(2), w.find(3, "replace") == 0)
	},
	"move": doubts,

	// These remove keys.
	"del": removes, "unlink": removes, "getdel": doubts, // a key that is not a string stays
	"lpop": doubts, "rpop": doubts, "blpop": doubts, "brpop": doubts, "lmpop": doubts, "blmpop": doubts, "lrem": doubts, "ltrim": doubts,
	"spop": doubts, "srem": doubts, "zrem": doubts, "zpopmin": doubts, "zpopmax": doubts, "bzpopmin": doubts, "bzpopmax": doubts,
	"zmpop": doubts, "bzmpop": doubts, "zremrangebyrank": doubts, "zremrangebyscore": doubts, "zremrangebylex": doubts,
	"hdel": doubts, "hgetdel": doubts, "hgetex": doubts, "hexpire": doubts, "hpexpire": doubts, "hexpireat": doubts, "hpexpireat": doubts,
	"vrem": doubts, "flushdb": doubtsAll, "flushall": doubtsAll, "swapdb": doubtsAll,

	// These give or remove a TTL.
	"expire": limits, "pexpire": limits, "expireat": limits, "pexpireat": limits,
	"persist": func(w words, r *ruling) { r.persisted(w.text(1)) },
	"getex": func(w words, r *ruling) {
		switch o := w.options(2, "persist"); {
		case o.wrong:
		case o.has["persist"]:
			r.persisted(w.text(1))
		case o.ttl != none:
			r.limitedIfString(w.text(1), o.ttl)
		}
	},

	// A script may do anything with its keys.
	"eval": scripted, "evalsha": scripted, "fcall": scripted,

	// These say where, or whether, later commands take effect.
	"select":  func(w words, r *ruling) { r.db = w.text(1) },
	"multi":   func(_ words, r *ruling) { r.begin() },
	"exec":    func(_ words, r *ruling) { r.commit() },
	"discard": func(_ words, r *ruling) { r.discard() },
	"reset":   func(_ words, r *ruling) { r.discard(); r.db = "0" },
}

func timed(w words, r *ruling) {
	l := w.span(2, some)
	if len(w) != 4 {
		l = refused
	}
	r.replaced(w.text(1), l)
}
func storesFirst(w words, r *ruling)    { r.stored(w.text(1)) }
func alters(w words, r *ruling)         { r.altered(w.text(1), false) }
func mayAlter(w words, r *ruling)       { r.altered(w.text(1), true) }
func mayAlterSecond(w words, r *ruling) { r.doubted(w.text(1)); r.altered(w.text(2), true) }

var (
	doubts  = every(1, (*ruling).doubted) // of all keys named
	removes = every(1, (*ruling).removed)
)

// every does the same to every step-th argument, starting with the first one after the command's name.
func every(step int, do func(r *ruling, key string)) effect {
	return func(w words, r *ruling) {
		for i := 1; i < len(w); i += step {
			do(r, w.text(i))
		}
	}
}

func doubtsAll(_ words, r *ruling) {
	for i := range r.keys { // in all databases
		if s := &r.keys[i].state; s.there == surely {
			s.there = maybe
		}
	}
}

// stores is for a command whose options, starting at argument from, may name the key that receives the result. The last such option counts.
func stores(from int, options ...string) effect {
	return func(w words, r *ruling) {
		to := 0
		for i := w.find(from, options...); i > 0; i = w.find(i+2, options...) {
			to = i + 1
		}
		if to > 0 {
			r.stored(w.text(to))
		}
	}
}

// sortStore  key [BY pattern] [LIMIT offset count] [GET pattern]... [ASC | DESC] [ALPHA] [STORE destination]. A pattern may be any word,
// even STORE.
func sortStore(w words, r *ruling) {
	to := 0
	for i := 2; i < len(w); i++ {
		switch strings.ToLower(w.text(i)) {
		case "by", "get":
			i++
		case "limit":
			i += 2
		case "store":
			i++
			to = i
		}
	}
	if to > 0 {
		r.stored(w.text(to))
	}
}

func set(w words, r *ruling) {
	key, o := w.text(1), w.options(3, "nx", "xx", "get", "keepttl")
	if o.wrong {
		r.change(key, same)
		return
	}
	r.perhaps(o.odd, key, func() {
		switch {
		case o.has["get"] && o.ttl != none: // fails if the key does not hold a string
			r.limitedIfString(key, until)
		case o.has["keepttl"]:
			r.altered(key, true)
		case o.has["nx"]:
			r.createdWith(key, o.ttl)
		case o.has["xx"] && o.ttl != none:
			r.limited(key, o.ttl)
		case o.has["xx"]:
			r.persisted(key)
		case o.has["get"]:
			r.stored(key)
		default:
			r.replaced(key, o.ttl)
		}
	})
}

// msetex  numkeys key value [key value]... [NX | XX] [a TTL | KEEPTTL]: sets all keys or none (Redis 8.4).
func msetex(w words, r *ruling) {
	n, ok := w.number(1)
	if !ok || n < 1 || n > int64(len(w)) {
		return
	}
	at := 2 + 2*int(n)
	o := w.options(at, "nx", "xx", "keepttl")
	for i := 2; i < min(at, len(w)); i += 2 {
		switch key := w.text(i); {
		case o.wrong:
			r.change(key, same)
		case o.has["keepttl"]:
			r.altered(key, true)
		default:
			r.perhaps(o.odd || o.has["nx"] || o.has["xx"], key, func() { r.replaced(key, o.ttl) })
		}
	}
}

// restore  key ttl payload [REPLACE] [ABSTTL]: a ttl of 0 means none. Without REPLACE it fails if the key exists.
func restore(w words, r *ruling) {
	ttl := none
	if n, ok := w.number(2); ok && n > 0 {
		if ttl = some; w.find(4, "absttl") > 0 {
			ttl = until
		}
	}
	switch {
	case len(w) < 4:
		r.change(w.text(1), same)
	case w.find(4, "replace") == 0:
		r.createdWith(w.text(1), ttl)
	case ttl == none:
		r.stored(w.text(1))
	default: // fails if the payload is invalid
		r.limitedIfString(w.text(1), ttl)
	}
}

// limits is the EXPIRE family. XX and GT leave a key without a TTL alone; a time in the past removes the key.
func limits(w words, r *ruling) {
	key, l := w.text(1), some
	if strings.HasSuffix(strings.ToLower(w.text(0)), "at") {
		l = until
	}
	o := w.options(3, "nx", "xx", "gt", "lt")
	n, ok := w.number(2)
	gt, lt, nx, xx := o.has["gt"], o.has["lt"], o.has["nx"], o.has["xx"]
	if !ok || xx || gt || nx && lt { // refused, or without effect on a key that has no TTL
		r.change(key, same)
		return
	}
	r.perhaps(o.odd || o.ttl != none, key, func() {
		switch {
		case n <= 0 && !nx && !lt:
			r.removed(key)
		case n <= 0:
			r.limited(key, until)
		default:
			r.limited(key, l)
		}
	})
}

func scripted(w words, r *ruling) {
	n, _ := w.number(2)
	for i := 3; i < len(w) && i < 3+int(n); i++ {
		r.became(w.text(i), state{asBefore, maybe})
	}
}
