package engine

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// call is one running command: what a handler gets. It is reused, so a handler must keep neither it nor args.
type call struct {
	e    *Engine
	s    *Session // the caller; for a script's commands, the script's own session
	db   *db
	cmd  *Command
	args [][]byte // args[0] is the command's name as sent
	out  *resp.Writer

	retry   *waiter // set when a parked command is run again
	outcome Outcome
	failed  bool     // an error was replied
	silent  bool     // its effect is not recorded
	effect  [][]byte // what is recorded instead of args
	words   phrase   // holds the memory of effect
}

// fail replies with an error text, which begins with its code. Only the first error of a command is sent, and no key is looked up after it: a
// handler can read its arguments and its key one after the other and then check failed once.
func (c *call) fail(text string) {
	if !c.failed {
		c.failed = true
		c.e.countError(text)
		c.out.Error(text)
	}
}

func (c *call) failf(format string, args ...any) { c.fail(fmt.Sprintf(format, args...)) }

// ok replies with +OK.
func (c *call) ok() { c.out.Simple("OK") }

// number replies with n.
func (c *call) number(n int) { c.out.Int(int64(n)) }

// yes replies with 1 or 0.
func (c *call) yes(b bool) { c.number(oneIf(b)) }

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bulk replies with b, or null if nothing was found.
func (c *call) bulk(b []byte, found bool) {
	if found {
		c.out.Bulk(b)
	} else {
		c.out.Null()
	}
}

// int reads argument i as an integer; the command fails if it is not one.
func (c *call) int(i int) int64 { return c.intOr(i, errNotInteger) }

// intOr is int with another error.
func (c *call) intOr(i int, text string) int64 {
	n, ok := values.ParseInt(c.args[i])
	if !ok {
		c.fail(text)
	}
	return n
}

// intFrom reads argument i as an integer of at least low; anything else fails the command with text.
func (c *call) intFrom(i int, low int64, text string) int64 {
	n := c.intOr(i, text)
	if n < low {
		c.fail(text)
	}
	return n
}

// texts replies with an array of strings.
func (c *call) texts(all []string) {
	c.out.Array(len(all))
	for _, text := range all {
		c.out.BulkString(text)
	}
}

// is reports whether argument i is this word, given in upper case; the case in which it was sent does not matter.
func (c *call) is(i int, word string) bool { return is(c.args[i], word) }

func is(b []byte, word string) bool {
	if len(b) != len(word) {
		return false
	}
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != word[i] {
			return false
		}
	}
	return true
}

// read finds the object of key for a command that reads it, counts the hit or miss and updates the object's last use. It returns nil for a
// missing or expired key.
func (c *call) read(key []byte) *object {
	o := c.peek(key)
	if o != nil {
		c.touch(o)
	}
	return o
}

// peek is read for commands that ask about a key without using it (TTL, EXISTS): the last use stays as it is.
func (c *call) peek(key []byte) *object {
	if c.failed {
		return nil
	}
	o := c.live(key)
	if o == nil {
		c.e.stats.misses++
		c.notify(notifyMiss, "keymiss", key)
		return nil
	}
	c.e.stats.hits++
	return o
}

// write finds the object of key for a command that will change it.
func (c *call) write(key []byte) *object {
	if c.failed {
		return nil
	}
	o := c.live(key)
	if o != nil {
		c.touch(o)
	}
	return o
}

// live finds the object of key and counts nothing. A dead one is removed.
func (c *call) live(key []byte) *object {
	o := c.e.live(c.db, key)
	if o != nil && len(c.db.parts) > 0 && c.cmd.Flags&(ReadOnly|MayReplicate) != ReadOnly {
		c.db.preserve(o)
	}
	return o
}

// touch marks o as used now.
func (c *call) touch(o *object) {
	if !c.s.noTouch || c.cmd.Name == "touch" {
		o.use(c.e)
	}
}

// readString returns the string at key for reading, or nil if it is missing. The command fails if the key holds another type.
func (c *call) readString(key []byte) *object { return c.typed(c.read(key), values.String) }

// writeString is readString for a command that will change the string.
func (c *call) writeString(key []byte) *object { return c.typed(c.write(key), values.String) }

// typed returns o if it is nil or of this kind; otherwise the command fails.
func (c *call) typed(o *object, kind values.Kind) *object {
	if o != nil && o.kind() != kind {
		c.fail(errWrongType)
		return nil
	}
	return o
}

// readAs returns the value at key for reading; the type parameter is its type. A missing key reads as an empty value. If the value is of
// another type, the command fails. So every handler of a family begins:
//
//	s := readAs[*values.SetValue](c, c.args[1])
//	if c.failed {
//		return
//	}
func readAs[T values.Value](c *call, key []byte) T { return orEmpty[T](c, c.read(key)) }

// takeAs is readAs for a command that removes elements.
func takeAs[T values.Value](c *call, key []byte) T { return orEmpty[T](c, c.write(key)) }

func orEmpty[T values.Value](c *call, o *object) T {
	if o != nil {
		return valueAs[T](c, o)
	}
	return emptyAs[T]()
}

// emptyValues are what missing keys read as. They are never changed.
var emptyValues = []values.Value{values.NewHash(), values.NewList(), values.NewSet(), values.NewZSet()}

func emptyAs[T values.Value]() T {
	for _, v := range emptyValues {
		if v, ok := v.(T); ok {
			return v
		}
	}
	panic("engine: no empty value of this type")
}

// writeAs returns the value at key for a command that may add elements; nil if there is none.
func writeAs[T values.Value](c *call, key []byte) T { return valueAs[T](c, c.write(key)) }

func valueAs[T values.Value](c *call, o *object) (v T) {
	if o != nil {
		var ok bool
		if v, ok = o.coll.(T); !ok {
			c.fail(errWrongType)
		}
	}
	return v
}

// replyLen replies with the length of a value, 0 if there is none: LLEN, SCARD, ZCARD and HLEN.
func replyLen[T values.Value](c *call) {
	if v := readAs[T](c, c.args[1]); !c.failed {
		c.number(v.Len())
	}
}

// changed tells watchers and tracking that this command changed key, and adds n to INFO's count of changes. Call it once for each key after
// the change.
func (c *call) changed(key []byte, n int) {
	c.e.changes += int64(n)
	if c.e.settings.maxMemory > 0 {
		if o := c.db.find(key); o != nil {
			c.db.weigh(o)
		}
	}
	c.e.touched(c.db, key, c.s)
}

// wrote is changed plus the keyspace event: what follows nearly every write.
func (c *call) wrote(key []byte, n int, class notifyClass, event string) {
	c.changed(key, n)
	c.notify(class, event, key)
}

// notify publishes a keyspace event of this database.
func (c *call) notify(class notifyClass, event string, key []byte) {
	c.e.notify(c.db, class, event, key)
}
