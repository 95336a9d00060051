package engine

import (
	"math"
	"strconv"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// counterCommands treat strings as numbers.
var counterCommands = []Command{
	{Name: "incr", Arity: 2, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: incrCommand},
	{Name: "decr", Arity: 2, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: decrCommand},
	{Name: "incrby", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: incrbyCommand},
	{Name: "decrby", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: decrbyCommand},
	{Name: "incrbyfloat", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: incrbyfloatCommand},
}

func incrCommand(c *call) { c.increase(1) }

func decrCommand(c *call) { c.increase(-1) }

func incrbyCommand(c *call) {
	if n, ok := c.int(2); ok {
		c.increase(n)
	}
}

func decrbyCommand(c *call) {
	n, ok := c.int(2)
	if !ok {
		return
	}
	if n == math.MinInt64 {
		c.fail("ERR decrement would overflow")
		return
	}
	c.increase(-n)
}

// increase adds n to the number at key, 0 if there is none, and keeps the deadline.
func (c *call) increase(n int64) {
	key := c.args[1]
	o, ok := c.writeString(key)
	if !ok {
		return
	}
	var value int64
	if o != nil {
		if value, ok = values.ParseInt(o.str); !ok {
			c.fail(errNotInteger)
			return
		}
	}
	sum := value + n
	if n > 0 && sum < value || n < 0 && sum > value {
		c.fail(errOverflow)
		return
	}
	if o == nil {
		var digits [20]byte
		c.addString(key, strconv.AppendInt(digits[:0], sum, 10), integer)
	} else {
		o.str = strconv.AppendInt(o.str[:0], sum, 10)
		o.setEncoding(integer)
	}
	c.changed(key, 1)
	c.notify(notifyString, "incrby", key)
	c.out.Int(sum)
}

func incrbyfloatCommand(c *call) {
	key := c.args[1]
	o, ok := c.writeString(key)
	if !ok {
		return
	}
	var value values.Float
	if o != nil {
		if value, ok = values.ParseBigFloat(o.str); !ok {
			c.fail(errNotFloat)
			return
		}
	}
	by, ok := values.ParseBigFloat(c.args[2])
	if !ok {
		c.fail(errNotFloat)
		return
	}
	sum, ok := value.Add(by)
	if !ok {
		c.fail(errNaN)
		return
	}
	text := sum.Append(nil)
	if o == nil {
		o = c.addString(key, text, shortOrRaw(text))
	} else {
		o.setString(text, shortOrRaw(text))
	}
	c.changed(key, 1)
	c.notify(notifyString, "incrbyfloat", key)
	if c.recording() {
		c.rewrite([]byte("SET"), key, text, []byte("KEEPTTL"))
	}
	c.reply(o)
}
