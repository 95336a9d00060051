package engine

import (
	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// A field past its deadline ends in one of two ways. A command that looks it up by name removes it (lazy expiry: field and fieldQuietly
// here); otherwise Tick reaps it. Until then readers do not see it, but HLEN counts it, and a hash of nothing but dead fields exists.

// field returns a living field of h. A dead one is removed and published; if it was the last, the key is removed and h becomes missing.
func (c *call) field(h *hash, key, field []byte) (value []byte, deadline int64, ok bool) {
	dropped := 0
	value, deadline, ok = c.fieldQuietly(*h, key, field, &dropped)
	if dropped > 0 {
		c.notify(notifyHash, "hexpired", key)
		if c.removeIfEmpty(key, h.HashValue) {
			*h = noHash
		}
	}
	return value, deadline, ok
}

// fieldQuietly is field for several fields in a row. It counts the fields it removed; the caller publishes that once, and removes the key if
// the hash is empty.
func (c *call) fieldQuietly(h hash, key, field []byte, dropped *int) (value []byte, deadline int64, ok bool) {
	value, deadline, ok = h.Get(field)
	if !ok || !expiry.Dead(deadline, c.e.ms) {
		return value, deadline, ok
	}
	if c.e.hides() {
		return nil, expiry.None, false // removed only when the master says so, or after the pause
	}
	c.dropField(h, key, field)
	c.e.touched(c.db, key, nil)
	*dropped++
	return nil, expiry.None, false
}

// dropField removes a dead field and records that, without notifying anybody.
func (c *call) dropField(h hash, key, field []byte) {
	c.db.preserve(h.o)
	h.Remove(field)
	c.rearmed(h)
	c.e.stats.expiredFields++
	c.e.record(c.db, "HDEL", key, field)
}

// reapFields removes up to max dead fields from the hashes of d, and returns how much work that was. Tick calls it; a hash with more dead
// fields waits for the next Tick.
func (e *Engine) reapFields(d *db, max int) int {
	if d.fields.Len() == 0 || max <= 0 {
		return 0
	}
	e.due = e.due[:0]
	d.fields.Reap(e.ms, max, func(id uint32) { e.due = append(e.due, id) })
	work := 0
	for _, id := range e.due {
		o := d.at(id)
		work += 1 + e.expireFields(d, o, o.coll.(*values.HashValue), max-work)
		e.endUnit(Done)
	}
	return work
}

// expireFields removes up to max dead fields of h, the hash of o, publishes that once, and returns how many they were. An emptied hash is
// removed with its key. A hash with dead fields left is due again at once.
func (e *Engine) expireFields(d *db, o *object, h *values.HashValue, max int) int {
	d.preserve(o)
	e.keyBuf = append(e.keyBuf[:0], o.key...)
	key := e.keyBuf
	n := h.Expire(e.ms, max, func(field []byte) { e.record(d, "HDEL", key, field) })
	d.fields.Set(o.id, h.NextDeadline())
	if n == 0 {
		return 0
	}
	e.stats.expiredFields += int64(n)
	e.notify(d, notifyHash, "hexpired", key)
	if h.Len() == 0 {
		d.drop(o)
		e.notify(d, notifyGeneric, "del", key)
	}
	e.touched(d, key, nil)
	return n
}
