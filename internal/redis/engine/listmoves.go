package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// Moving from list to list, and popping from the first of several: LMOVE, RPOPLPUSH, LMPOP. Their blocking forms do the same when there is
// something to take.

func lmoveCommand(c *call) {
	if from, to, ok := c.ends(3); ok && !c.move(from, to) {
		c.out.Null()
	}
}

func rpoplpushCommand(c *call) {
	if !c.move(right, left) {
		c.out.Null()
	}
}

// ends reads arguments i and i+1 as LEFT or RIGHT.
func (c *call) ends(i int) (from, to end, ok bool) {
	if from, ok = c.endWord(i); ok {
		to, ok = c.endWord(i + 1)
	}
	return from, to, ok
}

func (c *call) endWord(i int) (where end, ok bool) {
	switch {
	case c.is(i, "LEFT"):
		return left, true
	case c.is(i, "RIGHT"):
		return right, true
	}
	c.fail(errSyntax)
	return left, false
}

// move takes an element from one end of the list at argument 1 to an end of the one at argument 2, and replies it. false: there was no
// list to take from, and nothing was replied.
func (c *call) move(from, to end) bool {
	key, dest := c.args[1], c.args[2]
	src, ok := c.writeList(key)
	if !ok {
		return true
	}
	if src == nil {
		return false
	}
	dst, ok := c.writeList(dest)
	if !ok {
		return true
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
	c.changed(dest, 1)
	c.notify(notifyList, pushed[to], dest)
	c.out.Bulk(b)
	c.tookFrom(key, src, from, 1)
	return true
}

func lmpopCommand(c *call) {
	if o, ok := c.multiPop(1); ok && !c.popFirst(o) {
		c.out.NullArray()
	}
}

// multiPop is what LMPOP and BLMPOP were asked for.
type multiPop struct {
	keys  [][]byte
	where end
	count int
}

// multiPop reads a number of keys at argument i, the keys, an end, perhaps COUNT.
func (c *call) multiPop(i int) (o multiPop, ok bool) {
	n, ok := c.above(i, "ERR numkeys should be greater than 0")
	if !ok {
		return o, false
	}
	i++
	if n >= len(c.args)-i {
		c.fail(errSyntax)
		return o, false
	}
	o.keys = c.args[i : i+n]
	i += n
	if o.where, ok = c.endWord(i); !ok {
		return o, false
	}
	for i++; i < len(c.args); i += 2 {
		if o.count != 0 || !c.is(i, "COUNT") || i+1 == len(c.args) {
			c.fail(errSyntax)
			return o, false
		}
		if o.count, ok = c.above(i+1, "ERR count should be greater than 0"); !ok {
			return o, false
		}
	}
	o.count = max(o.count, 1)
	return o, true
}

// above reads argument i as a number greater than 0, or replies this text.
func (c *call) above(i int, text string) (n int, ok bool) {
	v, ok := c.intOr(i, text)
	if ok && v < 1 {
		c.fail(text)
		return 0, false
	}
	return int(v), ok
}

// popFirst pops from the first of the lists that there is, and replies its key and the elements. false: there was none, and nothing was
// replied.
func (c *call) popFirst(o multiPop) bool {
	for _, key := range o.keys {
		l, ok := c.writeList(key)
		if !ok {
			return true
		}
		if l == nil {
			continue
		}
		if c.recording() {
			c.rewrite(upper(popped[o.where]), key, decimal(int64(min(o.count, l.Len()))))
		}
		c.out.Array(2)
		c.out.Bulk(key)
		c.popCount(key, l, o.where, o.count)
		return true
	}
	return false
}
