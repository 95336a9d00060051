package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// zpopCommands take members off the ends of sorted sets, or wait for some.
var zpopCommands = []Command{
	{Name: "zpopmin", Arity: -2, Flags: Write | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zpop(c, false) }},
	{Name: "zpopmax", Arity: -2, Flags: Write | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zpop(c, true) }},
	{Name: "zmpop", Arity: -4, Flags: Write | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zmpopCommand},
	{Name: "bzpopmin", Arity: -3, Flags: Write | Blocking | Fast, Cats: CatSortedSet, Keys: Keys{First: 1, Last: -2, Step: 1}, run: func(c *call) { bzpop(c, false) }},
	{Name: "bzpopmax", Arity: -3, Flags: Write | Blocking | Fast, Cats: CatSortedSet, Keys: Keys{First: 1, Last: -2, Step: 1}, run: func(c *call) { bzpop(c, true) }},
	{Name: "bzmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: waitCountedKeys}, run: bzmpopCommand},
}

// waitCountedKeys is countedKeys behind a timeout.
func waitCountedKeys(args [][]byte) []int { return countedFrom(args, 2) }

func zpop(c *call, max bool) {
	if len(c.args) > 3 {
		c.fail(errSyntax)
	}
	n, counted := c.countArg()
	key := c.args[1]
	z := writeAs[*values.ZSetValue](c, key)
	switch {
	case c.failed:
	case z == nil || n == 0:
		c.out.Array(0)
	case counted:
		n = min(n, z.Len())
		c.pairHead(n, true)
		c.zpopped(key, z, n, max, c.scored(true))
	default:
		c.out.Array(2)
		c.zpopped(key, z, 1, max, c.flat)
	}
}

// flat replies a member and its score, one after the other also in RESP3.
func (c *call) flat(member string, score float64) bool {
	c.out.BulkString(member)
	c.out.Double(score)
	return true
}

// zpopped takes n members off the low or the high end of z and hands them to reply, from the end inwards.
func (c *call) zpopped(key []byte, z *values.ZSetValue, n int, max bool, reply func(member string, score float64) bool) {
	from, to, event := 0, n, "zpopmin"
	if max {
		from, to, event = z.Len()-n, z.Len(), "zpopmax"
	}
	z.Each(from, to, max, reply)
	z.RemoveRanks(from, to)
	c.took(key, z, n, notifyZSet, event)
}

func zmpopCommand(c *call) {
	if !c.zpopFirst(c.multiPop(1, "MIN", "MAX")) && !c.failed {
		c.out.NullArray()
	}
}

func bzmpopCommand(c *call) {
	o := c.multiPop(2, "MIN", "MAX")
	deadline := c.waitUntil(1)
	if !c.zpopFirst(o) && !c.failed {
		c.park(o.keys, values.ZSet, deadline)
	}
}

// zpopFirst is popFirst for sorted sets.
func (c *call) zpopFirst(o multiPop) bool {
	key, z, found := firstOf[*values.ZSetValue](c, o.keys)
	if !found {
		return false
	}
	n, max := min(o.count, z.Len()), o.where == right
	c.out.Array(2)
	c.out.Bulk(key)
	c.out.Array(n)
	c.recordPop(key, n, max)
	c.zpopped(key, z, n, max, func(member string, score float64) bool {
		c.out.Array(2)
		return c.flat(member, score)
	})
	return true
}

// recordPop records a pop of one of several keys as what it came to.
func (c *call) recordPop(key []byte, n int, max bool) {
	if !c.recording() {
		return
	}
	verb := "ZPOPMIN"
	if max {
		verb = "ZPOPMAX"
	}
	c.rewrite([]byte(verb), key, decimal(int64(n)))
}

func bzpop(c *call, max bool) {
	waitFor(c, values.ZSet, func(key []byte, z *values.ZSetValue) {
		c.recordPop(key, 1, max)
		c.out.Array(3)
		c.out.Bulk(key)
		c.zpopped(key, z, 1, max, c.flat)
	})
}
