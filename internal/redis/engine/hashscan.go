package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// hscanCommand hides dead fields without removing them.
func hscanCommand(c *call) {
	h, o, ok := scanned[*values.HashValue](c)
	if !ok {
		return
	}
	var found [][]byte
	cursor := h.Scan(o.cursor, o.count, func(field, value []byte, deadline int64) {
		if expiry.Dead(deadline, c.e.ms) || o.pattern != nil && !o.pattern.Match(field) {
			return
		}
		found = append(found, field)
		if !o.noValues {
			found = append(found, value)
		}
	})
	c.cursor(cursor)
	c.out.Array(len(found))
	for _, b := range found {
		c.out.Bulk(b)
	}
}

// hrandfieldCommand reaps dead fields first, so that it never draws one.
func hrandfieldCommand(c *call) {
	count, withValues := c.randomCount("WITHVALUES")
	h := c.drawnHash(c.args[1])
	one := func(field, value []byte) { c.drawnField(field, value, withValues) }
	c.replyRandom(h.Len() == 0, count, withValues, func() { one(h.Random(c.e.draw)) }, func() {
		c.pairHead(min(count, h.Len()), withValues)
		h.Sample(count, c.e.draw, one)
	})
}

// replyRandom ends HRANDFIELD, SRANDMEMBER and ZRANDMEMBER: one replies with a random element, sample with count distinct ones.
func (c *call) replyRandom(missing bool, count int, pairs bool, one, sample func()) {
	single := len(c.args) == 2
	switch {
	case c.failed:
	case single && missing:
		c.out.Null()
	case single:
		one()
	case missing || count == 0:
		c.out.Array(0)
	case count > 0:
		sample()
	case c.repeats(-count):
		c.pairHead(-count, pairs)
		for range -count {
			one()
		}
	}
}

// randomCount reads the count of HRANDFIELD, SRANDMEMBER and ZRANDMEMBER, and the optional word after it that asks for values or scores. A
// negative count allows repeated elements.
func (c *call) randomCount(withWord string) (count int, with bool) {
	if len(c.args) == 2 {
		return 1, false
	}
	if withWord == "" && len(c.args) > 3 {
		c.fail(errSyntax)
	}
	count = c.signed(2)
	with = len(c.args) == 4 && c.is(3, withWord)
	switch {
	case len(c.args) > 3 && !with:
		c.fail(errSyntax)
	case with && (count < -math.MaxInt64/2 || count > math.MaxInt64/2):
		c.fail(errValueRange)
	}
	return count, with
}

// drawnHash is readHash after reaping its dead fields.
func (c *call) drawnHash(key []byte) hash {
	h := c.readHash(key)
	if !h.missing() && expiry.Dead(h.armed, c.e.ms) {
		c.e.expireFields(c.db, h.o, h.HashValue, math.MaxInt)
		if h.Len() == 0 {
			return noHash
		}
	}
	return h
}

func (c *call) drawnField(field, value []byte, withValue bool) {
	if withValue && c.out.Proto == 3 {
		c.out.Array(2)
	}
	c.out.Bulk(field)
	if withValue {
		c.out.Bulk(value)
	}
}
