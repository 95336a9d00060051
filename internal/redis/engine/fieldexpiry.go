package engine

import (
	"github.com/mayflycache/mayfly/internal/expiry"
)

// fieldCommands are about the deadlines of a hash's fields; those that also read or write values are in fieldvalues.go.
var fieldCommands = []Command{
	{Name: "hexpire", Arity: -6, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.expireNamed(1000, c.e.ms) }},
	{Name: "hpexpire", Arity: -6, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.expireNamed(1, c.e.ms) }},
	{Name: "hexpireat", Arity: -6, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.expireNamed(1000, 0) }},
	{Name: "hpexpireat", Arity: -6, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.expireNamed(1, 0) }},
	{Name: "httl", Arity: -5, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.ttlNamed(1000, c.e.ms) }},
	{Name: "hpttl", Arity: -5, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.ttlNamed(1, c.e.ms) }},
	{Name: "hexpiretime", Arity: -5, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.ttlNamed(1000, 0) }},
	{Name: "hpexpiretime", Arity: -5, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.ttlNamed(1, 0) }},
	{Name: "hpersist", Arity: -5, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: hpersistCommand},
	{Name: "hgetex", Arity: -5, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: hgetexCommand},
	{Name: "hsetex", Arity: -6, Flags: Write | DenyOOM | Fast, Cats: CatHash, Keys: oneKey, run: hsetexCommand},
	{Name: "hgetdel", Arity: -5, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: hgetdelCommand},
}

const (
	errFieldsMissing   = "ERR Mandatory argument FIELDS is missing or not at the right position"
	errFieldsMismatch  = "ERR The `numfields` parameter must match the number of arguments"
	errFieldsPositive  = "ERR Number of fields must be a positive integer"
	errFieldsAboveZero = "ERR Parameter `numFields` should be greater than 0"
	errExpireNegative  = "ERR invalid expire time, must be >= 0"
)

// lastDeadline is the latest deadline of a field: 46 bits of milliseconds.
const lastDeadline = 1<<46 - 1

// The replies for each field.
const (
	fieldMissing   = -2
	fieldNoTTL     = -1
	fieldUnchanged = 0 // its condition was not met
	fieldChanged   = 1
	fieldDeleted   = 2 // the deadline was in the past
)

// fieldDeadline reads argument i as a deadline, given in multiples of unit milliseconds after since.
func (c *call) fieldDeadline(i int, unit, since int64) (deadline int64) {
	n := c.int(i)
	switch {
	case n < 0:
		c.fail(errExpireNegative)
	case n > lastDeadline/unit || n*unit > lastDeadline-since:
		c.fail(invalidExpire(c.cmd.Name))
	}
	return n*unit + since
}

// fieldNames reads FIELDS, a number and that many fields, which must be all the arguments from i on.
func (c *call) fieldNames(i int, errNumber string) (fields [][]byte) {
	switch {
	case i >= len(c.args) || !c.is(i, "FIELDS"):
		c.fail(errFieldsMissing)
	case i+1 == len(c.args):
		c.fail(errNumber)
	case c.intFrom(i+1, 1, errNumber) != int64(len(c.args)-i-2):
		c.fail(errFieldsMismatch)
	default:
		return c.args[i+2:]
	}
	return nil
}

// expireNamed is HEXPIRE and its three relatives: key, time, an optional condition, fields. A dead field that was not reaped is changed like
// any other, and comes back to life.
func (c *call) expireNamed(unit, since int64) {
	key := c.args[1]
	h := c.writeHash(key)
	deadline := c.fieldDeadline(2, unit, since)
	at, condition := 3, c.conditionWord(3)
	if condition != 0 {
		at++
	}
	fields := c.fieldNames(at, errFieldsAboveZero)
	if c.failed {
		return
	}
	c.out.Array(len(fields))
	if !h.missing() {
		h.Volatile()
	}
	changed, past := make([][]byte, 0, 8), deadline <= c.e.ms
	for _, field := range fields {
		_, old, ok := h.Get(field)
		switch {
		case !ok:
			c.out.Int(fieldMissing)
			continue
		case !condition.allows(old, deadline):
			c.out.Int(fieldUnchanged)
			continue
		case past:
			h.Remove(field)
			c.out.Int(fieldDeleted)
		default:
			h.SetDeadline(field, deadline)
			c.out.Int(fieldChanged)
		}
		changed = append(changed, field)
	}
	c.rearmed(h)
	switch {
	case len(changed) == 0:
		return
	case past:
		c.removedFields(key, changed)
	default:
		c.wrote(key, len(changed), notifyHash, "hexpire")
		c.rewrite("HPEXPIREAT", key, deadline, c.args[3:at], "FIELDS", len(changed), changed)
	}
	c.removeIfEmpty(key, h.HashValue)
}

// removedFields announces that these fields were removed.
func (c *call) removedFields(key []byte, fields [][]byte) {
	c.wrote(key, len(fields), notifyHash, "hdel")
	c.rewrite("HDEL", key, fields)
}

// ttlNamed is HTTL and its three relatives: the time left since a given time, in units, rounded up. Dead fields are hidden but not removed.
// In a listpack Redis hides a field from these commands a millisecond before it expires for the others (t_hash.c, httlGenericCommand).
func (c *call) ttlNamed(unit, since int64) {
	h := c.readHash(c.args[1])
	fields := c.fieldNames(2, errFieldsPositive)
	if c.failed {
		return
	}
	c.out.Array(len(fields))
	now := c.e.ms
	if h.Encoding() == "listpackex" {
		now++
	}
	for _, field := range fields {
		_, deadline, ok := c.peekField(h, field)
		switch {
		case !ok || expiry.Dead(deadline, now):
			c.out.Int(fieldMissing)
		case deadline == expiry.None:
			c.out.Int(fieldNoTTL)
		default:
			c.out.Int((deadline - since + unit - 1) / unit)
		}
	}
}

// peekField returns a living field; a dead one is hidden but not removed.
func (c *call) peekField(h hash, field []byte) (value []byte, deadline int64, ok bool) {
	value, deadline, ok = h.Get(field)
	return value, deadline, ok && !expiry.Dead(deadline, c.e.ms)
}

func hpersistCommand(c *call) {
	key := c.args[1]
	h := c.writeHash(key)
	fields := c.fieldNames(2, errFieldsPositive)
	if c.failed {
		return
	}
	c.out.Array(len(fields))
	changed := 0
	for _, field := range fields {
		_, deadline, ok := c.peekField(h, field)
		switch {
		case !ok:
			c.out.Int(fieldMissing)
		case deadline == expiry.None:
			c.out.Int(fieldNoTTL)
		default:
			h.SetDeadline(field, expiry.None)
			changed++
			c.out.Int(fieldChanged)
		}
	}
	if changed > 0 {
		c.rearmed(h)
		c.wrote(key, changed, notifyHash, "hpersist")
	}
}
