package engine

import "github.com/mayflycache/mayfly/internal/expiry"

// The commands that read or write fields and their deadlines at once: HGETEX, HGETDEL, HSETEX.

// hgetexCommand replies fields and, by its option, gives those that live another deadline or none. The option comes first, then FIELDS.
func hgetexCommand(c *call) {
	key := c.args[1]
	h, ok := c.writeHash(key)
	if !ok {
		return
	}
	at, expires, persists := 2, false, c.is(2, "PERSIST")
	deadline := expiry.None
	if unit, since, ok := c.expireOption(2); ok {
		if deadline, expires = c.fieldDeadline(3, unit, since); !expires {
			return
		}
		at = 4
	} else if persists {
		at = 3
	}
	fields, ok := c.fieldNames(at, errFieldsPositive)
	if !ok {
		return
	}
	past := expires && deadline <= c.e.ms
	before, dropped := int64(0), 0
	if !h.missing() {
		before = h.NextDeadline()
		if expires || persists {
			h.Volatile()
		}
	}
	var changed [][]byte
	c.out.Array(len(fields))
	for _, field := range fields {
		value, old, ok := c.fieldQuietly(h, key, field, &dropped)
		if !ok {
			c.out.Null()
			continue
		}
		c.out.Bulk(value)
		switch {
		case past:
			h.Remove(field)
		case expires, persists && old != expiry.None:
			h.SetDeadline(field, deadline)
		default:
			continue
		}
		changed = append(changed, field)
	}
	if h.missing() {
		return
	}
	c.rearmed(h, before)
	if dropped > 0 {
		c.notify(notifyHash, "hexpired", key)
	}
	if len(changed) > 0 {
		c.changed(key, len(changed))
		switch {
		case past:
			c.notify(notifyHash, "hdel", key)
			c.recordRemovals(key, changed)
		case expires:
			c.notify(notifyHash, "hexpire", key)
			c.recordDeadline(key, deadline, nil, changed)
		default:
			c.notify(notifyHash, "hpersist", key)
			if c.recording() {
				c.rewrite(append([][]byte{[]byte("HPERSIST"), key, []byte("FIELDS"), decimal(int64(len(changed)))}, changed...)...)
			}
		}
	}
	c.removeIfEmpty(key, h.HashValue)
}

// expireOption reads argument i as EX, PX, EXAT or PXAT: the unit in milliseconds, and the time from which it counts.
func (c *call) expireOption(i int) (unit, since int64, ok bool) {
	switch {
	case c.is(i, "EX"):
		return 1000, c.e.ms, true
	case c.is(i, "PX"):
		return 1, c.e.ms, true
	case c.is(i, "EXAT"):
		return 1000, 0, true
	case c.is(i, "PXAT"):
		return 1, 0, true
	}
	return 0, 0, false
}

// hgetdelCommand replies fields and removes them.
func hgetdelCommand(c *call) {
	key := c.args[1]
	h, ok := c.writeHash(key)
	if !ok {
		return
	}
	fields, ok := c.fieldNames(2, errFieldsPositive)
	if !ok {
		return
	}
	before, dropped := int64(0), 0
	if !h.missing() {
		before = h.NextDeadline()
	}
	var removed [][]byte
	c.out.Array(len(fields))
	for _, field := range fields {
		value, _, ok := c.fieldQuietly(h, key, field, &dropped)
		if !ok {
			c.out.Null()
			continue
		}
		c.out.Bulk(value)
		h.Remove(field)
		removed = append(removed, field)
	}
	if h.missing() {
		return
	}
	c.rearmed(h, before)
	if dropped > 0 {
		c.notify(notifyHash, "hexpired", key)
	}
	if len(removed) > 0 {
		c.changed(key, len(removed))
		c.notify(notifyHash, "hdel", key)
		c.recordRemovals(key, removed)
	}
	c.removeIfEmpty(key, h.HashValue)
}

// setFields is what HSETEX was asked for.
type setFields struct {
	pairs            [][]byte
	ifAll, ifNone    bool // FXX, FNX
	expires, keepTTL bool
	deadline         int64
}

