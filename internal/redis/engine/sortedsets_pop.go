package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// zpopCommands remove members from the ends of sorted sets; some wait for members.
var zpopCommands = []Command{
	{Name: "zpopmin", Arity: -2, Flags: Write | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zpop(c, left) }},
	{Name: "zpopmax", Arity: -2, Flags: Write | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zpop(c, right) }},
	{Name: "zmpop", Arity: -4, Flags: Write | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zmpopCommand},
	{Name: "bzpopmin", Arity: -3, Flags: Write | Blocking | Fast, Cats: CatSortedSet, Keys: Keys{First: 1, Last: -2, Step: 1}, run: func(c *call) { bzpop(c, left) }},
	{Name: "bzpopmax", Arity: -3, Flags: Write | Blocking | Fast, Cats: CatSortedSet, Keys: Keys{First: 1, Last: -2, Step: 1}, run: func(c *call) { bzpop(c, right) }},
	{Name: "bzmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: waitCountedKeys}, run: zmpopCommand},
}

// waitCountedKeys is countedKeys after a timeout.
func waitCountedKeys(args [][]byte) []int { return countedFrom(args, 2) }

func zpop(c *call, where end) {
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
		c.zpopped(key, z, n, where, c.scored(true))
	default:
		c.out.Array(2)
		c.zpopped(key, z, 1, where, c.flat)
	}
}

// flat replies with a member and its score, one after the other in RESP3 too.
func (c *call) flat(member string, score float64) bool {
	c.out.BulkString(member)
	c.out.Double(score)
	return true
}

// zpopEvent are the events of removing members from the low and the high end, and the commands that record it.
var zpopEvent = [...]string{left: "zpopmin", right: "zpopmax"}

// zpopped removes n members from an end of z and passes them to reply, from the end inwards.
func (c *call) zpopped(key []byte, z *values.ZSetValue, n int, where end, reply func(member string, score float64) bool) {
	from, to := 0, n
	if where == right {
		from, to = z.Len()-n, z.Len()
	}
	z.Each(from, to, where == right, reply)
	z.RemoveRanks(from, to)
	c.took(key, z, n, notifyZSet, zpopEvent[where])
}

// zmpopCommand is ZMPOP and BZMPOP.
func zmpopCommand(c *call) {
	popFirst(c, "MIN", "MAX", zpopEvent, func(key []byte, z *values.ZSetValue, where end, n int) {
		c.out.Array(n)
		c.zpopped(key, z, n, where, func(member string, score float64) bool {
			c.out.Array(2)
			return c.flat(member, score)
		})
	})
}

func bzpop(c *call, where end) {
	waitFor(c, func(key []byte, z *values.ZSetValue) {
		c.rewrite(zpopEvent[where], key, 1)
		c.out.Array(3)
		c.out.Bulk(key)
		c.zpopped(key, z, 1, where, c.flat)
	})
}
