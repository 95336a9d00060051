package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// listCommands are about one list; see listmoves.go for those that take elements from one to another, and blockinglists.go for those that wait.
var listCommands = []Command{
	{Name: "lpush", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: lpushCommand},
	{Name: "rpush", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: rpushCommand},
	{Name: "lpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: lpushxCommand},
	{Name: "rpushx", Arity: -3, Flags: Write | DenyOOM | Fast, Cats: CatList, Keys: oneKey, run: rpushxCommand},
	{Name: "lpop", Arity: -2, Flags: Write | Fast, Cats: CatList, Keys: oneKey, run: lpopCommand},
	{Name: "rpop", Arity: -2, Flags: Write | Fast, Cats: CatList, Keys: oneKey, run: rpopCommand},
	{Name: "llen", Arity: 2, Flags: ReadOnly | Fast, Cats: CatList, Keys: oneKey, run: llenCommand},
	{Name: "lindex", Arity: 3, Flags: ReadOnly, Cats: CatList, Keys: oneKey, run: lindexCommand},
	{Name: "lset", Arity: 4, Flags: Write | DenyOOM, Cats: CatList, Keys: oneKey, run: lsetCommand},
	{Name: "lrange", Arity: 4, Flags: ReadOnly, Cats: CatList, Keys: oneKey, run: lrangeCommand},
	{Name: "ltrim", Arity: 4, Flags: Write, Cats: CatList, Keys: oneKey, run: ltrimCommand},
	{Name: "lrem", Arity: 4, Flags: Write, Cats: CatList, Keys: oneKey, run: lremCommand},
	{Name: "linsert", Arity: 5, Flags: Write | DenyOOM, Cats: CatList, Keys: oneKey, run: linsertCommand},
	{Name: "lpos", Arity: -3, Flags: ReadOnly, Cats: CatList, Keys: oneKey, run: lposCommand},
	{Name: "lmove", Arity: 5, Flags: Write | DenyOOM, Cats: CatList, Keys: twoKeys, run: lmoveCommand},
	{Name: "rpoplpush", Arity: 3, Flags: Write | DenyOOM, Cats: CatList, Keys: twoKeys, run: rpoplpushCommand},
	{Name: "lmpop", Arity: -4, Flags: Write | MovableKeys, Cats: CatList, Keys: Keys{Find: countedKeys}, run: lmpopCommand},
	{Name: "blpop", Arity: -3, Flags: Write | Blocking, Cats: CatList, Keys: Keys{First: 1, Last: -2, Step: 1}, run: blpopCommand},
	{Name: "brpop", Arity: -3, Flags: Write | Blocking, Cats: CatList, Keys: Keys{First: 1, Last: -2, Step: 1}, run: brpopCommand},
	{Name: "blmove", Arity: 6, Flags: Write | DenyOOM | Blocking, Cats: CatList, Keys: twoKeys, run: blmoveCommand},
	{Name: "brpoplpush", Arity: 4, Flags: Write | DenyOOM | Blocking, Cats: CatList, Keys: twoKeys, run: brpoplpushCommand},
	{Name: "blmpop", Arity: -5, Flags: Write | Blocking | MovableKeys, Cats: CatList, Keys: Keys{Find: waitCountedKeys}, run: blmpopCommand},
}

// end is one of the two of a list.
type end uint8

const (
	left end = iota
	right
)

// pushed and popped are the events of each end, and the commands by which both are recorded.
var (
	pushed = [...]string{left: "lpush", right: "rpush"}
	popped = [...]string{left: "lpop", right: "rpop"}
)

func (c *call) readList(key []byte) (l *values.ListValue, ok bool) {
	return readAs[*values.ListValue](c, key)
}

func (c *call) writeList(key []byte) (l *values.ListValue, ok bool) {
	return writeAs[*values.ListValue](c, key)
}

func lpushCommand(c *call)  { c.pushAll(left, false) }
func rpushCommand(c *call)  { c.pushAll(right, false) }
func lpushxCommand(c *call) { c.pushAll(left, true) }
func rpushxCommand(c *call) { c.pushAll(right, true) }

func (c *call) pushAll(where end, onlyExisting bool) {
	key, elements := c.args[1], c.args[2:]
	l, ok := c.writeList(key)
	if !ok {
		return
	}
	if l == nil {
		if onlyExisting {
			c.out.Int(0)
			return
		}
		l = values.NewList()
		c.add(key, l)
	}
	l.Grow(elements, c.e.limits)
	for _, b := range elements {
		c.push(l, where, b)
	}
	c.changed(key, len(elements))
	c.notify(notifyList, pushed[where], key)
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

// tookFrom ends a command that took n elements from one end: events, and the key's end with the last element.
func (c *call) tookFrom(key []byte, l *values.ListValue, where end, n int) {
	c.changed(key, n)
	c.notify(notifyList, popped[where], key)
	if !c.removeIfEmpty(key, l) {
		l.Shrink(c.e.limits)
	}
}

func lpopCommand(c *call) { c.popFrom(left) }
func rpopCommand(c *call) { c.popFrom(right) }

func (c *call) popFrom(where end) {
	key := c.args[1]
	if len(c.args) > 3 {
		c.fail(wrongArity(c.cmd.Name))
		return
	}
	count, counted := 1, len(c.args) == 3
	if counted {
		var ok bool
		if count, ok = c.positive(2); !ok {
			return
		}
	}
	l, ok := c.writeList(key)
	switch {
	case !ok:
	case l == nil && counted:
		c.out.NullArray()
	case l == nil:
		c.out.Null()
	case counted:
		c.popCount(key, l, where, count)
	default:
		c.out.Bulk(pop(l, where))
		c.tookFrom(key, l, where, 1)
	}
}

// popCount replies an array of up to count elements.
func (c *call) popCount(key []byte, l *values.ListValue, where end, count int) {
	count = min(count, l.Len())
	c.out.Array(count)
	if count == 0 {
		return
	}
	for range count {
		c.out.Bulk(pop(l, where))
	}
	c.tookFrom(key, l, where, count)
}

func llenCommand(c *call) {
	l, ok := c.readList(c.args[1])
	switch {
	case !ok:
	case l == nil:
		c.out.Int(0)
	default:
		c.number(l.Len())
	}
}

// index turns an index that may count from the end into one from the start; not ok outside the list.
func index(i int64, l *values.ListValue) (at int, ok bool) {
	if i < 0 {
		i += int64(l.Len())
	}
	return int(i), 0 <= i && i < int64(l.Len())
}

func lindexCommand(c *call) {
	l, ok := c.readList(c.args[1])
	if !ok {
		return
	}
	if l == nil {
		c.out.Null()
		return
	}
	i, ok := c.int(2)
	if !ok {
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
	l, ok := c.writeList(key)
	if !ok {
		return
	}
	if l == nil {
		c.fail(errNoSuchKey)
		return
	}
	i, ok := c.int(2)
	if !ok {
		return
	}
	l.Grow(b, c.e.limits)
	at, ok := index(int64(int32(i)), l) // Redis keeps 32 bits of it here: 9223372036854775807 is the last element
	if !ok {
		c.fail(errOutOfRange)
		return
	}
	l.Set(at, b[0], c.e.limits)
	l.Shrink(c.e.limits)
	c.changed(key, 1)
	c.notify(notifyList, "lset", key)
	c.ok()
}

// span reads arguments 2 and 3 as the first and last index of a range; clip makes them fit a list.
func (c *call) span() (first, last int64, ok bool) {
	if first, ok = c.int(2); ok {
		last, ok = c.int(3)
	}
	return first, last, ok
}

// within returns where a range of a list of n elements begins and how many it has.
func within(first, last int64, n int) (start, count int) {
	if first < 0 {
		first = max(0, first+int64(n))
	}
	if last < 0 {
		last += int64(n)
	}
	last = min(last, int64(n)-1)
	if first > last {
		return 0, 0
	}
	return int(first), int(last - first + 1)
}

func lrangeCommand(c *call) {
	first, last, ok := c.span()
	if !ok {
		return
	}
	l, ok := c.readList(c.args[1])
	if !ok {
		return
	}
	if l == nil {
		c.out.Array(0)
		return
	}
	start, count := within(first, last, l.Len())
	c.out.Array(count)
	if count == 0 {
		return
	}
	l.EachFrom(start, func(b []byte) bool {
		c.out.Bulk(b)
		count--
		return count > 0
	})
}

func ltrimCommand(c *call) {
	first, last, ok := c.span()
	if !ok {
		return
	}
	key := c.args[1]
	l, ok := c.writeList(key)
	if !ok {
		return
	}
	if l == nil {
		c.ok()
		return
	}
	n := l.Len()
	start, count := within(first, last, n)
	l.Trim(start, n-start-count)
	c.changed(key, n-count)
	c.notify(notifyList, "ltrim", key)
	if !c.removeIfEmpty(key, l) {
		l.Shrink(c.e.limits)
	}
	c.ok()
}

func lremCommand(c *call) {
	count, ok := c.signed(2)
	if !ok {
		return
	}
	key := c.args[1]
	l, ok := c.writeList(key)
	if !ok {
		return
	}
	if l == nil {
		c.out.Int(0)
		return
	}
	removed := l.Remove(c.args[3], count)
	if removed > 0 {
		c.changed(key, removed)
		c.notify(notifyList, "lrem", key)
		if !c.removeIfEmpty(key, l) {
			l.Shrink(c.e.limits)
		}
	}
	c.number(removed)
}

func linsertCommand(c *call) {
	after := c.is(2, "AFTER")
	if !after && !c.is(2, "BEFORE") {
		c.fail(errSyntax)
		return
	}
	key := c.args[1]
	l, ok := c.writeList(key)
	if !ok {
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
	c.changed(key, 1)
	c.notify(notifyList, "linsert", key)
	c.number(l.Len())
}
