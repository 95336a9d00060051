package engine

import (
	"math"
	"strconv"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// hashCommands are the hashes; commands about field deadlines are in fieldexpiry.go and fieldvalues.go.
var hashCommands = []Command{
	{Name: "hset", Arity: -4, Flags: Write | DenyOOM | Fast, Cats: CatHash, Keys: oneKey, run: hsetCommand},
	{Name: "hmset", Arity: -4, Flags: Write | DenyOOM | Fast, Cats: CatHash, Keys: oneKey, run: hsetCommand},
	{Name: "hsetnx", Arity: 4, Flags: Write | DenyOOM | Fast, Cats: CatHash, Keys: oneKey, run: hsetnxCommand},
	{Name: "hget", Arity: 3, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: hgetCommand},
	{Name: "hmget", Arity: -3, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: hmgetCommand},
	{Name: "hgetall", Arity: 2, Flags: ReadOnly, Cats: CatHash, Keys: oneKey, run: hgetallCommand},
	{Name: "hkeys", Arity: 2, Flags: ReadOnly, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.column(true) }},
	{Name: "hvals", Arity: 2, Flags: ReadOnly, Cats: CatHash, Keys: oneKey, run: func(c *call) { c.column(false) }},
	{Name: "hlen", Arity: 2, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: replyLen[*values.HashValue]}, // counts dead fields too, as Redis does, until they are reaped,
	{Name: "hstrlen", Arity: 3, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: hstrlenCommand},
	{Name: "hexists", Arity: 3, Flags: ReadOnly | Fast, Cats: CatHash, Keys: oneKey, run: hexistsCommand},
	{Name: "hdel", Arity: -3, Flags: Write | Fast, Cats: CatHash, Keys: oneKey, run: hdelCommand},
	{Name: "hincrby", Arity: 4, Flags: Write | DenyOOM | Fast, Cats: CatHash, Keys: oneKey, run: hincrbyCommand},
	{Name: "hincrbyfloat", Arity: 4, Flags: Write | DenyOOM | Fast, Cats: CatHash, Keys: oneKey, run: hincrbyfloatCommand},
	{Name: "hrandfield", Arity: -2, Flags: ReadOnly, Cats: CatHash, Keys: oneKey, run: hrandfieldCommand},
	{Name: "hscan", Arity: -3, Flags: ReadOnly, Cats: CatHash, Keys: oneKey, run: hscanCommand},
}

// hash is a hash that a command works on, with its object.
type hash struct {
	*values.HashValue
	o     *object
	armed int64 // the earliest field deadline when the command began, as the index has it
}

// noHash stands for a missing key: it is empty and never changed.
var noHash = hash{HashValue: emptyAs[*values.HashValue]()}

// readHash returns the hash at key for reading; the command fails if the key holds another type.
func (c *call) readHash(key []byte) hash { return c.asHash(c.read(key)) }

// writeHash is readHash for a command that will change the hash.
func (c *call) writeHash(key []byte) hash { return c.asHash(c.write(key)) }

func (c *call) asHash(o *object) hash {
	if v := valueAs[*values.HashValue](c, o); v != nil {
		return hash{v, o, v.NextDeadline()}
	}
	return noHash
}

func (h hash) missing() bool { return h.o == nil }

// orNewHash returns h or, if it is missing, an empty hash stored at key.
func (c *call) orNewHash(h hash, key []byte) hash {
	if h.missing() {
		v := values.NewHash()
		h = hash{v, c.add(key, v), expiry.None}
	}
	return h
}

// rearmed brings the index of field deadlines in step with h after a change.
func (c *call) rearmed(h hash) {
	if h.NextDeadline() != h.armed {
		c.rearm(h.o)
	}
}

// hsetCommand is HSET and HMSET, which differ only in their replies.
func hsetCommand(c *call) {
	if len(c.args)%2 != 0 {
		c.fail(wrongArity(c.cmd.Name))
	}
	key, pairs := c.args[1], c.args[2:]
	h := c.writeHash(key)
	if c.failed {
		return
	}
	h = c.orNewHash(h, key)
	h.Fit(pairs, c.e.limits)
	added := 0
	for i := 0; i < len(pairs); i += 2 {
		if h.Set(pairs[i], pairs[i+1], false, c.e.limits) {
			added++
		}
	}
	c.rearmed(h)
	c.wrote(key, len(pairs)/2, notifyHash, "hset")
	if c.cmd.Name == "hmset" {
		c.ok()
	} else {
		c.number(added)
	}
}

func hsetnxCommand(c *call) {
	key, field := c.args[1], c.args[2]
	h := c.writeHash(key)
	if c.failed {
		return
	}
	if _, _, exists := c.field(&h, key, field); exists {
		c.out.Int(0)
		return
	}
	h = c.orNewHash(h, key)
	h.Fit(c.args[2:], c.e.limits)
	h.Set(field, c.args[3], false, c.e.limits)
	c.wrote(key, 1, notifyHash, "hset")
	c.out.Int(1)
}

