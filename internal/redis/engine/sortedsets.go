package engine

import (
	"math"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// sortedSetCommands are about the members of one sorted set. Ranges are in sortedsets_range.go, pops in sortedsets_pop.go, and combinations
// of several sets in zstore.go.
var sortedSetCommands = []Command{
	{Name: "zadd", Arity: -4, Flags: Write | DenyOOM | Fast, Cats: CatSortedSet, Keys: oneKey, run: zaddCommand},
	{Name: "zincrby", Arity: 4, Flags: Write | DenyOOM | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zadd(c, zaddOptions{increment: true}, 2) }},
	{Name: "zrem", Arity: -3, Flags: Write | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { removeMembers[*values.ZSetValue](c, notifyZSet) }},
	{Name: "zscore", Arity: 3, Flags: ReadOnly | Fast, Cats: CatSortedSet, Keys: oneKey, run: zscoreCommand},
	{Name: "zmscore", Arity: -3, Flags: ReadOnly | Fast, Cats: CatSortedSet, Keys: oneKey, run: zmscoreCommand},
	{Name: "zcard", Arity: 2, Flags: ReadOnly | Fast, Cats: CatSortedSet, Keys: oneKey, run: replyLen[*values.ZSetValue]},
	{Name: "zrank", Arity: -3, Flags: ReadOnly | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrank(c, false) }},
	{Name: "zrevrank", Arity: -3, Flags: ReadOnly | Fast, Cats: CatSortedSet, Keys: oneKey, run: func(c *call) { zrank(c, true) }},
	{Name: "zrandmember", Arity: -2, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: zrandmemberCommand},
	{Name: "zscan", Arity: -3, Flags: ReadOnly, Cats: CatSortedSet, Keys: oneKey, run: zscanCommand},
}

const errScoreNaN = "ERR resulting score is not a number (NaN)"

// zaddOptions are the options of ZADD and of ZINCRBY, which is ZADD INCR.
type zaddOptions struct {
	when      condition
	changed   bool // CH: count changed members as well as added ones
	increment bool
}

func zaddCommand(c *call) {
	var o zaddOptions
	for at := 2; at < len(c.args); at++ {
		word := c.conditionWord(at)
		switch {
		case word != 0:
			o.when |= word
		case c.is(at, "CH"):
			o.changed = true
		case c.is(at, "INCR"):
			o.increment = true
		default:
			zadd(c, o, at)
			return
		}
	}
	c.fail(errSyntax)
}

// zadd adds the pairs of score and member from argument at on.
func zadd(c *call, o zaddOptions, at int) {
	key, pairs := c.args[1], c.args[at:]
	switch {
	case len(pairs) == 0 || len(pairs)%2 != 0:
		c.fail(errSyntax)
	case o.when.has(ifNone | ifAny):
		c.fail("ERR XX and NX options at the same time are not compatible")
	case o.when.has(ifLater | ifNone), o.when.has(ifEarlier | ifNone), o.when.has(ifLater | ifEarlier):
		c.fail("ERR GT, LT, and/or NX options at the same time are not compatible")
	case o.increment && len(pairs) > 2:
		c.fail("ERR INCR option supports a single increment-element pair")
	}
	if c.failed {
		return
	}
	var few [8]float64
	scores := few[:0]
	for i := 0; i < len(pairs); i += 2 {
		score, ok := values.ParseFloat(pairs[i])
		if !ok {
			c.fail(errNotFloat)
		}
		scores = append(scores, score)
	}
	z := writeAs[*values.ZSetValue](c, key)
	if c.failed {
		return
	}
	if z == nil {
		if o.when.has(ifAny) {
			if o.increment {
				c.out.Null()
			} else {
				c.out.Int(0)
			}
			return
		}
		z = values.NewZSet()
		z.Grow(len(scores), len(pairs[1]), c.e.limits) // Redis considers only the first member
		c.add(key, z)
	} else {
		z.Grow(len(scores), 0, c.e.limits)
	}
	var added, updated int
	var last float64
	var did zaddResult
	for i, score := range scores {
		last, did = zaddOne(z, pairs[2*i+1], score, o, c.e.limits)
		switch did {
		case zaddAdded:
			added++
		case zaddUpdated:
			updated++
		case zaddNaN:
			c.fail(errScoreNaN)
			return
		}
	}
	switch {
	case !o.increment && o.changed:
		c.number(added + updated)
	case !o.increment:
		c.number(added)
	case did == zaddRefused:
		c.out.Null()
	default:
		c.out.Double(last)
	}
	event := "zadd"
	if o.increment {
		event = "zincr"
	}
	if added+updated > 0 {
		c.wrote(key, added+updated, notifyZSet, event)
	}
}

