package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// stringCommands store and fetch whole strings. Parts of strings are in ranges.go, numbers in counters.go, bits in bits.go.
var stringCommands = []Command{
	{Name: "set", Arity: -3, Flags: Write | DenyOOM, Cats: CatString, Keys: oneKey, run: setCommand},
	{Name: "setnx", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: setnxCommand},
	{Name: "setex", Arity: 4, Flags: Write | DenyOOM, Cats: CatString, Keys: oneKey, run: func(c *call) { c.setFor(expireEX) }},
	{Name: "psetex", Arity: 4, Flags: Write | DenyOOM, Cats: CatString, Keys: oneKey, run: func(c *call) { c.setFor(expirePX) }},
	{Name: "get", Arity: 2, Flags: ReadOnly | Fast, Cats: CatString, Keys: oneKey, run: func(c *call) { c.get(c.args[1]) }},
	{Name: "getex", Arity: -2, Flags: Write | Fast, Cats: CatString, Keys: oneKey, run: getexCommand},
	{Name: "getdel", Arity: 2, Flags: Write | Fast, Cats: CatString, Keys: oneKey, run: getdelCommand},
	{Name: "getset", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: getsetCommand},
	{Name: "mget", Arity: -2, Flags: ReadOnly | Fast, Cats: CatString, Keys: allKeys, run: mgetCommand},
	{Name: "mset", Arity: -3, Flags: Write | DenyOOM, Cats: CatString, Keys: pairKeys, run: msetCommand},
	{Name: "msetnx", Arity: -3, Flags: Write | DenyOOM, Cats: CatString, Keys: pairKeys, run: msetnxCommand},
}

// pairKeys is every other argument.
var pairKeys = Keys{First: 1, Last: -1, Step: 2}

// expireOption is the option, one of several, that says when a value expires.
type expireOption uint8

const (
	noExpire expireOption = iota
	expireEX
	expirePX
	expireEXAT
	expirePXAT
	keepTTL
	persist
)

var expireWords = [...]string{expireEX: "EX", expirePX: "PX", expireEXAT: "EXAT", expirePXAT: "PXAT", keepTTL: "KEEPTTL", persist: "PERSIST"}

// expireWord returns the option that argument i names, noExpire if none.
func (c *call) expireWord(i int) expireOption {
	for o := expireEX; o <= persist; o++ {
		if c.is(i, expireWords[o]) {
			return o
		}
	}
	return noExpire
}

// timed reports whether the option is followed by a time.
func (o expireOption) timed() bool { return expireEX <= o && o <= expirePXAT }

// unit is the unit of that time, in milliseconds.
func (o expireOption) unit() int64 {
	if o == expireEX || o == expireEXAT {
		return 1000
	}
	return 1
}

// absolute reports whether the time counts from the epoch, not from now.
func (o expireOption) absolute() bool { return o == expireEXAT || o == expirePXAT }

// setOptions are the options of SET and GETEX.
type setOptions struct {
	nx, xx, get bool
	expire      expireOption
	time        []byte // the argument of expire
}

// parseSetOptions reads the arguments from i on as SET or, if getex, GETEX takes them. An option may be repeated, and the last one counts.
func (c *call) parseSetOptions(i int, getex bool) (o setOptions) {
	for words := c.options(i); words.more(); {
		word, ok := c.expireWord(words.at), true
		switch {
		case word != noExpire && o.expire != noExpire && word != o.expire:
			ok = false
		case word.timed():
			if ok = words.at+1 < len(c.args); ok {
				o.time = c.args[words.next()]
			}
		case word == keepTTL:
			ok = !getex
		case word == persist:
			ok = getex
		case getex:
			ok = false
		case words.word("NX", 0):
			o.nx, ok = true, !o.xx
		case words.word("XX", 0):
			o.xx, ok = true, !o.nx
		case words.word("GET", 0):
			o.get = true
		default:
			ok = false
		}
		if !ok {
			c.fail(errSyntax)
		}
		if word != noExpire {
			o.expire = word
		}
	}
	return o
}

// deadline is the absolute time in milliseconds that o asks for, None if none.
func (c *call) deadline(o setOptions) (ms int64) {
	if c.failed || !o.expire.timed() {
		return expiry.None
	}
	n, ok := values.ParseInt(o.time)
	if !ok {
		c.fail(errNotInteger)
		return 0
	}
	unit := o.expire.unit()
	if n <= 0 || n > math.MaxInt64/unit {
		c.fail(invalidExpire(c.cmd.Name))
		return 0
	}
	n *= unit
	if !o.expire.absolute() {
		n += c.e.ms
	}
	if n <= 0 { // overflow
		c.fail(invalidExpire(c.cmd.Name))
	}
	return n
}

