package engine

import (
	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// db is one database. Only the verbs below change its keyspace, which keeps slots, deadlines and blocked sessions in step.
type db struct {
	index int
	keyspace
	watched map[string][]*Session // by key, the sessions watching it
	blocked map[string][]*waiter  // by key, the sessions blocked on it, first come first
}

// keyspace is what SWAPDB swaps and FLUSHDB drops: objects in slots. An object keeps its slot number for life; the number is the cursor of
// SCAN, what RANDOMKEY draws, and the object's id in both indexes.
type keyspace struct {
	names     names
	pages     []*page
	slots     uint32   // slots ever used
	free      []uint32 // slots without an object, the latest last
	deadlines expiry.Index
	fields    expiry.Index // by hash: the earliest deadline of its fields
	scales                 // used only with a memory limit
	parts     []*part      // of snapshots in progress
	live      uint32       // pages that have not been given back
	patience  int          // how many more keys go before release is considered
}

// page keeps its objects at a fixed address while the keyspace grows.
type page [pageSize]object

const pageSize = 128

// at returns the object in a slot, which must exist; see release.go.
func (k *keyspace) at(id uint32) *object {
	if p := k.pages[id/pageSize]; p != nil {
		return &p[id%pageSize]
	}
	return &vacant
}

func (k *keyspace) len() int { return k.names.count }

// deadline returns when o expires, or expiry.None.
func (k *keyspace) deadline(o *object) int64 { return k.deadlines.Deadline(o.id) }

// dead reports whether o has expired and must be hidden.
func (d *db) dead(o *object, ms int64) bool { return expiry.Dead(d.deadlines.Deadline(o.id), ms) }

// each calls do with every object, dead ones included. do must not add keys; it may remove the object it was given.
func (k *keyspace) each(do func(o *object)) {
	for id := uint32(0); id < k.slots; id++ { // do may reduce slots
		if o := k.at(id); o.kind() != values.Missing {
			do(o)
		}
	}
}

// insert gives key, which must be absent, a slot and an object without a value.
func (k *keyspace) insert(key []byte) *object {
	var id uint32
	if n := len(k.free); n > 0 {
		id, k.free = k.free[n-1], k.free[:n-1]
	} else {
		id = k.slots
		k.slots++
		if id%pageSize == 0 {
			k.pages = append(k.pages, nil)
		}
	}
	for _, p := range k.parts {
		p.skip(id)
	}
	if p := &k.pages[id/pageSize]; *p == nil {
		*p = new(page)
		k.live++
	}
	o := k.at(id)
	o.key, o.id = string(key), id
	k.names.add(nameTag(key), id)
	return o
}

// drop removes o and frees its slot.
func (k *keyspace) drop(o *object) {
	k.preserve(o)
	k.unweigh(o)
	k.deadlines.Remove(o.id)
	k.fields.Remove(o.id)
	k.names.remove(o.tag(), o.id)
	k.free = append(k.free, o.id)
	*o = object{}
	k.dropped()
}

// rename changes o's key to to, which must be absent. o stays in its slot, with its deadline.
func (k *keyspace) rename(o *object, to []byte) {
	k.preserve(o)
	k.names.remove(o.tag(), o.id)
	o.key = string(to)
	k.names.add(o.tag(), o.id)
}

// live returns the object of key in d, or nil. A dead one is removed here, unless the engine hides dead keys: this is lazy expiry.
func (e *Engine) live(d *db, key []byte) *object {
	o := d.find(key)
	if o != nil && d.dead(o, e.ms) {
		if !e.hides() {
			e.expire(d, o)
		}
		return nil
	}
	return o
}

// expire removes a dead object, whether reaped or found by a command.
func (e *Engine) expire(d *db, o *object) {
	e.stats.expiredKeys++
	e.lose(d, o, notifyExpired, "expired")
}

// lose removes an object that no command asked to remove: it expired or was evicted.
func (e *Engine) lose(d *db, o *object, class notifyClass, event string) {
	e.keyBuf = append(e.keyBuf[:0], o.key...)
	d.drop(o)
	e.notify(d, class, event, e.keyBuf)
	e.touched(d, e.keyBuf, nil)
	e.record(d, e.removalVerb(), e.keyBuf)
}

// The verbs of handlers. None of them announces the change: the handler calls call.changed once, at the end.

// addString makes key, which must be absent, hold a copy of b.
func (c *call) addString(key, b []byte, enc encoding) *object {
	o := c.db.insert(key)
	o.setString(b, enc)
	c.born(o, key)
	return o
}

// add makes key, which must be absent, hold v.
func (c *call) add(key []byte, v values.Value) *object {
	o := c.db.insert(key)
	o.setValue(v)
	c.born(o, key)
	c.rearm(o)
	return o
}

func (c *call) born(o *object, key []byte) {
	o.birth(c.e)
	c.notify(notifyNew, "new", key)
	c.e.signal(c.db, o)
}

// setString makes key hold a copy of b, whatever it held before, and removes its deadline unless keepTTL. o is what the command found at key,
// or nil.
func (c *call) setString(o *object, key, b []byte, keepTTL bool) *object {
	if o == nil {
		return c.addString(key, b, encodingOf(b))
	}
	if o.coll != nil {
		c.db.fields.Remove(o.id)
	}
	o.setString(b, encodingOf(b))
	if !keepTTL {
		c.db.deadlines.Remove(o.id)
	}
	return o
}

// set makes key hold v, whatever it held before, without a deadline, as the *STORE commands do. The key must not be dead.
func (c *call) set(key []byte, v values.Value) *object {
	o := c.db.find(key)
	if o == nil {
		return c.add(key, v)
	}
	c.db.preserve(o)
	c.db.deadlines.Remove(o.id)
	o.setValue(v)
	c.rearm(o)
	c.e.signal(c.db, o)
	return o
}

// remove takes key out and reports whether it was there. A caller that must treat a dead key as absent calls live first.
func (c *call) remove(key []byte) bool {
	o := c.db.find(key)
	if o == nil {
		return false
	}
	c.db.drop(o)
	return true
}

// delete is remove plus the notifications of a change.
func (c *call) delete(key []byte) bool {
	if !c.remove(key) {
		return false
	}
	c.wrote(key, 1, notifyGeneric, "del")
	return true
}

// removeIfEmpty removes the key of an emptied value and publishes that: call it after the event of the change itself.
func (c *call) removeIfEmpty(key []byte, v values.Value) bool {
	if v.Len() > 0 || !c.remove(key) {
		return false
	}
	c.notify(notifyGeneric, "del", key)
	return true
}

// took announces that a command took n elements out of the value at key, and removes the key with the last of them.
func (c *call) took(key []byte, v values.Value, n int, class notifyClass, event string) {
	if n > 0 {
		c.wrote(key, n, class, event)
		c.removeIfEmpty(key, v)
	}
}

// removeMembers is SREM and ZREM.
func removeMembers[T interface {
	values.Value
	Remove(member []byte) bool
}](c *call, class notifyClass) {
	key := c.args[1]
	v := takeAs[T](c, key)
	if c.failed {
		return
	}
	removed := 0
	for _, member := range c.args[2:] {
		if v.Remove(member) {
			removed++
		}
	}
	c.took(key, v, removed, class, c.cmd.Name)
	c.number(removed)
}

// setDeadline gives o a deadline in unix milliseconds; expiry.None takes it away.
func (c *call) setDeadline(o *object, ms int64) { c.db.deadlines.Set(o.id, ms) }

// rearm brings the index of field deadlines in step with o after a change. Only hashes have field deadlines.
func (c *call) rearm(o *object) {
	if h, ok := o.coll.(*values.HashValue); ok {
		c.db.fields.Set(o.id, h.NextDeadline())
	} else {
		c.db.fields.Remove(o.id)
	}
}