// zaddResult is the outcome for one pair.
type zaddResult uint8

const (
	zaddSame    zaddResult = iota // the member has this score already
	zaddRefused                   // by an option
	zaddAdded
	zaddUpdated
	zaddNaN
)

// zaddOne adds one pair to z and returns the score that its member then has.
func zaddOne(z *values.ZSetValue, member []byte, score float64, o zaddOptions, l values.Limits) (float64, zaddResult) {
	old, found := z.Score(member)
	if !found {
		if o.when.has(ifAny) {
			return 0, zaddRefused
		}
		z.Set(member, score, l)
		return score, zaddAdded
	}
	if o.when.has(ifNone) {
		return old, zaddRefused
	}
	if o.increment {
		if score += old; math.IsNaN(score) {
			return 0, zaddNaN
		}
	}
	if o.when.has(ifEarlier) && score >= old || o.when.has(ifLater) && score <= old {
		return old, zaddRefused
	}
	if score == old {
		return score, zaddSame
	}
	z.Set(member, score, l)
	return score, zaddUpdated
}

func zscoreCommand(c *call) {
	if z := readAs[*values.ZSetValue](c, c.args[1]); !c.failed {
		c.score(z, c.args[2])
	}
}

func zmscoreCommand(c *call) {
	z := readAs[*values.ZSetValue](c, c.args[1])
	if c.failed {
		return
	}
	c.out.Array(len(c.args) - 2)
	for _, m := range c.args[2:] {
		c.score(z, m)
	}
}

// score replies with the score of member.
func (c *call) score(z *values.ZSetValue, member []byte) {
	if score, ok := z.Score(member); ok {
		c.out.Double(score)
	} else {
		c.out.Null()
	}
}

func zrank(c *call, reverse bool) {
	withScore := len(c.args) > 3
	switch {
	case len(c.args) > 4:
		c.fail(wrongArity(c.cmd.Name))
	case withScore && !c.is(3, "WITHSCORE"):
		c.fail(errSyntax)
	}
	z := readAs[*values.ZSetValue](c, c.args[1])
	if c.failed {
		return
	}
	rank, score, found := z.Rank(c.args[2])
	switch {
	case !found && withScore:
		c.out.NullArray()
		return
	case !found:
		c.out.Null()
		return
	case reverse:
		rank = z.Len() - 1 - rank
	}
	if withScore {
		c.out.Array(2)
	}
	c.number(rank)
	if withScore {
		c.out.Double(score)
	}
}

func zrandmemberCommand(c *call) {
	n, withScores := c.randomCount("WITHSCORES")
	z := readAs[*values.ZSetValue](c, c.args[1])
	reply := c.scored(withScores)
	one := func() { reply(z.At(int(c.e.draw() % uint64(z.Len())))) }
	c.replyRandom(c.failed || z.Len() == 0, n, withScores, one, func() {
		sample := z.Sample(n, c.e.draw)
		c.pairHead(len(sample), withScores)
		for _, rank := range sample {
			reply(z.At(rank))
		}
	})
}

func zscanCommand(c *call) {
	z, o, ok := scanned[*values.ZSetValue](c)
	if !ok {
		return
	}
	large := z.Encoding() == "skiplist"
	var found []string
	cursor := z.Scan(o.cursor, o.count, func(m string, score float64) {
		if o.matches(m) {
			found = append(found, m, scanScore(score, large))
		}
	})
	c.cursor(cursor)
	c.texts(found)
}
