package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// Moving from list to list, and popping from the first of several: LMOVE, RPOPLPUSH, LMPOP. Their blocking forms do the same when there is
// something to take.

// moveNow is LMOVE and RPOPLPUSH.
func (c *call) moveNow(from, to end) {
	if !c.move(from, to) && !c.failed {
		c.out.Null()
	}
}

// ends reads arguments i and i+1 as LEFT or RIGHT.
func (c *call) ends(i int) (from, to end) {
	return c.endWord(i, "LEFT", "RIGHT"), c.endWord(i+1, "LEFT", "RIGHT")
}

// endWord reads argument i as one of two words, the first of which means the left end.
func (c *call) endWord(i int, first, second string) end {
	switch {
	case c.is(i, first):
		return left
	case !c.is(i, second):
		c.fail(errSyntax)
	}
	return right
}

// move takes an element from one end of the list at argument 1 to an end of the one at argument 2, and replies it. false: nothing was moved
// nor, unless the command failed, replied.
func (c *call) move(from, to end) bool {
	key, dest := c.args[1], c.args[2]
	src := writeAs[*values.ListValue](c, key)
	if src == nil {
		return false
	}
	dst := writeAs[*values.ListValue](c, dest)
	if c.failed {
		return false
	}
	var scratch [128]byte
	long := src.Encoding() == "quicklist"
	b := append(scratch[:0], pop(src, from)...) // src may be dst
	if dst == nil {
		dst = values.NewList()
		c.add(dest, dst)
	}
	if _, number := values.ParseInt(b); number && long {
		dst.Grow([][]byte{nil}, c.e.limits) // a quicklist hands a number over as such, and Redis adds up the lengths of strings only
	} else {
		dst.Grow([][]byte{b}, c.e.limits)
	}
	c.push(dst, to, b)
	c.wrote(dest, 1, notifyList, pushed[to])
	c.out.Bulk(b)
	c.lost(key, src, 1, popped[from])
	return true
}

func lmpopCommand(c *call) {
	if !c.popFirst(c.multiPop(1, "LEFT", "RIGHT")) && !c.failed {
		c.out.NullArray()
	}
}

// multiPop is what LMPOP, ZMPOP and their blocking forms are asked for. In a sorted set the left end is the lowest.
type multiPop struct {
	keys  [][]byte
	where end
	count int
}

// multiPop reads a number of keys at argument i, the keys, the word for an end, perhaps COUNT.
func (c *call) multiPop(i int, leftWord, rightWord string) (o multiPop) {
	n := c.intFrom(i, 1, "ERR numkeys should be greater than 0")
	i++
	if n >= int64(len(c.args)-i) {
		c.fail(errSyntax)
	}
	if c.failed {
		return o
	}
	o.keys, i = c.args[i:i+int(n)], i+int(n)
	o.where = c.endWord(i, leftWord, rightWord)
	for words := c.options(i + 1); words.more(); {
		if o.count != 0 || !words.word("COUNT", 1) {
			c.fail(errSyntax)
			return o
		}
		o.count = int(c.intFrom(words.next(), 1, "ERR count should be greater than 0"))
	}
	o.count = max(o.count, 1)
	return o
}

// firstOf returns the first of keys that holds a value, which must be of this type.
func firstOf[T values.Value](c *call, keys [][]byte) (key []byte, v T, found bool) {
	for _, key := range keys {
		if o := c.write(key); o != nil {
			v = valueAs[T](c, o)
			return key, v, !c.failed
		}
	}
	return nil, v, false
}

// popFirst pops from the first of the lists that there is, and replies its key and the elements. false: nothing was popped nor, unless the
// command failed, replied.
func (c *call) popFirst(o multiPop) bool {
	key, l, found := firstOf[*values.ListValue](c, o.keys)
	if !found {
		return false
	}
	c.rewrite(popped[o.where], key, min(o.count, l.Len()))
	c.out.Array(2)
	c.out.Bulk(key)
	c.popCount(key, l, o.where, o.count)
	return true
}
