package engine

import "github.com/mayflycache/mayfly/internal/expiry"

// The commands that handle fields together with their deadlines: HGETEX, HGETDEL, HSETEX.

// hgetexCommand replies with fields and, by its option, changes or removes the deadlines of those that live. The option comes first, then
// FIELDS.
func hgetexCommand(c *call) {
	key := c.args[1]
	h := c.writeHash(key)
	if c.failed {
		return
	}
	at, option, deadline := 2, c.expireWord(2), int64(expiry.None)
	switch {
	case option.timed():
		at, deadline = 4, c.fieldEnd(3, option)
	case option == persist:
		at = 3
	}
	fields := c.fieldNames(at, errFieldsPositive)
	if c.failed {
		return
	}
	past := option.timed() && deadline <= c.e.ms
	if !h.missing() && at > 2 {
		h.Volatile()
	}
	changed := c.eachField(h, key, fields, func(field []byte, old int64) bool {
		switch {
		case past:
			h.Remove(field)
		case option.timed(), option == persist && old != expiry.None:
			h.SetDeadline(field, deadline)
		default:
			return false
		}
		return true
	})
	if len(changed) > 0 {
		switch {
		case past:
			c.removedFields(key, changed)
		case option.timed():
			c.wrote(key, len(changed), notifyHash, "hexpire")
			c.rewrite("HPEXPIREAT", key, deadline, "FIELDS", len(changed), changed)
		default:
			c.wrote(key, len(changed), notifyHash, "hpersist")
			c.rewrite("HPERSIST", key, "FIELDS", len(changed), changed)
		}
	}
	c.removeIfEmpty(key, h.HashValue)
}

// eachField replies with these fields of h, null for one that does not live. It calls do for each living field and returns the fields for
// which do reported a change.
func (c *call) eachField(h hash, key []byte, fields [][]byte, do func(field []byte, deadline int64) bool) (changed [][]byte) {
	dropped := 0
	c.out.Array(len(fields))
	for _, field := range fields {
		value, deadline, ok := c.fieldQuietly(h, key, field, &dropped)
		c.bulk(value, ok)
		if ok && do(field, deadline) {
			changed = append(changed, field)
		}
	}
	c.rearmed(h)
	if dropped > 0 {
		c.notify(notifyHash, "hexpired", key)
	}
	return changed
}

// fieldEnd reads argument i as the time that option takes.
func (c *call) fieldEnd(i int, option expireOption) int64 {
	since := c.e.ms
	if option.absolute() {
		since = 0
	}
	return c.fieldDeadline(i, option.unit(), since)
}

// hgetdelCommand replies with fields and removes them.
func hgetdelCommand(c *call) {
	key := c.args[1]
	h := c.writeHash(key)
	fields := c.fieldNames(2, errFieldsPositive)
	if c.failed {
		return
	}
	removed := c.eachField(h, key, fields, func(field []byte, _ int64) bool { return h.Remove(field) })
	if len(removed) > 0 {
		c.removedFields(key, removed)
	}
	c.removeIfEmpty(key, h.HashValue)
}

// setFields are the parsed arguments of HSETEX.
type setFields struct {
	pairs         [][]byte
	ifAll, ifNone bool // FXX, FNX
	expire        expireOption
	deadline      int64
}

// hsetexCommand sets all fields or none, together with a deadline. A deadline in the past removes them.
func hsetexCommand(c *call) {
	o := c.setFieldsOptions()
	key := c.args[1]
	h := c.writeHash(key)
	if c.failed {
		return
	}
	if !c.mayset(h, key, o) {
		c.out.Int(0)
		return
	}
	h = c.orNewHash(h, key)
	h.Fit(o.pairs, c.e.limits)
	expires := o.expire.timed()
	if expires {
		h.Volatile()
	}
	past := expires && o.deadline <= c.e.ms
	var removed [][]byte
	for i := 0; i < len(o.pairs); i += 2 {
		field := o.pairs[i]
		h.Set(field, o.pairs[i+1], o.expire == keepTTL, c.e.limits)
		switch {
		case past:
			h.Remove(field)
			removed = append(removed, field)
		case expires:
			h.SetDeadline(field, o.deadline)
		}
	}
	c.rearmed(h)
	n := len(o.pairs) / 2
	c.wrote(key, n, notifyHash, "hset")
	switch {
	case past:
		c.notify(notifyHash, "hdel", key)
		c.rewrite("HDEL", key, removed)
	case expires:
		c.notify(notifyHash, "hexpire", key)
		c.rewrite("HSETEX", key, "PXAT", o.deadline, "FIELDS", n, o.pairs)
	case o.expire == keepTTL:
		c.rewrite("HSETEX", key, "KEEPTTL", "FIELDS", n, o.pairs)
	default:
		c.rewrite("HSETEX", key, "FIELDS", n, o.pairs)
	}
	c.removeIfEmpty(key, h.HashValue)
	c.out.Int(1)
}

// setFieldsOptions parses HSETEX. Options come in any order before FIELDS; nothing may follow the fields.
func (c *call) setFieldsOptions() (o setFields) {
	for words := c.options(2); words.more(); {
		word := c.expireWord(words.at)
		switch {
		case words.word("FIELDS", 0):
			o.pairs = c.fieldPairs(words.next())
			return o
		case word.timed() || word == keepTTL:
			if o.expire != noExpire {
				c.fail("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")
				return o
			}
			if o.expire = word; word == keepTTL {
				continue
			}
			if words.next() == len(c.args) {
				c.fail("ERR missing expire time")
				return o
			}
			o.deadline = c.fieldEnd(words.at, word)
		case words.word("FXX", 0), words.word("FNX", 0):
			if o.ifAll || o.ifNone {
				c.fail("ERR Only one of FXX or FNX arguments can be specified")
			}
			o.ifAll, o.ifNone = c.is(words.at, "FXX"), c.is(words.at, "FNX")
		default:
			c.failf("ERR unknown argument: %s", c.args[words.at])
		}
	}
	c.fail("ERR missing FIELDS argument")
	return o
}

// fieldPairs reads a number at argument i, and that many fields and values.
func (c *call) fieldPairs(i int) [][]byte {
	const most = 1<<31 - 1
	if i+2 >= len(c.args) {
		c.fail(wrongArity(c.cmd.Name))
		return nil
	}
	n := c.intFrom(i, 1, "ERR invalid number of fields")
	pairs := c.args[i+1:]
	switch {
	case n > most:
		c.fail("ERR invalid number of fields")
	case int64(len(pairs)) != 2*n:
		c.fail(wrongArity(c.cmd.Name))
	}
	return pairs
}

// mayset checks FNX and FXX. Dead fields that it finds are removed without an event.
func (c *call) mayset(h hash, key []byte, o setFields) bool {
	if !o.ifAll && !o.ifNone {
		return true
	}
	for i := 0; i < len(o.pairs); i += 2 {
		_, deadline, exists := h.Get(o.pairs[i])
		if exists && expiry.Dead(deadline, c.e.ms) {
			c.dropField(h, key, o.pairs[i])
			exists = false
		}
		if exists != o.ifAll {
			c.removeIfEmpty(key, h.HashValue)
			return false
		}
	}
	return true
}
