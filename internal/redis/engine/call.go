package engine

import (
	"fmt"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// call is one command at work: what a handler gets. It is reused; a handler keeps neither it nor args.
type call struct {
	e    *Engine
	s    *Session // who asked; of a script, the script's own session
	db   *db
	cmd  *Command
	args [][]byte // args[0] is the command's name as sent
	out  *resp.Writer

	retry   *waiter // set when a parked command is run again
	outcome Outcome
	failed  bool     // an error was replied
	silent  bool     // what it did is not recorded
	effect  [][]byte // what is recorded instead of args
	words   phrase   // the memory of effect
}

// fail replies an error, given with its code. Only the first one of a command is replied, and no key is looked up after it: a handler reads
// its arguments and its key one after the other and asks once whether one of them failed.
func (c *call) fail(text string) {
	if !c.failed {
		c.failed = true
		c.e.countError(text)
		c.out.Error(text)
	}
}

func (c *call) failf(format string, args ...any) { c.fail(fmt.Sprintf(format, args...)) }

// ok replies +OK.
func (c *call) ok() { c.out.Simple("OK") }

// number replies n.
func (c *call) number(n int) { c.out.Int(int64(n)) }

// yes replies 1 or 0.
func (c *call) yes(b bool) { c.number(oneIf(b)) }

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// bulk replies b, or null if nothing was found.
func (c *call) bulk(b []byte, found bool) {
	if found {
		c.out.Bulk(b)
	} else {
		c.out.Null()
	}
}

// int reads argument i as a number; if it is none, the command fails.
func (c *call) int(i int) int64 { return c.intOr(i, errNotInteger) }

// intOr is int with another error.
func (c *call) intOr(i int, text string) int64 {
	n, ok := values.ParseInt(c.args[i])
	if !ok {
		c.fail(text)
	}
	return n
}

// intFrom reads argument i as a number that is at least low; whatever else it is, the command fails with text.
func (c *call) intFrom(i int, low int64, text string) int64 {
	n := c.intOr(i, text)
	if n < low {
		c.fail(text)
	}
	return n
}

// texts replies an array of texts.
func (c *call) texts(all []string) {
	c.out.Array(len(all))
	for _, text := range all {
		c.out.BulkString(text)
	}
}

// is reports whether argument i is this word, given in upper case, in whatever case it was sent.
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

// read finds the object of key for a command that reads it: the figures of hits and misses and the object's last use are kept.
// nil: there is none, or it has expired.
func (c *call) read(key []byte) *object {
	o := c.peek(key)
	if o != nil {
		c.touch(o)
	}
	return o
}

// peek is read for commands that ask about a key and do not use it (TTL, EXISTS): its last use stays as it is.
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

// live finds the object of key and keeps no figures. A dead one is removed.
func (c *call) live(key []byte) *object {
	o := c.e.live(c.db, key)
	if o != nil && len(c.db.parts) > 0 && c.cmd.Flags&(ReadOnly|MayReplicate) != ReadOnly {
		c.db.preserve(o)
	}
	return o
}

// touch notes that o was used now.
func (c *call) touch(o *object) {
	if !c.s.noTouch || c.cmd.Name == "touch" {
		o.use(c.e)
	}
}

// readString returns the string at key to read; nil if there is none, or if it is no string, and then the command fails.
func (c *call) readString(key []byte) *object { return c.typed(c.read(key), values.String) }

// writeString is readString for a command that will change it.
func (c *call) writeString(key []byte) *object { return c.typed(c.write(key), values.String) }

// typed passes an object of this kind or nil, and fails for another.
func (c *call) typed(o *object, kind values.Kind) *object {
	if o != nil && o.kind() != kind {
		c.fail(errWrongType)
		return nil
	}
	return o
}

// readAs returns the value at key to read: its type is the type parameter. A missing key reads as an empty value. If the value is of another
// type, the command fails. So every handler of a family begins:
//
//	s := readAs[*values.SetValue](c, c.args[1])
//	if c.failed {
//		return
//	}
func readAs[T values.Value](c *call, key []byte) T { return orEmpty[T](c, c.read(key)) }

// takeAs is readAs for a command that takes elements out.
func takeAs[T values.Value](c *call, key []byte) T { return orEmpty[T](c, c.write(key)) }

func orEmpty[T values.Value](c *call, o *object) T {
	if o != nil {
		return valueAs[T](c, o)
	}
	return emptyAs[T]()
}

// emptyValues are what missing keys read as. Nobody changes them.
var emptyValues = []values.Value{values.NewHash(), values.NewList(), values.NewSet(), values.NewZSet()}

func emptyAs[T values.Value]() T {
	for _, v := range emptyValues {
		if v, ok := v.(T); ok {
			return v
		}
	}
	panic("engine: no empty value of this type")
}

// writeAs returns the value at key for a command that may put elements in; nil if there is none.
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

// replyLen replies the length of a value, 0 if there is none: LLEN, SCARD, ZCARD and HLEN.
func replyLen[T values.Value](c *call) {
	if v := readAs[T](c, c.args[1]); !c.failed {
		c.number(v.Len())
	}
}

// changed tells the rest of the engine that key was changed by this command, n times over in the figure of changes: watchers,
// tracking. Call it once for each key after the change.
func (c *call) changed(key []byte, n int) {
	c.e.changes += int64(n)
	if c.e.settings.maxMemory > 0 {
		if o := c.db.find(key); o != nil {
			c.db.weigh(o)
		}
	}
	c.e.touched(c.db, key, c.s)
}

// wrote is changed and the keyspace event of the change: what follows nearly every write.
func (c *call) wrote(key []byte, n int, class notifyClass, event string) {
	c.changed(key, n)
	c.notify(class, event, key)
}

// notify publishes a keyspace event of this database.
func (c *call) notify(class notifyClass, event string, key []byte) {
	c.e.notify(c.db, class, event, key)
}
