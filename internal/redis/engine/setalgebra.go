package engine

import (
	"slices"

	"github.com/mayflycache/mayfly/internal/redis/values"
)

// setAlgebraCommands are about several sets.
var setAlgebraCommands = []Command{
	{Name: "sinter", Arity: -2, Flags: ReadOnly, Cats: CatSet, Keys: allKeys, run: func(c *call) { c.combine(intersection) }},
	{Name: "sintercard", Arity: -3, Flags: ReadOnly | MovableKeys, Cats: CatSet, Keys: Keys{Find: countedKeys}, run: sintercardCommand},
	{Name: "sinterstore", Arity: -3, Flags: Write | DenyOOM, Cats: CatSet, Keys: allKeys, run: func(c *call) { c.combineStore(intersection) }},
	{Name: "sunion", Arity: -2, Flags: ReadOnly, Cats: CatSet, Keys: allKeys, run: func(c *call) { c.combine(union) }},
	{Name: "sunionstore", Arity: -3, Flags: Write | DenyOOM, Cats: CatSet, Keys: allKeys, run: func(c *call) { c.combineStore(union) }},
	{Name: "sdiff", Arity: -2, Flags: ReadOnly, Cats: CatSet, Keys: allKeys, run: func(c *call) { c.combine(difference) }},
	{Name: "sdiffstore", Arity: -3, Flags: Write | DenyOOM, Cats: CatSet, Keys: allKeys, run: func(c *call) { c.combineStore(difference) }},
}

// countedKeys finds the keys of commands that begin with their number.
func countedKeys(args [][]byte) []int { return countedFrom(args, 1) }

// countedFrom is countedKeys with the number at argument i.
func countedFrom(args [][]byte, i int) []int {
	if i >= len(args) {
		return nil
	}
	n, ok := values.ParseInt(args[i])
	if !ok || n < 1 || n > int64(len(args)-1-i) {
		return nil
	}
	at := make([]int, n)
	for k := range at {
		at[k] = i + 1 + k
	}
	return at
}

// storedKeys is countedKeys for commands that begin with a destination.
func storedKeys(args [][]byte) []int {
	if sources := countedFrom(args, 2); sources != nil {
		return append([]int{1}, sources...)
	}
	return nil
}

// setOperation combines several sets into one. stored says that the result is for the keyspace, not for a reply.
type setOperation func(sets []*values.SetValue, stored bool, l values.Limits) *values.SetValue

// combine is SINTER, SUNION and SDIFF.
func (c *call) combine(operation setOperation) {
	if sets := c.sets(c.args[1:]); !c.failed {
		c.members(operation(sets, false, c.e.limits))
	}
}

// combineStore is combine with a destination.
func (c *call) combineStore(operation setOperation) {
	if sets := c.sets(c.args[2:]); !c.failed {
		c.storeAt(c.args[1], operation(sets, true, c.e.limits), 1, notifySet, c.cmd.Name)
	}
}

func sintercardCommand(c *call) {
	n := c.intFrom(1, 1, "ERR numkeys should be greater than 0")
	if n > int64(len(c.args)-2) {
		c.fail("ERR Number of keys can't be greater than number of args")
	}
	if c.failed {
		return
	}
	limit := c.cardLimit(2 + int(n))
	sets := c.sets(c.args[2 : 2+n])
	if c.failed {
		return
	}
	count := 0
	common(sets, func(string) bool {
		count++
		return count != limit
	})
	c.number(count)
}

// cardLimit reads the LIMIT of SINTERCARD and ZINTERCARD from argument i on; 0 is none.
func (c *call) cardLimit(i int) (limit int) {
	for o := c.options(i); o.more(); {
		if o.word("LIMIT", 1) {
			limit = int(c.intFrom(o.next(), 0, "ERR LIMIT can't be negative"))
		} else {
			c.fail(errSyntax)
		}
	}
	return limit
}

// sets returns the sets at keys.
func (c *call) sets(keys [][]byte) []*values.SetValue {
	sets := make([]*values.SetValue, len(keys))
	for i, key := range keys {
		sets[i] = readAs[*values.SetValue](c, key)
	}
	return sets
}

// storeAt makes v the value of dst, whatever dst held, counts that as n changes, and replies with the length of v. If v is empty, dst is
// removed, even a dead one, as in Redis.
func (c *call) storeAt(dst []byte, v values.Value, n int, class notifyClass, event string) {
	if v.Len() == 0 {
		c.delete(dst)
	} else {
		c.live(dst)
		c.set(dst, v)
		c.wrote(dst, n, class, event)
	}
	c.number(v.Len())
}

// common calls do for the members that are in all sets until do returns false. Their order is that of the smallest set, which it returns.
func common(sets []*values.SetValue, do func(member string) bool) (smallest *values.SetValue) {
	sets = slices.Clone(sets)
	slices.SortStableFunc(sets, func(a, b *values.SetValue) int { return a.Len() - b.Len() })
	sets[0].Each(func(m string) bool {
		for _, s := range sets[1:] {
			if s != sets[0] && !s.Has(values.Bytes(m)) {
				return true
			}
		}
		return do(m)
	})
	return sets[0]
}

// intersection returns what is in all sets, in the order of the smallest.
func intersection(sets []*values.SetValue, stored bool, l values.Limits) *values.SetValue {
	var members []string
	smallest := common(sets, func(m string) bool {
		members = append(members, m)
		return true
	})
	result := values.NewSmallSet(0)
	if smallest.Encoding() == "intset" {
		result = values.NewSet()
	}
	for _, m := range members {
		result.AddName(m, l)
	}
	if stored {
		result.TryInts(l)
	}
	return result
}

// emptyResult returns the set with which Redis begins a union or a difference: an intset if it is to be stored or all sets are intsets,
// otherwise a table.
func emptyResult(sets []*values.SetValue, stored bool) *values.SetValue {
	for _, s := range sets {
		if s.Encoding() != "intset" && !stored {
			return values.NewBigSet(0)
		}
	}
	return values.NewSet()
}

// addAll adds the members of s to result.
func addAll(result, s *values.SetValue, l values.Limits) {
	for m := range s.Each {
		result.AddName(m, l)
	}
}

func union(sets []*values.SetValue, stored bool, l values.Limits) *values.SetValue {
	result := emptyResult(sets, stored)
	for _, s := range sets {
		addAll(result, s, l)
	}
	return result
}

// difference returns what is in the first set and in no other. Like Redis it either looks up every member of the first set in the others, or
// removes every member of the others from a copy of the first, whichever is less work.
func difference(sets []*values.SetValue, stored bool, l values.Limits) *values.SetValue {
	first, others := sets[0], slices.DeleteFunc(slices.Clone(sets[1:]), func(s *values.SetValue) bool { return s.Len() == 0 })
	if slices.Contains(others, first) {
		return values.NewSet()
	}
	lookups, removals := first.Len(), first.Len()
	for _, s := range others {
		lookups += first.Len()
		removals += s.Len()
	}
	result := emptyResult(sets, stored)
	if lookups/2 <= removals {
		slices.SortStableFunc(others, func(a, b *values.SetValue) int { return b.Len() - a.Len() })
		for m := range first.Each {
			if !slices.ContainsFunc(others, func(s *values.SetValue) bool { return s.Has(values.Bytes(m)) }) {
				result.AddName(m, l)
			}
		}
		return result
	}
	addAll(result, first, l)
	for _, s := range others {
		s.Each(func(m string) bool {
			result.Remove(values.Bytes(m))
			return result.Len() > 0
		})
	}
	return result
}