// hsetexCommand sets fields, all or none, together with a deadline. In the past, that removes them.
func hsetexCommand(c *call) {
	o, ok := c.setFieldsOptions()
	if !ok {
		return
	}
	key := c.args[1]
	h, ok := c.writeHash(key)
	if !ok {
		return
	}
	if !c.mayset(h, key, o) {
		c.out.Int(0)
		return
	}
	if h.missing() {
		h = c.newHash(key)
	}
	h.Fit(o.pairs, c.e.limits)
	if o.expires {
		h.Volatile()
	}
	before, past := h.NextDeadline(), o.expires && o.deadline <= c.e.ms
	for i := 0; i < len(o.pairs); i += 2 {
		field := o.pairs[i]
		h.Set(field, o.pairs[i+1], o.keepTTL, c.e.limits)
		switch {
		case past:
			h.Remove(field)
		case o.expires:
			h.SetDeadline(field, o.deadline)
		}
	}
	c.rearmed(h, before)
	c.changed(key, len(o.pairs)/2)
	c.notify(notifyHash, "hset", key)
	switch {
	case past:
		c.notify(notifyHash, "hdel", key)
	case o.expires:
		c.notify(notifyHash, "hexpire", key)
	}
	c.recordSetFields(key, o, past)
	c.removeIfEmpty(key, h.HashValue)
	c.out.Int(1)
}

// setFieldsOptions parses HSETEX. Options stand in any order before FIELDS; the fields must be all that is left.
func (c *call) setFieldsOptions() (o setFields, ok bool) {
	for i := 2; i < len(c.args); i++ {
		unit, since, expires := c.expireOption(i)
		switch {
		case c.is(i, "FIELDS"):
			return c.fieldPairs(i+1, o)
		case expires || c.is(i, "KEEPTTL"):
			if o.expires || o.keepTTL {
				c.fail("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")
				return o, false
			}
			if o.expires, o.keepTTL = expires, !expires; !expires {
				continue
			}
			if i++; i == len(c.args) {
				c.fail("ERR missing expire time")
				return o, false
			}
			if o.deadline, ok = c.fieldDeadline(i, unit, since); !ok {
				return o, false
			}
		case c.is(i, "FXX") || c.is(i, "FNX"):
			if o.ifAll || o.ifNone {
				c.fail("ERR Only one of FXX or FNX arguments can be specified")
				return o, false
			}
			o.ifAll, o.ifNone = c.is(i, "FXX"), c.is(i, "FNX")
		default:
			c.failf("ERR unknown argument: %s", c.args[i])
			return o, false
		}
	}
	c.fail("ERR missing FIELDS argument")
	return o, false
}

// fieldPairs reads a number at argument i, and so many fields and values.
func (c *call) fieldPairs(i int, o setFields) (setFields, bool) {
	if i+2 >= len(c.args) {
		c.fail(wrongArity(c.cmd.Name))
		return o, false
	}
	n, ok := c.intOr(i, "ERR invalid number of fields")
	if !ok {
		return o, false
	}
	const most = 1<<31 - 1
	if n < 1 || n > most {
		c.fail("ERR invalid number of fields")
		return o, false
	}
	if o.pairs = c.args[i+1:]; int64(len(o.pairs)) != 2*n {
		c.fail(wrongArity(c.cmd.Name))
		return o, false
	}
	return o, true
}

// mayset checks FNX and FXX. Dead fields that it meets go without an event.
func (c *call) mayset(h hash, key []byte, o setFields) bool {
	if !o.ifAll && !o.ifNone {
		return true
	}
	if h.missing() {
		return o.ifNone
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

// recordSetFields records HSETEX by its outcome.
func (c *call) recordSetFields(key []byte, o setFields, past bool) {
	if !c.recording() {
		return
	}
	if past {
		var fields [][]byte
		for i := 0; i < len(o.pairs); i += 2 {
			fields = append(fields, o.pairs[i])
		}
		c.recordRemovals(key, fields)
		return
	}
	args := [][]byte{[]byte("HSETEX"), key}
	switch {
	case o.expires:
		args = append(args, []byte("PXAT"), decimal(o.deadline))
	case o.keepTTL:
		args = append(args, []byte("KEEPTTL"))
	}
	args = append(args, []byte("FIELDS"), decimal(int64(len(o.pairs)/2)))
	c.rewrite(append(args, o.pairs...)...)
}
