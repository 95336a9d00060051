package engine

import (
	"bytes"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// keyCommands handle keys of any type.
var keyCommands = []Command{
	{Name: "del", Arity: -2, Flags: Write, Cats: CatKeyspace, Keys: allKeys, run: delCommand},
	{Name: "unlink", Arity: -2, Flags: Write | Fast, Cats: CatKeyspace, Keys: allKeys, run: delCommand},
	{Name: "exists", Arity: -2, Flags: ReadOnly | Fast, Cats: CatKeyspace, Keys: allKeys, run: func(c *call) { c.count(c.peek) }},
	{Name: "touch", Arity: -2, Flags: ReadOnly | Fast, Cats: CatKeyspace, Keys: allKeys, run: func(c *call) { c.count(c.read) }},
	{Name: "type", Arity: 2, Flags: ReadOnly | Fast, Cats: CatKeyspace, Keys: oneKey, run: typeCommand},
	{Name: "rename", Arity: 3, Flags: Write, Cats: CatKeyspace, Keys: twoKeys, run: renameCommand},
	{Name: "renamenx", Arity: 3, Flags: Write | Fast, Cats: CatKeyspace, Keys: twoKeys, run: renameCommand},
	{Name: "copy", Arity: -3, Flags: Write | DenyOOM, Cats: CatKeyspace, Keys: twoKeys, run: copyCommand},
	{Name: "move", Arity: 3, Flags: Write | Fast, Cats: CatKeyspace, Keys: oneKey, run: moveCommand},
}

// delCommand is DEL and UNLINK, which are the same here: there is nothing to free later.
func delCommand(c *call) {
	n := 0
	for _, key := range c.args[1:] {
		if c.live(key) != nil && c.delete(key) {
			n++
		}
	}
	c.number(n)
}

// count replies with the number of arguments that are keys, as find finds them: EXISTS and TOUCH.
func (c *call) count(find func(key []byte) *object) {
	n := 0
	for _, key := range c.args[1:] {
		if find(key) != nil {
			n++
		}
	}
	c.number(n)
}

func typeCommand(c *call) {
	kind := values.Missing
	if o := c.peek(c.args[1]); o != nil {
		kind = o.kind()
	}
	c.out.Simple(kind.String())
}

// renameCommand is RENAME and RENAMENX: the key keeps its value and deadline.
func renameCommand(c *call) {
	from, to, nx := c.args[1], c.args[2], c.cmd.Name == "renamenx"
	o := c.write(from)
	if o == nil {
		c.fail(errNoSuchKey)
		return
	}
	same := bytes.Equal(from, to)
	switch {
	case same && !nx:
		c.ok()
		return
	case same, c.write(to) != nil && nx:
		c.out.Int(0)
		return
	}
	c.remove(to)
	c.db.rename(o, to)
	c.notify(notifyNew, "new", to)
	c.e.signal(c.db, o)
	c.changed(from, 0)
	c.changed(to, 1)
	c.notify(notifyGeneric, "rename_from", from)
	c.notify(notifyGeneric, "rename_to", to)
	if nx {
		c.out.Int(1)
	} else {
		c.ok()
	}
}

func copyCommand(c *call) {
	from, to := c.args[1], c.args[2]
	source, target, replace := c.db, c.db, false
	for o := c.options(3); o.more(); {
		switch {
		case o.word("REPLACE", 0):
			replace = true
		case o.word("DB", 1):
			target = c.database(o.next())
		default:
			c.fail(errSyntax)
		}
	}
	if source == target && bytes.Equal(from, to) {
		c.fail(errSameObject)
	}
	o := c.read(from)
	switch {
	case c.failed:
		return
	case o == nil:
		c.out.Int(0)
		return
	}
	deadline := source.deadline(o)

	c.db = target
	if c.write(to) != nil {
		if !replace {
			c.out.Int(0)
			return
		}
		c.remove(to)
	}
	var twin *object
	if o.coll != nil {
		twin = c.add(to, o.coll.Clone())
	} else {
		enc := o.stringEncoding()
		if enc == integer {
			enc = lone
		}
		twin = c.addString(to, o.str, enc)
	}
	c.setDeadline(twin, deadline)
	c.wrote(to, 1, notifyGeneric, "copy_to")
	c.out.Int(1)
}

// database reads argument i as the number of a database.
func (c *call) database(i int) *db {
	id := c.smallInt(i)
	if id < 0 || id >= Databases || id > 0 && c.e.options.Cluster != nil {
		c.fail(errInvalidDB)
		return nil
	}
	return c.e.dbs[id]
}

func moveCommand(c *call) {
	if c.e.options.Cluster != nil {
		c.fail("ERR MOVE is not allowed in cluster mode")
		return
	}
	key, source := c.args[1], c.db
	target := c.database(2)
	if source == target {
		c.fail(errSameObject)
	}
	o := c.write(key)
	if c.failed {
		return
	}
	if c.db = target; o == nil || c.write(key) != nil {
		c.out.Int(0)
		return
	}
	moved, deadline := *o, source.deadline(o)
	source.drop(o)
	if moved.coll != nil {
		o = c.add(key, moved.coll)
	} else {
		o = c.addString(key, nil, raw)
		o.str = moved.str
	}
	o.bits = moved.bits
	if deadline != expiry.None {
		c.setDeadline(o, deadline)
	}
	c.e.touched(source, key, c.s)
	c.changed(key, 1)
	c.e.notify(source, notifyGeneric, "move_from", key)
	c.notify(notifyGeneric, "move_to", key)
	c.out.Int(1)
}
