package engine

import (
	"maps"
	"math"
	"slices"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// waiter is a command that found nothing to work on and waits for one of its keys.
//
// A handler that finds nothing calls call.park and returns. When one of the keys gets a value of the right kind, the same handler runs again
// with the same arguments, after the command, transaction or script that made the key has ended. Sessions are served in order of arrival. A
// handler that finds the key empty again (another session was first) parks again: at the end of the line, with its old deadline.
type waiter struct {
	s        *Session
	cmd      *Command
	args     [][]byte
	db       *db
	keys     []string
	kind     values.Kind
	deadline int64                // unix milliseconds; 0 waits forever
	late     func(w *resp.Writer) // replies on timeout; nil: a null array
	replicas int64                // of WAIT: how many must have acknowledged
	slot     uint32               // in Engine.waiters
}

// readyKey is a key that sessions wait for and that now has a value.
type readyKey struct {
	db  *db
	key string
}

// park makes the session wait until one of keys holds a value of this kind. The reply is a null array when the deadline (unix milliseconds, 0
// for none) passes, and at once inside a transaction or a script.
func (c *call) park(keys [][]byte, kind values.Kind, deadline int64) {
	if c.s.noBlock {
		c.out.NullArray()
		return
	}
	w := c.retry
	if w == nil {
		w = &waiter{s: c.s, cmd: c.cmd, args: copyArgs(c.args), db: c.db, kind: kind, deadline: deadline}
		for _, key := range keys {
			if name := string(key); !slices.Contains(w.keys, name) {
				w.keys = append(w.keys, name)
			}
		}
	}
	for _, key := range w.keys {
		join(&w.db.blocked, key, w)
	}
	w.slot = c.e.waiterSlot()
	c.e.waiters[w.slot] = w
	c.e.waits.Set(w.slot, w.deadline)
	c.s.waiting = w
	c.outcome = Blocked
}

// waitUntil reads argument i as a timeout in seconds and returns when it ends in unix milliseconds; 0, for a timeout of 0, means never.
func (c *call) waitUntil(i int) (ms int64) {
	seconds, ok := values.ParseBigFloat(c.args[i])
	span := math.Ceil(seconds.Double() * 1000)
	switch {
	case !ok:
		c.fail(errTimeout)
	case span >= math.MaxInt64 || int64(span) > math.MaxInt64-c.e.ms:
		c.fail("ERR timeout is out of range")
	case span < 0:
		c.fail(errTimeoutSign)
	case span > 0:
		return c.e.ms + int64(span)
	}
	return 0
}

// waiterSlot returns a free slot in waiters.
func (e *Engine) waiterSlot() uint32 {
	if i := slices.Index(e.waiters, nil); i >= 0 {
		return uint32(i)
	}
	e.waiters = append(e.waiters, nil)
	return uint32(len(e.waiters) - 1)
}

// unpark ends the wait of s, without a reply.
func (e *Engine) unpark(s *Session) {
	w := s.waiting
	if w == nil {
		return
	}
	s.waiting = nil
	e.feed.waits -= oneIf(w.replicas > 0)
	e.waits.Remove(w.slot)
	e.waiters[w.slot] = nil
	for _, key := range w.keys {
		leave(w.db.blocked, key, w)
	}
}

// release ends the wait of s as a timeout does or, for CLIENT UNBLOCK, with the error given in text.
func (e *Engine) release(s *Session, text string) {
	if s.waiting == nil {
		return
	}
	late := s.waiting.late
	e.unpark(s)
	start := s.Out.Mark()
	switch {
	case text == "" && late != nil:
		late(&s.Out)
	case text == "":
		s.Out.NullArray()
	default:
		e.countError(text)
		s.Out.Error(text)
	}
	if s.reply == replyOff {
		s.Out.Rewind(start)
	}
	e.markDirty(s)
}

// signal notes that o has a value that blocked sessions may want. The keyspace calls it for every key that gets a new value.
func (e *Engine) signal(d *db, o *object) {
	if len(d.blocked) == 0 || d.blocked[o.key] == nil {
		return
	}
	k := readyKey{d, o.key}
	if !slices.Contains(e.ready, k) {
		e.ready = append(e.ready, k)
	}
}

// signalAll is signal for all keys of d, needed after SWAPDB.
func (e *Engine) signalAll(d *db) {
	for _, key := range slices.Sorted(maps.Keys(d.blocked)) {
		if o := d.find([]byte(key)); o != nil {
			e.signal(d, o)
		}
	}
}

// serveReady serves the sessions blocked on keys that became ready. A served command may make further keys ready.
func (e *Engine) serveReady() {
	for len(e.ready) > 0 && !e.scripts.busy() {
		k := e.ready[0]
		e.ready = slices.Delete(e.ready, 0, 1)
		for _, w := range slices.Clone(k.db.blocked[k.key]) {
			if o := e.live(k.db, []byte(k.key)); o == nil || o.kind() != w.kind {
				continue
			}
			e.unpark(w.s)
			e.endUnit(e.turn(w.s, w.args, w))
			e.markDirty(w.s)
		}
	}
}

// reapWaits replies to the sessions whose timeout has passed.
func (e *Engine) reapWaits() {
	e.due = e.due[:0]
	e.waits.Reap(e.ms, tickWork, func(slot uint32) { e.due = append(e.due, slot) })
	for _, slot := range e.due {
		e.release(e.waiters[slot].s, "")
	}
}
