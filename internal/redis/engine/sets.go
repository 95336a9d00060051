package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// setCommands are about one set; see setalgebra.go for several.
var setCommands = []Command{
	{Name: "sadd", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatSet, Keys: oneKey, run: saddCommand},
	{Name: "srem", Arity: -3, Flags: Write | Fast, Cats: CatSet, Keys: oneKey, run: func(c *call) { removeMembers[*values.SetValue](c, notifySet) }},
	{Name: "sismember", Arity: 3, Flags: ReadOnly | Fast, Cats: CatSet, Keys: oneKey, run: sismemberCommand},
	{Name: "smismember", Arity: -3, Flags: ReadOnly | Fast, Cats: CatSet, Keys: oneKey, run: smismemberCommand},
	{Name: "smembers", Arity: 2, Flags: ReadOnly, Cats: CatSet, Keys: oneKey, run: smembersCommand},
	{Name: "scard", Arity: 2, Flags: ReadOnly | Fast, Cats: CatSet, Keys: oneKey, run: replyLen[*values.SetValue]},
	{Name: "spop", Arity: -2, Flags: Write | Fast, Cats: CatSet, Keys: oneKey, run: spopCommand},
	{Name: "srandmember", Arity: -2, Flags: ReadOnly, Cats: CatSet, Keys: oneKey, run: srandmemberCommand},
	{Name: "smove", Arity: 4, Flags: Write | Fast, Cats: CatSet, Keys: twoKeys, run: smoveCommand},
	{Name: "sscan", Arity: -3, Flags: ReadOnly, Cats: CatSet, Keys: oneKey, run: sscanCommand},
}

func saddCommand(c *call) {
	key, members := c.args[1], c.args[2:]
	s := writeAs[*values.SetValue](c, key)
	if c.failed {
		return
	}
	if s == nil {
		s = values.NewSetFor(members[0], len(members), c.e.limits)
		c.add(key, s)
	} else {
		s.Grow(len(members), c.e.limits)
	}
	added := 0
	for _, m := range members {
		if s.Add(m, c.e.limits) {
			added++
		}
	}
	if added > 0 {
		c.wrote(key, added, notifySet, "sadd")
	}
	c.number(added)
}

func sismemberCommand(c *call) {
	if s := readAs[*values.SetValue](c, c.args[1]); !c.failed {
		c.yes(s.Has(c.args[2]))
	}
}

func smismemberCommand(c *call) {
	s := readAs[*values.SetValue](c, c.args[1])
	if c.failed {
		return
	}
	c.out.Array(len(c.args) - 2)
	for _, m := range c.args[2:] {
		c.yes(s.Has(m))
	}
}

func smembersCommand(c *call) {
	if s := readAs[*values.SetValue](c, c.args[1]); !c.failed {
		c.members(s)
	}
}

// members replies with all members of s.
func (c *call) members(s *values.SetValue) {
	c.out.Set(s.Len())
	if ints, ok := s.Ints(); ok {
		for _, n := range ints {
			c.out.BulkInt(n)
		}
		return
	}
	for m := range s.Each {
		c.out.BulkString(m)
	}
}

func spopCommand(c *call) {
	if len(c.args) > 3 {
		c.fail(errSyntax)
	}
	n, counted := c.countArg()
	key := c.args[1]
	s := writeAs[*values.SetValue](c, key)
	switch {
	case c.failed:
	case !counted && s == nil:
		c.out.Null()
	case !counted:
		m := s.Random(c.e.draw)
		s.Remove(values.Bytes(m))
		c.popped(key, s, []string{m})
		c.out.BulkString(m)
	case s == nil || n == 0:
		c.out.Set(0)
	default:
		members := s.Pop(n, c.e.draw, c.e.limits)
		c.popped(key, s, members)
		c.out.Set(len(members))
		for _, m := range members {
			c.out.BulkString(m)
		}
	}
}

// countArg reads the optional count of SPOP, LPOP and ZPOPMIN at argument 2.
func (c *call) countArg() (n int, counted bool) {
	if len(c.args) < 3 {
		return 1, false
	}
	return int(c.intFrom(2, 0, errPositive)), true
}

// popped finishes SPOP. Its members were chosen at random, so their removal is what gets recorded.
func (c *call) popped(key []byte, s *values.SetValue, members []string) {
	c.wrote(key, len(members), notifySet, "spop")
	if s.Len() == 0 {
		c.rewrite(c.e.removalVerb(), key)
	} else {
		c.rewrite("SREM", key, members)
	}
	c.removeIfEmpty(key, s)
}

// signed reads argument i as the count of SRANDMEMBER and its relatives; the smallest integer is not allowed.
func (c *call) signed(i int) int {
	n := c.int(i)
	if n == math.MinInt64 {
		c.fail("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
	}
	return int(n)
}

func srandmemberCommand(c *call) {
	n, _ := c.randomCount("")
	s := readAs[*values.SetValue](c, c.args[1])
	one := func() { c.out.BulkString(s.Random(c.e.draw)) }
	c.replyRandom(c.failed || s.Len() == 0, n, false, one, func() { c.texts(s.Sample(n, c.e.draw)) })
}

// mostRepeats limits replies in which elements may repeat. Redis has no limit: it runs out of memory and dies.
const mostRepeats = 1 << 26

// repeats reports whether a reply may have n elements; if not, the command fails.
func (c *call) repeats(n int) bool {
	if n > mostRepeats {
		c.fail(errValueRange)
		return false
	}
	return true
}

const errValueRange = "ERR value is out of range"

func smoveCommand(c *call) {
	from, to, member := c.args[1], c.args[2], c.args[3]
	src := c.write(from)
	dst := c.write(to)
	s := valueAs[*values.SetValue](c, src)
	if c.failed {
		return
	}
	if s == nil {
		c.out.Int(0)
		return
	}
	d := valueAs[*values.SetValue](c, dst)
	switch {
	case c.failed:
		return
	case s == d:
		c.yes(s.Has(member))
		return
	case !s.Remove(member):
		c.out.Int(0)
		return
	}
	c.notify(notifySet, "srem", from)
	c.removeIfEmpty(from, s)
	if d == nil {
		d = values.NewSetFor(member, 1, c.e.limits)
		c.add(to, d)
	}
	c.changed(from, 1)
	if d.Add(member, c.e.limits) {
		c.wrote(to, 1, notifySet, "sadd")
	}
	c.out.Int(1)
}

func sscanCommand(c *call) {
	s, o, ok := scanned[*values.SetValue](c)
	if !ok {
		return
	}
	var found []string
	cursor := s.Scan(o.cursor, o.count, func(m string) {
		if o.matches(m) {
			found = append(found, m)
		}
	})
	c.cursor(cursor)
	c.texts(found)
}
