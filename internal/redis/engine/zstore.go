package engine

import (
	"math"
	"slices"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// zstoreCommands combine sorted sets, and sets, in which every member has the score 1.
var zstoreCommands = []Command{
	{Name: "zunion", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zunionCommand},
	{Name: "zinter", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zinterCommand},
	{Name: "zdiff", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zdiffCommand},
	{Name: "zintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSortedSet, Keys: Keys{Find: countedKeys}, run: zintercardCommand},
	{Name: "zunionstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Cats: CatSortedSet, Keys: Keys{First: 1, Last: 1, Step: 1, Find: storedKeys}, run: zunionstoreCommand},
	{Name: "zinterstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Cats: CatSortedSet, Keys: Keys{First: 1, Last: 1, Step: 1, Find: storedKeys}, run: zinterstoreCommand},
	{Name: "zdiffstore", Arity: -4, Flags: Write | DenyOOM | MovableKeys, Cats: CatSortedSet, Keys: Keys{First: 1, Last: 1, Step: 1, Find: storedKeys}, run: zdiffstoreCommand},
}

// zsource is one operand: a set, a sorted set, or nothing.
type zsource struct {
	set    *values.SetValue
	zset   *values.ZSetValue
	weight float64
}

func (s *zsource) len() int {
	switch {
	case s.set != nil:
		return s.set.Len()
	case s.zset != nil:
		return s.zset.Len()
	}
	return 0
}

// same reports whether two operands are the same key.
func (s *zsource) same(o *zsource) bool { return s.set == o.set && s.zset == o.zset }

// each calls do for every member with its own score until do returns false.
func (s *zsource) each(do func(member string, score float64) bool) {
	switch {
	case s.set != nil:
		s.set.Each(func(m string) bool { return do(m, 1) })
	case s.zset != nil:
		s.zset.Each(0, s.zset.Len(), false, do)
	}
}

func (s *zsource) score(member string) (score float64, ok bool) {
	switch {
	case s.set != nil:
		return 1, s.set.HasName(member)
	case s.zset != nil:
		return s.zset.ScoreOf(member)
	}
	return 0, false
}

// weigh is score times the weight, 0 where that is not a number.
func (s *zsource) weigh(score float64) float64 { return number(s.weight * score) }

func number(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// zcombine is what such a command is asked for.
type zcombine struct {
	sources    []zsource
	aggregate  func(a, b float64) float64
	withScores bool
}

// The three ways of AGGREGATE. Infinity less infinity is 0 here.
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

// zcombine reads the number of keys at argument i, the keys, and the options. The keys' types are checked first, as in Redis.
func (c *call) zcombine(i int) (z zcombine, ok bool) {
	end, ok := c.zsources(&z, i)
	if !ok {
		return z, false
	}
	storing, diff := i == 2, c.cmd.Name == "zdiff" || c.cmd.Name == "zdiffstore"
	z.aggregate = aggregateSum
	for at := end; at < len(c.args); at++ {
		switch {
		case !diff && c.is(at, "WEIGHTS") && at+len(z.sources) < len(c.args):
			for k := range z.sources {
				at++
				if z.sources[k].weight, ok = values.ParseFloat(c.args[at]); !ok {
					c.fail("ERR weight value is not a float")
					return z, false
				}
			}
		case !diff && c.is(at, "AGGREGATE") && at+1 < len(c.args):
			at++
			switch {
			case c.is(at, "SUM"):
				z.aggregate = aggregateSum
			case c.is(at, "MIN"):
				z.aggregate = aggregateMin
			case c.is(at, "MAX"):
				z.aggregate = aggregateMax
			default:
				c.fail(errSyntax)
				return z, false
			}
		case !storing && c.is(at, "WITHSCORES"):
			z.withScores = true
		default:
			c.fail(errSyntax)
			return z, false
		}
	}
	return z, true
}

// zsources reads the operands and returns the argument behind them.
func (c *call) zsources(z *zcombine, i int) (end int, ok bool) {
	n, ok := c.int(i)
	switch {
	case !ok:
		return 0, false
	case n < 1:
		c.failf("ERR at least 1 input key is needed for '%s' command", c.cmd.Name)
		return 0, false
	case n > int64(len(c.args)-1-i):
		c.fail(errSyntax)
		return 0, false
	}
	end = i + 1 + int(n)
	z.sources = make([]zsource, n)
	for k, key := range c.args[i+1 : end] {
		s := &z.sources[k]
		s.weight = 1
		if o := c.read(key); o != nil {
			switch v := o.coll.(type) {
			case *values.SetValue:
				s.set = v
			case *values.ZSetValue:
				s.zset = v
			default:
				c.fail(errWrongType)
				return 0, false
			}
		}
	}
	return end, true
}

func zunionCommand(c *call) { zreply(c, (*zcombine).union) }
func zinterCommand(c *call) { zreply(c, (*zcombine).inter) }
func zdiffCommand(c *call)  { zreply(c, (*zcombine).diff) }

func zreply(c *call, combine func(*zcombine, values.Limits) *values.ZSetValue) {
	z, ok := c.zcombine(1)
	if !ok {
		return
	}
	result := combine(&z, c.e.limits)
	c.scoredHead(result.Len(), z.withScores)
	result.Each(0, result.Len(), false, c.scored(z.withScores))
}

func zunionstoreCommand(c *call) { zstore(c, (*zcombine).union) }
func zinterstoreCommand(c *call) { zstore(c, (*zcombine).inter) }
func zdiffstoreCommand(c *call)  { zstore(c, (*zcombine).diff) }

func zstore(c *call, combine func(*zcombine, values.Limits) *values.ZSetValue) {
	if z, ok := c.zcombine(2); ok {
		result := combine(&z, c.e.limits)
		result.Shrink(c.e.limits)
		c.storeZSet(c.cmd.Name, result)
	}
}

// storeZSet makes result, which may be empty, the value of the destination, and replies how many members it has.
func (c *call) storeZSet(event string, result *values.ZSetValue) {
	if result.Len() == 0 {
		c.storeNothing()
		return
	}
	c.storeValue(notifyZSet, event, result)
}

func zintercardCommand(c *call) {
	var z zcombine
	end, ok := c.zsources(&z, 1)
	if !ok {
		return
	}
	limit, ok := c.cardLimit(end)
	if !ok {
		return
	}
	count := 0
	z.common(func(string, float64) bool {
		count++
		return count != limit
	})
	c.number(count)
}

// sorted brings the sources in the order in which Redis adds them up: the smallest first. It matters for sums of fractions.
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
			if z.aggregate != nil { // ZINTERCARD only counts
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
