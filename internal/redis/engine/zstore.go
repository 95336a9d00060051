package engine

import (
	"math"
	"slices"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// zstoreCommands combine sorted sets and sets; a set's members all have the score 1.
var zstoreCommands = []Command{
	{Name: "zunion", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: func(c *call) { zreply(c, (*zcombine).union) }},
	{Name: "zinter", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: func(c *call) { zreply(c, (*zcombine).inter) }},
	{Name: "zdiff", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: func(c *call) { zreply(c, (*zcombine).diff) }},
	{Name: "zintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zintercardCommand},
	{Name: "zunionstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Cats: CatSortedSet, Keys: Keys{First: 1, Last: 1, Step: 1, Find: storedKeys}, run: func(c *call) { zstore(c, (*zcombine).union) }},
	{Name: "zinterstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Cats: CatSortedSet, Keys: Keys{First: 1, Last: 1, Step: 1, Find: storedKeys}, run: func(c *call) { zstore(c, (*zcombine).inter) }},
	{Name: "zdiffstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Cats: CatSortedSet, Keys: Keys{First: 1, Last: 1, Step: 1, Find: storedKeys}, run: func(c *call) { zstore(c, (*zcombine).diff) }},
}

// zsource is one operand: a set or a sorted set, which is empty if the key is missing.
type zsource struct {
	set    *values.SetValue
	zset   *values.ZSetValue
	weight float64
}

func (s *zsource) len() int {
	if s.set != nil {
		return s.set.Len()
	}
	return s.zset.Len()
}

// same reports whether two operands are the same key.
func (s *zsource) same(o *zsource) bool { return s.set == o.set && s.zset == o.zset }

// each calls do for every member with its own score until do returns false.
func (s *zsource) each(do func(member string, score float64) bool) {
	if s.set != nil {
		s.set.Each(func(m string) bool { return do(m, 1) })
		return
	}
	s.zset.Each(0, s.zset.Len(), false, do)
}

func (s *zsource) score(member string) (score float64, ok bool) {
	if s.set != nil {
		return 1, s.set.Has(values.Bytes(member))
	}
	return s.zset.Score(values.Bytes(member))
}

// weigh is score times the weight, 0 if that is not a number.
func (s *zsource) weigh(score float64) float64 { return number(s.weight * score) }

func number(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// zcombine holds the arguments of such a command.
type zcombine struct {
	sources    []zsource
	aggregate  func(a, b float64) float64
	withScores bool
}

// The three ways of AGGREGATE. Infinity minus infinity is 0 here.
func aggregateSum(a, b float64) float64 { return number(a + b) }

func aggregateMin(a, b float64) float64 {
	if b < a {
		return b
	}
	return a
}

func aggregateMax(a, b float64) float64 {
	if b > a {
		return b
	}
	return a
}

// zcombine reads the number of keys at argument i, the keys, and the options.
func (c *call) zcombine(i int) zcombine {
	sources, end := c.zsources(i)
	z := zcombine{sources: sources, aggregate: aggregateSum}
	storing, diff := i == 2, c.cmd.Name == "zdiff" || c.cmd.Name == "zdiffstore"
	for o := c.options(end); o.more(); {
		switch {
		case !diff && o.word("WEIGHTS", len(z.sources)):
			for k := range z.sources {
				var ok bool
				if z.sources[k].weight, ok = values.ParseFloat(c.args[o.next()]); !ok {
					c.fail("ERR weight value is not a float")
				}
			}
		case !diff && o.word("AGGREGATE", 1):
			z.aggregate = c.aggregate(o.next())
		case !storing && o.word("WITHSCORES", 0):
			z.withScores = true
		default:
			c.fail(errSyntax)
		}
	}
	return z
}

// aggregate reads argument i as one of the three ways to combine scores.
func (c *call) aggregate(i int) func(a, b float64) float64 {
	switch {
	case c.is(i, "MIN"):
		return aggregateMin
	case c.is(i, "MAX"):
		return aggregateMax
	case !c.is(i, "SUM"):
		c.fail(errSyntax)
	}
	return aggregateSum
}

// zsources reads the number of keys at argument i and the keys, and returns the index after them. As in Redis, the keys' types are checked
// before anything that follows.
func (c *call) zsources(i int) (sources []zsource, end int) {
	n := c.int(i)
	switch {
	case c.failed:
	case n < 1:
		c.failf("ERR at least 1 input key is needed for '%s' command", c.cmd.Name)
	case n > int64(len(c.args)-1-i):
		c.fail(errSyntax)
	}
	if c.failed {
		return nil, 0
	}
	end = i + 1 + int(n)
	sources = make([]zsource, n)
	for k, key := range c.args[i+1 : end] {
		s := &sources[k]
		s.weight = 1
		if o := c.read(key); o != nil && o.kind() == values.Set {
			s.set = o.coll.(*values.SetValue)
		} else {
			s.zset = orEmpty[*values.ZSetValue](c, o)
		}
	}
	return sources, end
}

func zreply(c *call, combine func(*zcombine, values.Limits) *values.ZSetValue) {
	z := c.zcombine(1)
	if c.failed {
		return
	}
	result := combine(&z, c.e.limits)
	c.pairHead(result.Len(), z.withScores)
	result.Each(0, result.Len(), false, c.scored(z.withScores))
}

func zstore(c *call, combine func(*zcombine, values.Limits) *values.ZSetValue) {
	z := c.zcombine(2)
	if c.failed {
		return
	}
	result := combine(&z, c.e.limits)
	result.Shrink(c.e.limits)
	c.storeAt(c.args[1], result, 1, notifyZSet, c.cmd.Name)
}

func zintercardCommand(c *call) {
	sources, end := c.zsources(1)
	limit := c.cardLimit(end)
	if c.failed {
		return
	}
	count := 0
	z := zcombine{sources: sources}
	z.common(func(string, float64) bool {
		count++
		return count != limit
	})
	c.number(count)
}

// sorted puts the sources in the order in which Redis adds them up: the smallest first. The order affects sums of fractions.
func (z *zcombine) sorted() []zsource {
	sorted := slices.Clone(z.sources)
	slices.SortStableFunc(sorted, func(a, b zsource) int { return a.len() - b.len() })
	return sorted
}

func (z *zcombine) union(l values.Limits) *values.ZSetValue {
	var order []string
	scores := make(map[string]float64)
	for _, s := range z.sorted() {
		s.each(func(m string, score float64) bool {
			score = s.weigh(score)
			if old, ok := scores[m]; ok {
				scores[m] = z.aggregate(old, score)
			} else {
				scores[m] = score
				order = append(order, m)
			}
			return true
		})
	}
	result := values.NewBigZSet(len(order))
	for _, m := range order {
		result.SetOf(m, scores[m], l)
	}
	return result
}

func (z *zcombine) inter(l values.Limits) *values.ZSetValue {
	result := values.NewBigZSet(0)
	z.common(func(m string, score float64) bool {
		result.SetOf(m, score, l)
		return true
	})
	return result
}

// common calls do for every member that all sources have, with its combined score, until do returns false.
func (z *zcombine) common(do func(member string, score float64) bool) {
	sources := z.sorted()
	first := &sources[0]
	first.each(func(m string, score float64) bool {
		total := first.weigh(score)
		for i := 1; i < len(sources); i++ {
			s := &sources[i]
			value := score
			if !s.same(first) {
				var ok bool
				if value, ok = s.score(m); !ok {
					return true
				}
			}
			if z.aggregate != nil { // nil for ZINTERCARD, which only counts
				total = z.aggregate(total, s.weight*value)
			}
		}
		return do(m, total)
	})
}

func (z *zcombine) diff(l values.Limits) *values.ZSetValue {
	result := values.NewBigZSet(0)
	z.sources[0].each(func(m string, score float64) bool {
		for i := range z.sources[1:] {
			if _, ok := z.sources[1+i].score(m); ok {
				return true
			}
		}
		result.SetOf(m, score, l)
		return true
	})
	return result
}
