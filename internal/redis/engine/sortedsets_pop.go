package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// zpopCommands take members off the ends of sorted sets, or wait for some.
var zpopCommands = []Command{
	{Name: "zpopmin", Arity: -2, Flags: Write | Fast, Cats: CatSortedSet, Keys: oneKey, run: zpopminCommand},
	{Name: "zpopmax", Arity: -2, Flags: Write | Fast, Cats: CatSortedSet, Keys: oneKey, run: zpopmaxCommand},
	{Name: "zmpop", Arity: -4, Flags: Write | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zmpopCommand},
	{Name: "bzpopmin", Arity: -3, Flags: Write | Blocking | Fast, Cats: CatSortedSet, Keys: Keys{First: 1, Last: -2, Step: 1}, run: bzpopminCommand},
	{Name: "bzpopmax", Arity: -3, Flags: Write | Blocking | Fast, Cats: CatSortedSet, Keys: Keys{First: 1, Last: -2, Step: 1}, run: bzpopmaxCommand},
	{Name: "bzmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: waitCountedKeys}, run: bzmpopCommand},
}

// waitCountedKeys is countedKeys behind a timeout.
func waitCountedKeys(args [][]byte) []int { return countedFrom(args, 2) }

func zpopminCommand(c *call) { zpop(c, false) }
func zpopmaxCommand(c *call) { zpop(c, true) }

func zpop(c *call, max bool) {
	if len(c.args) > 3 {
		c.fail(errSyntax)
		return
	}
	n, counted := 1, len(c.args) == 3
	if counted {
		var ok bool
		if n, ok = c.positive(2); !ok {
			return
		}
	}
	key := c.args[1]
	z, ok := writeAs[*values.ZSetValue](c, key)
	switch {
	case !ok:
	case z == nil || n == 0:
		c.out.Array(0)
	case counted:
		n = min(n, z.Len())
		c.scoredHead(n, true)
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
	c.zremoved(key, z, n, event)
}

// firstZSet returns the first of keys that holds a sorted set; nil if none does; not ok if one before holds something else, which was
// replied.
func (c *call) firstZSet(keys [][]byte) (key []byte, z *values.ZSetValue, ok bool) {
	for _, key := range keys {
		z, ok := writeAs[*values.ZSetValue](c, key)
		if !ok || z != nil {
			return key, z, ok
		}
	}
	return nil, nil, true
}

func zmpopCommand(c *call) {
	if m, ok := c.zmpopOptions(1); ok && !m.pop(c) {
		c.out.NullArray()
	}
}

func bzmpopCommand(c *call) {
	m, ok := c.zmpopOptions(2)
	if !ok {
		return
	}
	if deadline, ok := c.waitUntil(1); ok && !m.pop(c) {
		c.park(m.keys, values.ZSet, deadline)
	}
}

// zmpop is what ZMPOP and BZMPOP are asked for.
type zmpop struct {
	keys  [][]byte
	max   bool
	count int
}

// zmpopOptions reads the number of keys at argument i and what follows.
func (c *call) zmpopOptions(i int) (m zmpop, ok bool) {
	n, ok := values.ParseInt(c.args[i])
	if !ok || n < 1 {
		c.fail("ERR numkeys should be greater than 0")
		return m, false
	}
	if n > int64(len(c.args)-i-2) {
		c.fail(errSyntax)
		return m, false
	}
	i++
	m.keys, i = c.args[i:i+int(n)], i+int(n)
	switch {
	case c.is(i, "MAX"):
		m.max = true
	case !c.is(i, "MIN"):
		c.fail(errSyntax)
		return m, false
	}
	for i++; i < len(c.args); i += 2 {
		if m.count != 0 || !c.is(i, "COUNT") || i+1 == len(c.args) {
			c.fail(errSyntax)
			return m, false
		}
		n, ok := values.ParseInt(c.args[i+1])
		if !ok || n < 1 {
			c.fail("ERR count should be greater than 0")
			return m, false
		}
		m.count = int(n)
	}
	m.count = max(m.count, 1)
	return m, true
}

// pop replies what it takes from the first sorted set that there is; false if there is none.
func (m *zmpop) pop(c *call) bool {
	key, z, ok := c.firstZSet(m.keys)
	if !ok || z == nil {
		return !ok
	}
	n := min(m.count, z.Len())
	c.out.Array(2)
	c.out.Bulk(key)
	c.out.Array(n)
	pair := c.flat
	c.recordPop(key, n, m.max)
	c.zpopped(key, z, n, m.max, func(member string, score float64) bool {
		c.out.Array(2)
		return pair(member, score)
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

func bzpopminCommand(c *call) { bzpop(c, false) }
func bzpopmaxCommand(c *call) { bzpop(c, true) }

func bzpop(c *call, max bool) {
	last := len(c.args) - 1
	deadline, ok := c.waitUntil(last)
	if !ok {
		return
	}
	keys := c.args[1:last]
	key, z, ok := c.firstZSet(keys)
	switch {
	case !ok:
	case z == nil:
		c.park(keys, values.ZSet, deadline)
	default:
		c.recordPop(key, 1, max)
		c.out.Array(3)
		c.out.Bulk(key)
		c.zpopped(key, z, 1, max, c.flat)
	}
}
