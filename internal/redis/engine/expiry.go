package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// expiryCommands give keys deadlines and ask about them.
var expiryCommands = []Command{
	{Name: "expire", Arity: -3, Flags: Write | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.expireAt(c.e.ms, 1000) }},
	{Name: "pexpire", Arity: -3, Flags: Write | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.expireAt(c.e.ms, 1) }},
	{Name: "expireat", Arity: -3, Flags: Write | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.expireAt(0, 1000) }},
	{Name: "pexpireat", Arity: -3, Flags: Write | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.expireAt(0, 1) }},
	{Name: "ttl", Arity: 2, Flags: ReadOnly | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.ttl(true, false) }},
	{Name: "pttl", Arity: 2, Flags: ReadOnly | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.ttl(false, false) }},
	{Name: "expiretime", Arity: 2, Flags: ReadOnly | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.ttl(true, true) }},
	{Name: "pexpiretime", Arity: 2, Flags: ReadOnly | Fast, Cats: CatKeyspace, Keys: oneKey, run: func(c *call) { c.ttl(false, true) }},
	{Name: "persist", Arity: 2, Flags: Write | Fast, Cats: CatKeyspace, Keys: oneKey, run: persistCommand},
}

// condition is NX, XX, GT or LT, in the order of the bits: when a deadline or a score may be set.
type condition uint8

const (
	ifNone condition = 1 << iota
	ifAny
	ifLater
	ifEarlier
)

// has reports whether all of these are given.
func (k condition) has(all condition) bool { return k&all == all }

// conditionWord returns the condition that argument i names, 0 if none.
func (c *call) conditionWord(i int) condition {
	for bit, word := range [...]string{"NX", "XX", "GT", "LT"} {
		if c.is(i, word) {
			return 1 << bit
		}
	}
	return 0
}

// allows reports whether a deadline may change from old to next. None counts as later than any.
func (k condition) allows(old, next int64) bool {
	switch {
	case k.has(ifNone) && old != expiry.None,
		k.has(ifAny) && old == expiry.None,
		k.has(ifLater) && (old == expiry.None || next <= old),
		k.has(ifEarlier) && old != expiry.None && next >= old:
		return false
	}
	return true
}

// conditions reads the options of the EXPIRE family, from argument 3 on.
func (c *call) conditions() (k condition) {
	for i := 3; i < len(c.args); i++ {
		word := c.conditionWord(i)
		if word == 0 {
			c.failf("ERR Unsupported option %s", c.args[i])
		}
		k |= word
	}
	switch {
	case k.has(ifNone) && k != ifNone:
		c.fail("ERR NX and XX, GT or LT options at the same time are not compatible")
	case k.has(ifLater | ifEarlier):
		c.fail("ERR GT and LT options at the same time are not compatible")
	}
	return k
}

// expireAt is the EXPIRE family: the time counts from base, in milliseconds, and is given in multiples of unit. A time in the past removes
// the key at once, and watchers and the journal see a DEL.
func (c *call) expireAt(base, unit int64) {
	k := c.conditions()
	ms := c.int(2)
	if ms > math.MaxInt64/unit || ms < math.MinInt64/unit || ms*unit > math.MaxInt64-base {
		c.fail(invalidExpire(c.cmd.Name))
	}
	ms = ms*unit + base

	key := c.args[1]
	o := c.write(key)
	switch {
	case c.failed:
		return
	case o == nil || k != 0 && !k.allows(c.db.deadline(o), ms):
		c.out.Int(0)
		return
	case ms <= c.e.ms:
		c.expireNow(key)
		c.out.Int(1)
		return
	}
	c.setDeadline(o, ms)
	c.wrote(key, 1, notifyGeneric, "expire")
	c.rewrite("PEXPIREAT", key, ms, c.args[3:])
	c.out.Int(1)
}

// ttl is the TTL family. Seconds are rounded half up: expire.c, ttlGenericCommand.
func (c *call) ttl(seconds, absolute bool) {
	o := c.peek(c.args[1])
	if o == nil {
		c.out.Int(-2)
		return
	}
	ms := c.db.deadline(o)
	if ms == expiry.None {
		c.out.Int(-1)
		return
	}
	if !absolute {
		ms = max(ms-c.e.ms, 0)
	}
	if seconds {
		ms = (ms + 500) / 1000
	}
	c.out.Int(ms)
}

func persistCommand(c *call) {
	o := c.write(c.args[1])
	c.yes(o != nil && c.persist(o, c.args[1]))
}

// persist removes the deadline of o, and reports whether it had one.
func (c *call) persist(o *object, key []byte) bool {
	if c.db.deadline(o) == expiry.None {
		return false
	}
	c.setDeadline(o, expiry.None)
	c.wrote(key, 1, notifyGeneric, "persist")
	return true
}
