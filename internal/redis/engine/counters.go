package engine

import (
	"math"
	"strconv"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// counterCommands treat strings as numbers.
var counterCommands = []Command{
	{Name: "incr", Arity: 2, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: func(c *call) { c.increase(1) }},
	{Name: "decr", Arity: 2, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: func(c *call) { c.increase(-1) }},
	{Name: "incrby", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: func(c *call) { c.increase(c.int(2)) }},
	{Name: "decrby", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: decrbyCommand},
	{Name: "incrbyfloat", Arity: 3, Flags: Write | DenyOOM | Fast, Cats: CatString, Keys: oneKey, run: incrbyfloatCommand},
}

func decrbyCommand(c *call) {
	n := c.int(2)
	if n == math.MinInt64 {
		c.fail("ERR decrement would overflow")
	}
	c.increase(-n)
}

// increase adds n to the number at key, 0 if there is none, and keeps the deadline.
func (c *call) increase(n int64) {
	key := c.args[1]
	o := c.writeString(key)
	var value int64
	if o != nil {
		var ok bool
		if value, ok = values.ParseInt(o.str); !ok {
			c.fail(errNotInteger)
		}
	}
	sum := value + n
	if n > 0 && sum < value || n < 0 && sum > value {
		c.fail(errOverflow)
	}
	if c.failed {
		return
	}
	if o == nil {
		var digits [20]byte
		c.addString(key, strconv.AppendInt(digits[:0], sum, 10), integer)
	} else {
		o.str = strconv.AppendInt(o.str[:0], sum, 10)
		o.setEncoding(integer)
	}
	c.wrote(key, 1, notifyString, "incrby")
	c.out.Int(sum)
}

func incrbyfloatCommand(c *call) {
	key := c.args[1]
	o := c.writeString(key)
	var value values.Float
	if o != nil {
		value = c.float(o.str, errNotFloat)
	}
	by := c.float(c.args[2], errNotFloat)
	if c.failed {
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
	c.wrote(key, 1, notifyString, "incrbyfloat")
	c.rewrite("SET", key, text, "KEEPTTL")
	c.reply(o)
}

// float reads text as a number of any size; the command fails with wrong if it is not one.
func (c *call) float(text []byte, wrong string) values.Float {
	f, ok := values.ParseBigFloat(text)
	if !ok {
		c.fail(wrong)
	}
	return f
}