func hgetCommand(c *call) {
	if h := c.readHash(c.args[1]); !c.failed {
		value, _, ok := c.field(&h, c.args[1], c.args[2])
		c.bulk(value, ok)
	}
}

func hmgetCommand(c *call) {
	key, fields := c.args[1], c.args[2:]
	h := c.readHash(key)
	if c.failed {
		return
	}
	c.out.Array(len(fields))
	dropped := 0
	for _, field := range fields {
		value, _, ok := c.fieldQuietly(h, key, field, &dropped)
		c.bulk(value, ok)
	}
	switch {
	case dropped == 0:
	case dropped == 1 && h.Len() == 0:
		c.remove(key) // Redis publishes nothing when HMGET drops a single field and it was the hash's last
	default:
		c.notify(notifyHash, "hexpired", key)
		c.removeIfEmpty(key, h.HashValue)
	}
}

func hgetallCommand(c *call) {
	if h := c.readHash(c.args[1]); !c.failed {
		c.out.Map(c.alive(h))
		c.pairs(h, true, true)
	}
}

// column replies with the fields of a hash, or with their values.
func (c *call) column(fields bool) {
	if h := c.readHash(c.args[1]); !c.failed {
		c.out.Array(c.alive(h))
		c.pairs(h, fields, !fields)
	}
}

// alive returns how many fields of h are readable.
func (c *call) alive(h hash) int { return h.Len() - h.Dead(c.e.ms) }

// pairs replies with the living fields of h, their values, or both. Dead fields are hidden but not removed.
func (c *call) pairs(h hash, fields, vals bool) {
	h.Each(func(field, value []byte, deadline int64) bool {
		if expiry.Dead(deadline, c.e.ms) {
			return true
		}
		if fields {
			c.out.Bulk(field)
		}
		if vals {
			c.out.Bulk(value)
		}
		return true
	})
}

func hstrlenCommand(c *call) {
	if h := c.readHash(c.args[1]); !c.failed {
		value, _, _ := c.field(&h, c.args[1], c.args[2])
		c.number(len(value))
	}
}

func hexistsCommand(c *call) {
	if h := c.readHash(c.args[1]); !c.failed {
		_, _, exists := c.field(&h, c.args[1], c.args[2])
		c.yes(exists)
	}
}

// hdelCommand counts a dead, unreaped field as removed.
func hdelCommand(c *call) {
	key := c.args[1]
	h := c.writeHash(key)
	if c.failed {
		return
	}
	removed := 0
	for _, field := range c.args[2:] {
		if h.Remove(field) {
			removed++
		}
	}
	c.rearmed(h)
	c.took(key, h.HashValue, removed, notifyHash, "hdel")
	c.number(removed)
}

func hincrbyCommand(c *call) {
	by := c.int(3)
	key, field := c.args[1], c.args[2]
	h := c.writeHash(key)
	if c.failed {
		return
	}
	var n int64
	if text, _, exists := c.field(&h, key, field); exists {
		var ok bool
		if n, ok = values.ParseInt(text); !ok {
			c.fail("ERR hash value is not an integer")
			return
		}
	}
	if by > 0 && n > math.MaxInt64-by || by < 0 && n < math.MinInt64-by {
		c.fail(errOverflow)
		return
	}
	var digits [20]byte
	c.setNumber(h, strconv.AppendInt(digits[:0], n+by, 10), "hincrby")
	c.out.Int(n + by)
}

func hincrbyfloatCommand(c *call) {
	by := c.float(c.args[3], errNotFloat)
	if f, ok := values.ParseFloat(c.args[3]); ok && math.IsInf(f, 0) {
		c.fail("ERR value is NaN or Infinity")
	}
	key, field := c.args[1], c.args[2]
	h := c.writeHash(key)
	if c.failed {
		return
	}
	text, deadline, exists := c.field(&h, key, field)
	var f values.Float
	if exists {
		if f = c.float(text, "ERR hash value is not a float"); c.failed {
			return
		}
	}
	sum, ok := f.Add(by)
	if !ok {
		c.fail(errNaN)
		return
	}
	result := sum.Append(nil)
	c.setNumber(h, result, "hincrbyfloat")
	if deadline == expiry.None {
		c.rewrite("HSET", key, field, result)
	} else { // Redis records HSET here too, whose replay removes the deadline
		c.rewrite("HSETEX", key, "KEEPTTL", "FIELDS", 1, field, result)
	}
	c.out.Bulk(result)
}

// setNumber ends HINCRBY and HINCRBYFLOAT: the field keeps its deadline.
func (c *call) setNumber(h hash, text []byte, event string) {
	key, field := c.args[1], c.args[2]
	h = c.orNewHash(h, key)
	h.Set(field, text, true, c.e.limits)
	c.wrote(key, 1, notifyHash, event)
}
