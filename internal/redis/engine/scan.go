package engine

import (
	"strconv"
	"strings"

	"github.com/mayflycache/mayfly/internal/glob"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// scanCommands walk over the keyspace.
var scanCommands = []Command{
	{Name: "keys", Arity: 2, Flags: ReadOnly, Cats: CatKeyspace | CatDangerous, run: keysCommand},
	{Name: "scan", Arity: -2, Flags: ReadOnly, Cats: CatKeyspace, run: scanCommand},
	{Name: "randomkey", Arity: 1, Flags: ReadOnly, Cats: CatKeyspace, run: randomkeyCommand},
}

// keysCommand hides dead keys without removing them; SCAN and RANDOMKEY remove those they find (rule A02).
func keysCommand(c *call) {
	all := string(c.args[1]) == "*"
	pattern := glob.Compile(c.args[1])
	start, n := c.out.Mark(), 0
	c.db.each(func(o *object) {
		if !all && !globKey(pattern, o.key) || c.db.dead(o, c.e.ms) {
			return
		}
		c.out.BulkString(o.key)
		n++
	})
	c.out.ArrayAt(start, n)
}

// globKey matches a key without copying it, if it is short.
func globKey(pattern *glob.Pattern, key string) bool {
	var buf [64]byte
	return pattern.Match(append(buf[:0], key...))
}

// scanOptions are those of SCAN, SSCAN, HSCAN and ZSCAN.
type scanOptions struct {
	cursor   uint64
	count    int
	pattern  *glob.Pattern // nil: all
	kind     []byte        // SCAN's TYPE; nil: all
	noValues bool          // HSCAN's NOVALUES
}

// matches reports whether an element matches the pattern.
func (o *scanOptions) matches(name string) bool {
	return o.pattern == nil || globKey(o.pattern, name)
}

// scanCursor reads a cursor at argument i. Like C's strtoull it accepts spaces and a plus sign before the digits.
func (c *call) scanCursor(i int) uint64 {
	cursor, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimLeft(string(c.args[i]), " \t\n\v\f\r"), "+"), 10, 64)
	if err != nil {
		c.fail("ERR invalid cursor")
	}
	return cursor
}

// scanOptions reads a cursor at argument i and the options after it.
func (c *call) scanOptions(i int) scanOptions {
	o := scanOptions{cursor: c.scanCursor(i), count: 10}
	for words := c.options(i + 1); words.more(); {
		switch {
		case words.word("COUNT", 1):
			n := c.int(words.next())
			if n < 1 {
				c.fail(errSyntax)
			}
			o.count = int(min(n, 1<<31))
		case words.word("MATCH", 1):
			o.pattern = nil
			if pattern := c.args[words.next()]; string(pattern) != "*" {
				o.pattern = glob.Compile(pattern)
			}
		case words.word("TYPE", 1) && c.cmd.Name == "scan":
			o.kind = c.args[words.next()]
		case words.word("NOVALUES", 0):
			if c.cmd.Name != "hscan" {
				c.fail("ERR NOVALUES option can only be used in HSCAN")
			}
			o.noValues = true
		default:
			c.fail(errSyntax)
		}
	}
	return o
}

// scanned finds the value that HSCAN, SSCAN or ZSCAN walks over, and its options; ok is false if the reply has been written. The cursor is
// checked before the key is looked up, and the options are read only if the key exists.
func scanned[T values.Value](c *call) (v T, o scanOptions, ok bool) {
	c.scanCursor(2)
	obj := c.read(c.args[1])
	v = valueAs[T](c, obj)
	switch {
	case c.failed:
		return v, o, false
	case obj == nil:
		c.cursor(0)
		c.out.Array(0)
		return v, o, false
	}
	o = c.scanOptions(2)
	return v, o, !c.failed
}

// cursor begins the reply of the SCAN family; the elements follow.
func (c *call) cursor(cursor uint64) {
	c.out.Array(2)
	c.out.BulkString(strconv.FormatUint(cursor, 10))
}

// scanCommand walks the slots. A key that exists during the whole walk keeps its slot, so it is returned exactly once. A call looks at about
// count keys, or at ten times as many slots where most are free.
func scanCommand(c *call) {
	o := c.scanOptions(1)
	if c.failed {
		return
	}
	d := c.db
	var found []string
	var dead []*object
	slot, slots := o.cursor, uint64(d.slots)
	for looks := o.count * 10; slot < slots && o.count > 0 && looks > 0; slot++ {
		looks--
		if d.pages[slot/pageSize] == nil {
			slot |= pageSize - 1 // skips a whole page that was released
			continue
		}
		obj := d.at(uint32(slot))
		if obj.kind() == values.Missing {
			continue
		}
		o.count--
		switch {
		case !o.matches(obj.key):
		case d.dead(obj, c.e.ms): // whatever its type
			dead = append(dead, obj)
		case o.kind == nil || is(o.kind, upperKind[obj.kind()]):
			found = append(found, obj.key)
		}
	}
	for _, obj := range dead {
		c.e.expire(d, obj)
	}
	if slot >= slots {
		slot = 0
	}
	c.cursor(slot)
	c.texts(found)
}

// upperKind are the names of kinds, as is needs them.
var upperKind = [...]string{"NONE", "STRING", "LIST", "SET", "ZSET", "HASH"}

func randomkeyCommand(c *call) {
	for c.db.len() > 0 {
		o := c.db.random(c.e.draw)
		if !c.db.dead(o, c.e.ms) {
			c.out.BulkString(o.key)
			return
		}
		c.e.expire(c.db, o)
	}
	c.out.Null()
}

// random returns a random object, dead or alive, each with the same probability. There must be at least one.
func (k *keyspace) random(draw func() uint64) *object {
	for range 64 {
		if o := k.at(uint32(draw() % uint64(k.slots))); o.kind() != values.Missing {
			return o
		}
	}
	// Most slots are free: walk to the object drawn by number.
	skip := draw() % uint64(k.len())
	for id := range k.slots {
		if o := k.at(id); o.kind() != values.Missing {
			if skip == 0 {
				return o
			}
			skip--
		}
	}
	panic("engine: random key of an empty database")
}
