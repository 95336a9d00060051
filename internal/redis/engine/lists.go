package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// listCommands are about one list; moves between lists are in listmoves.go, blocking forms in blockinglists.go.
var listCommands = []Command{
	{Name: "lpush", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: func(c *call) { c.pushAll(left, false) }},
	{Name: "rpush", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: func(c *call) { c.pushAll(right, false) }},
	{Name: "lpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: func(c *call) { c.pushAll(left, true) }},
	{Name: "rpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: func(c *call) { c.pushAll(right, true) }},
	{Name: "lpop", Arity: -2, Flags: Write | Fast, Cats: CatList, Keys: oneKey, run: func(c *call) { c.popFrom(left) }},
	{Name: "rpop", Arity: -2, Flags: Write | Fast, Cats: CatList, Keys: oneKey, run: func(c *call) { c.popFrom(right) }},
	{Name: "llen", Arity: 2, Flags: ReadOnly | Fast, Cats: CatList, Keys: oneKey, run: replyLen[*values.ListValue]},
	{Name: "lindex", Arity: 3, Flags: ReadOnly, Cats: CatList, Keys: oneKey, run: lindexCommand},
	{Name: "lset", Arity: 4, Flags: Write | DenyOOM, Cats: CatList, Keys: oneKey, run: lsetCommand},
	{Name: "lrange", Arity: 4, Flags: ReadOnly, Cats: CatList, Keys: oneKey, run: lrangeCommand},
	{Name: "ltrim", Arity: 4, Flags: Write, Cats: CatList, Keys: oneKey, run: ltrimCommand},
	{Name: "lrem", Arity: 4, Flags: Write, Cats: CatList, Keys: oneKey, run: lremCommand},
	{Name: "linsert", Arity: 5, Flags: Write | DenyOOM, Cats: CatList, Keys: oneKey, run: linsertCommand},
	{Name: "lpos", Arity: -3, Flags: ReadOnly, Cats: CatList, Keys: oneKey, run: lposCommand},
	{Name: "lmove", Arity: 5, Flags: Write | DenyOOM, Cats: CatList, Keys: twoKeys, run: func(c *call) { c.moveNow(c.ends(3)) }},
	{Name: "rpoplpush", Arity: 3, Flags: Write | DenyOOM, Cats: CatList, Keys: twoKeys, run: func(c *call) { c.moveNow(right, left) }},
	{Name: "lmpop", Arity: -4, Flags: Write | MovableKeys, Cats: CatList, Keys: Keys{Find: countedKeys}, run: lmpopCommand},
	{Name: "blpop", Arity: -3, Flags: Write | Blocking, Cats: CatList, Keys: Keys{First: 1, Last: -2, Step: 1}, run: func(c *call) { c.blockingPop(left) }},
	{Name: "brpop", Arity: -3, Flags: Write | Blocking, Cats: CatList, Keys: Keys{First: 1, Last: -2, Step: 1}, run: func(c *call) { c.blockingPop(right) }},
	{Name: "blmove", Arity: 6, Flags: Write | DenyOOM | Blocking, Cats: CatList, Keys: twoKeys, run: blmoveCommand},
	{Name: "brpoplpush", Arity: 4, Flags: Write | DenyOOM | Blocking, Cats: CatList, Keys: twoKeys, run: func(c *call) { c.blockingMove(right, left, 3) }},
	{Name: "blmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Cats: CatList, Keys: Keys{Find: waitCountedKeys}, run: lmpopCommand},
}

// end is one of the two ends of a list.
type end uint8

const (
	left end = iota
	right
)

// pushed and popped are the events of each end, and the commands that record them.
var (
	pushed = [...]string{left: "lpush", right: "rpush"}
	popped = [...]string{left: "lpop", right: "rpop"}
)

func (c *call) pushAll(where end, onlyExisting bool) {
	key, elements := c.args[1], c.args[2:]
	l := writeAs[*values.ListValue](c, key)
	switch {
	case c.failed:
		return
	case l == nil && onlyExisting:
		c.out.Int(0)
		return
	case l == nil:
		l = values.NewList()
		c.add(key, l)
	}
	l.Grow(elements, c.e.limits)
	for _, b := range elements {
		c.push(l, where, b)
	}
	c.wrote(key, len(elements), notifyList, pushed[where])
	c.number(l.Len())
}

func (c *call) push(l *values.ListValue, where end, b []byte) {
	if where == left {
		l.PushFront(b, c.e.limits)
	} else {
		l.PushBack(b, c.e.limits)
	}
}

func pop(l *values.ListValue, where end) []byte {
	if where == left {
		return l.PopFront()
	}
	return l.PopBack()
}

// lost ends a command that took n elements out of a list: it publishes the event, and removes an emptied key.
func (c *call) lost(key []byte, l *values.ListValue, n int, event string) {
	c.wrote(key, n, notifyList, event)
	if !c.removeIfEmpty(key, l) {
		l.Shrink(c.e.limits)
	}
}

func (c *call) popFrom(where end) {
	if len(c.args) > 3 {
		c.fail(wrongArity(c.cmd.Name))
	}
	key := c.args[1]
	count, counted := c.countArg()
	l := writeAs[*values.ListValue](c, key)
	switch {
	case c.failed:
	case l == nil && counted:
		c.out.NullArray()
	case l == nil:
		c.out.Null()
	case counted:
		c.popCount(key, l, where, count)
	default:
		c.out.Bulk(pop(l, where))
		c.lost(key, l, 1, popped[where])
	}
}

// popCount replies with an array of up to count elements.
func (c *call) popCount(key []byte, l *values.ListValue, where end, count int) {
	count = min(count, l.Len())
	c.out.Array(count)
	if count == 0 {
		return
	}
	for range count {
		c.out.Bulk(pop(l, where))
	}
	c.lost(key, l, count, popped[where])
}

// index turns an index that may count from the end into one from the start; ok is false outside the list.
func index(i int64, l *values.ListValue) (at int, ok bool) {
	if i < 0 {
		i += int64(l.Len())
	}
	return int(i), 0 <= i && i < int64(l.Len())
}

func lindexCommand(c *call) {
	l := readAs[*values.ListValue](c, c.args[1])
	if !c.failed && l.Len() == 0 { // whatever the index
		c.out.Null()
		return
	}
	i := c.int(2)
	if c.failed {
		return
	}
	if at, ok := index(i, l); ok {
		c.out.Bulk(l.At(at))
	} else {
		c.out.Null()
	}
}

func lsetCommand(c *call) {
	key, b := c.args[1], c.args[3:]
	l := writeAs[*values.ListValue](c, key)
	if l == nil {
		c.fail(errNoSuchKey)
	}
	i := c.int(2)
	if c.failed {
		return
	}
	l.Grow(b, c.e.limits)
	at, ok := index(int64(int32(i)), l) // Redis truncates it to 32 bits here: 9223372036854775807 is the last element
	if !ok {
		c.fail(errOutOfRange)
		return
	}
	l.Set(at, b[0], c.e.limits)
	l.Shrink(c.e.limits)
	c.wrote(key, 1, notifyList, "lset")
	c.ok()
}

// span reads argument i and the next one as the first and last index of a range.
func (c *call) span(i int) (first, last int64) { return c.int(i), c.int(i + 1) }

// within turns the first and last index of a range, negative ones counting from the end, into a half-open range of n elements.
func within(first, last int64, n int) (from, to int) {
	size := int64(n)
	if first < 0 {
		first = max(first+size, 0)
	}
	if last < 0 {
		last += size
	}
	last = min(last, size-1)
	if first > last {
		return 0, 0
	}
	return int(first), int(last) + 1
}

func lrangeCommand(c *call) {
	first, last := c.span(2)
	l := readAs[*values.ListValue](c, c.args[1])
	if c.failed {
		return
	}
	from, to := within(first, last, l.Len())
	count := to - from
	c.out.Array(count)
	if count == 0 {
		return
	}
	l.EachFrom(from, func(b []byte) bool {
		c.out.Bulk(b)
		count--
		return count > 0
	})
}

func ltrimCommand(c *call) {
	first, last := c.span(2)
	key := c.args[1]
	l := writeAs[*values.ListValue](c, key)
	if c.failed {
		return
	}
	if l != nil {
		n := l.Len()
		from, to := within(first, last, n)
		l.Trim(from, n-to)
		c.lost(key, l, n-(to-from), "ltrim")
	}
	c.ok()
}

func lremCommand(c *call) {
	count := c.signed(2)
	key := c.args[1]
	l := takeAs[*values.ListValue](c, key)
	if c.failed {
		return
	}
	removed := l.Remove(c.args[3], count)
	if removed > 0 {
		c.lost(key, l, removed, "lrem")
	}
	c.number(removed)
}

func linsertCommand(c *call) {
	after := c.is(2, "AFTER")
	if !after && !c.is(2, "BEFORE") {
		c.fail(errSyntax)
	}
	key := c.args[1]
	l := writeAs[*values.ListValue](c, key)
	if c.failed {
		return
	}
	if l == nil {
		c.out.Int(0)
		return
	}
	l.Grow(c.args[4:], c.e.limits)
	if !l.Insert(c.args[3], c.args[4], after, c.e.limits) {
		c.out.Int(-1)
		return
	}
	c.wrote(key, 1, notifyList, "linsert")
	c.number(l.Len())
}