func setCommand(c *call) {
	o := c.parseSetOptions(3, false)
	if c.failed {
		return
	}
	switch c.store(c.args[1], c.args[2], o) {
	case stored:
		c.ok()
	case refused:
		c.out.Null()
	}
}

// The outcome of a store. answered: the reply is written, because of an error or because GET asked for the old value.
const (
	answered = iota
	stored
	refused
)

// store is SET and its older forms.
//
// A value is stored even if its deadline has already passed: the key exists, dead, and its expiry is an event like any other. (Rules S08 and
// N06.)
func (c *call) store(key, value []byte, o setOptions) int {
	ms := c.deadline(o)
	if c.failed {
		return answered
	}
	if o.get && !c.get(key) {
		return answered
	}
	old := c.write(key)
	if o.nx && old != nil || o.xx && old == nil {
		if o.get {
			return answered
		}
		return refused
	}
	obj := c.setString(old, key, value, o.expire != noExpire)
	c.wrote(key, 1, notifyString, "set")
	if o.expire.timed() {
		c.setDeadline(obj, ms)
		c.notify(notifyGeneric, "expire", key)
	}
	switch {
	case o.expire.timed():
		c.rewrite("SET", key, value, "PXAT", ms)
	case !o.get && c.cmd.Name == "set":
	case o.expire == keepTTL:
		c.rewrite("SET", key, value, "KEEPTTL")
	default:
		c.rewrite("SET", key, value)
	}
	if o.get {
		return answered
	}
	return stored
}

func setnxCommand(c *call) {
	c.yes(c.store(c.args[1], c.args[2], setOptions{nx: true}) == stored)
}

func (c *call) setFor(unit expireOption) {
	if c.store(c.args[1], c.args[3], setOptions{expire: unit, time: c.args[2]}) == stored {
		c.ok()
	}
}

// get replies with the string at key, or null. It returns false, with the error sent, if the key holds another type.
func (c *call) get(key []byte) bool {
	o := c.readString(key)
	if c.failed {
		return false
	}
	c.reply(o)
	return true
}

// reply replies with the string of o, null if o is nil.
func (c *call) reply(o *object) { c.bulk(textOf(o), o != nil) }

func getexCommand(c *call) {
	options := c.parseSetOptions(2, true)
	key := c.args[1]
	o := c.readString(key)
	switch {
	case c.failed:
		return
	case o == nil:
		c.out.Null()
		return
	}
	ms := c.deadline(options)
	if c.failed {
		return
	}
	c.reply(o)
	switch {
	case options.expire.absolute() && ms <= c.e.ms:
		c.expireNow(key)
	case options.expire.timed():
		c.setDeadline(o, ms)
		c.wrote(key, 1, notifyGeneric, "expire")
		c.rewrite("PEXPIREAT", key, ms)
	case options.expire == persist && c.persist(o, key):
		c.rewrite("PERSIST", key)
	}
}

// expireNow removes a key that was given a deadline in the past.
func (c *call) expireNow(key []byte) {
	c.delete(key)
	c.rewrite(c.e.removalVerb(), key)
}

func getdelCommand(c *call) {
	key := c.args[1]
	if c.get(key) && c.delete(key) {
		c.rewrite("DEL", key)
	}
}

func getsetCommand(c *call) {
	if key, value := c.args[1], c.args[2]; c.get(key) {
		c.put(key, value)
		c.rewrite("SET", key, value)
	}
}

// put stores value without a deadline.
func (c *call) put(key, value []byte) {
	c.setString(c.write(key), key, value, false)
	c.wrote(key, 1, notifyString, "set")
}

func mgetCommand(c *call) {
	c.out.Array(len(c.args) - 1)
	for _, key := range c.args[1:] {
		o := c.read(key)
		c.bulk(textOf(o), o != nil && o.kind() == values.String)
	}
}

func msetCommand(c *call) {
	if c.paired() {
		c.putAll()
		c.ok()
	}
}

func msetnxCommand(c *call) {
	if !c.paired() {
		return
	}
	for i := 1; i < len(c.args); i += 2 {
		if c.write(c.args[i]) != nil {
			c.out.Int(0)
			return
		}
	}
	c.putAll()
	c.out.Int(1)
}

// paired reports whether every key has a value; if not, the command fails.
func (c *call) paired() bool {
	if len(c.args)%2 == 0 {
		c.fail(wrongArity(c.cmd.Name))
		return false
	}
	return true
}

func (c *call) putAll() {
	for i := 1; i < len(c.args); i += 2 {
		c.put(c.args[i], c.args[i+1])
	}
}
