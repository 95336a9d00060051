package engine

import (
	"math"
	"strconv"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// hscanCommand hides dead fields and leaves them where they are.
func hscanCommand(c *call) {
	if _, ok := c.scanCursor(2); !ok {
		return
	}
	h, ok := c.readHash(c.args[1])
	if !ok {
		return
	}
	if h.missing() {
		c.scanned(0, nil)
		return
	}
	o, ok := c.scanOptions(2)
	if !ok {
		return
	}
	var found [][]byte
	cursor := h.Scan(o.cursor, o.count, func(field, value []byte, deadline int64) {
		if expiry.Dead(deadline, c.e.ms) || o.pattern != nil && !glob(o.pattern, field) {
			return
		}
		found = append(found, field)
		if !o.noValues {
			found = append(found, value)
		}
	})
	c.out.Array(2)
	c.out.BulkString(strconv.FormatUint(cursor, 10))
	c.out.Array(len(found))
	for _, b := range found {
		c.out.Bulk(b)
	}
}

// hrandfieldCommand reaps what is dead first, so that it need not draw around it.
func hrandfieldCommand(c *call) {
	key := c.args[1]
	if len(c.args) == 2 {
		h, ok := c.drawnHash(key)
		switch {
		case !ok:
		case h.missing():
			c.out.Null()
		default:
			field, _ := h.Random(c.e.draw)
			c.out.Bulk(field)
		}
		return
	}
	count, ok := c.signed(2)
	if !ok {
		return
	}
	withValues := len(c.args) == 4 && c.is(3, "WITHVALUES")
	if len(c.args) > 3 && !withValues {
		c.fail(errSyntax)
		return
	}
	if withValues && (count < -math.MaxInt64/2 || count > math.MaxInt64/2) {
		c.fail(errValueRange)
		return
	}
	h, ok := c.drawnHash(key)
	switch {
	case !ok:
	case h.missing() || count == 0:
		c.out.Array(0)
	case count < 0:
		if !c.repeats(-count) {
			return
		}
		c.drawn(-count, withValues)
		for range -count {
			field, value := h.Random(c.e.draw)
			c.drawnField(field, value, withValues)
		}
	default:
		c.drawn(min(count, h.Len()), withValues)
		h.Sample(count, c.e.draw, func(field, value []byte) { c.drawnField(field, value, withValues) })
	}
}

// drawnHash is readHash without its dead fields.
func (c *call) drawnHash(key []byte) (h hash, ok bool) {
	if h, ok = c.readHash(key); ok && !h.missing() && expiry.Dead(h.NextDeadline(), c.e.ms) {
		c.e.expireFields(c.db, h.o, h.HashValue, math.MaxInt)
		if h.Len() == 0 {
			return hash{}, true
		}
	}
	return h, ok
}

// drawn announces n fields: with their values an array of pairs, which RESP2 flattens.
func (c *call) drawn(n int, withValues bool) {
	if withValues && c.out.Proto != 3 {
		n *= 2
	}
	c.out.Array(n)
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
