package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// Moving from list to list, and popping from the first of several: LMOVE, RPOPLPUSH, LMPOP. Their blocking forms do the same if there is
// anything to take.

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

// endWord reads argument i as one of two words, the first of which names the left end.
func (c *call) endWord(i int, first, second string) end {
	switch {
	case c.is(i, first):
		return left
	case !c.is(i, second):
		c.fail(errSyntax)
	}
	return right
}

// move takes an element from one end of the list at argument 1 to an end of the one at argument 2, and replies with it. false: nothing was
// moved, and nothing replied unless the command failed.
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
		dst.Grow([][]byte{nil}, c.e.limits) // a quicklist hands over a number as such, and Redis adds up only the lengths of strings
	} else {
		dst.Grow([][]byte{b}, c.e.limits)
	}
	c.push(dst, to, b)
	c.wrote(dest, 1, notifyList, pushed[to])
	c.out.Bulk(b)
	c.lost(key, src, 1, popped[from])
	return true
}

// lmpopCommand is LMPOP and BLMPOP.
func lmpopCommand(c *call) { popFirst(c, "LEFT", "RIGHT", popped, c.popCount) }

// popFirst is LMPOP, ZMPOP and their blocking forms, where the timeout comes before the keys. It finds the first existing value, replies with
// its key and has take pop elements from one end and reply with them. The effect is recorded as a command of single, by end.
func popFirst[T values.Value](c *call, leftWord, rightWord string, single [2]string, take func(key []byte, v T, where end, n int)) {
	var o multiPop
	var deadline int64
	blocking := c.cmd.Flags&Blocking != 0
	if blocking {
		o = c.multiPop(2, leftWord, rightWord)
		deadline = c.waitUntil(1)
	} else {
		o = c.multiPop(1, leftWord, rightWord)
	}
	key, v, found := firstOf[T](c, o.keys)
	switch {
	case found:
		n := min(o.count, v.Len())
		c.rewrite(single[o.where], key, n)
		c.out.Array(2)
		c.out.Bulk(key)
		take(key, v, o.where, n)
	case c.failed:
	case blocking:
		c.park(o.keys, emptyAs[T]().Kind(), deadline)
	default:
		c.out.NullArray()
	}
}

// multiPop holds the arguments of LMPOP, ZMPOP and their blocking forms. The left end of a sorted set is the lowest.
type multiPop struct {
	keys  [][]byte
	where end
	count int
}

// multiPop reads a number of keys at argument i, the keys, the word for an end, and an optional COUNT.
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
