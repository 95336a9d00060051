package engine

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mayflycache/mayfly/internal/expiry"
	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/values"
)

// Loaded is what Load found.
type Loaded struct {
	Keys int // present now
	Dead int // skipped because they had expired
}

// Load reads an RDB file into an empty engine, at now in unix microseconds. Expired keys are skipped unless keepDead: the base of a journal
// needs them, since what follows it was written while they existed.
func (e *Engine) Load(now int64, f *rdb.File, keepDead bool) (l Loaded, err error) {
	e.setNow(now)
	for f.Next() {
		if f.DB >= Databases {
			return l, fmt.Errorf("engine: key %q is in database %d, but there are only %d databases", f.Key, f.DB, Databases)
		}
		var s []byte
		var v values.Value
		known := true
		whole := f.Value(func(r *rdb.Reader) (ok bool) {
			if known = readable(f.Type); known {
				s, v, ok = payload{r, e.limits}.readData(f.Type)
			}
			return ok
		})
		switch d := e.dbs[f.DB]; {
		case !known:
			return l, fmt.Errorf("engine: key %q holds a value of RDB type %d, which is not supported: a stream, a module's value, or a type of a later Redis", f.Key, f.Type)
		case !whole:
			return l, fmt.Errorf("engine: key %q: %w", f.Key, f.Err())
		case d.find(f.Key) != nil:
			return l, fmt.Errorf("engine: key %q occurs twice", f.Key)
		case !keepDead && expiry.Dead(f.Deadline, e.ms):
			l.Dead++
		default:
			e.restore(d, f.Key, s, v, f.Deadline)
			l.Keys++
		}
	}
	return l, f.Err()
}

// readable reports whether values of this RDB type can be read.
func readable(kind byte) bool {
	switch kind {
	case rdb.TypeString, rdb.TypeList, rdb.TypeListQuicklist2, rdb.TypeSet, rdb.TypeSetIntset, rdb.TypeSetListpack, rdb.TypeZSet, rdb.TypeZSet2,
		rdb.TypeZSetListpack, rdb.TypeHash, rdb.TypeHashMetadata, rdb.TypeHashListpack, rdb.TypeHashListpackEx:
		return true
	}
	return false
}

// restore puts a key that was read into d, without notifying anybody.
func (e *Engine) restore(d *db, key, s []byte, v values.Value, deadline int64) {
	o := d.insert(key)
	if v != nil {
		o.setValue(v)
		if h, ok := v.(*values.HashValue); ok {
			d.fields.Set(o.id, h.NextDeadline())
		}
	} else {
		o.setString(s, encodingOf(s))
	}
	o.birth(e)
	d.deadlines.Set(o.id, deadline)
	if e.settings.maxMemory > 0 {
		d.weigh(o)
	}
}

// Obey runs a command from a journal or a master, at now in unix microseconds, for a session opened with Obeys. No key is dead to it: expired
// keys are removed when the journal or the master says so. It returns the error of the reply.
func (e *Engine) Obey(now int64, s *Session, args [][]byte) error {
	if len(args) == 0 {
		return nil
	}
	if hasRelativeTTL(args) {
		return fmt.Errorf("%q has a relative time to live, which is meaningless when it is replayed later: use an absolute time", args[0])
	}
	e.now, e.ms = now, 0
	wrong := e.stats.errorReplies
	s.Out.Rewind(resp.Mark{})
	outcome := e.turn(s, args, nil)
	e.endUnit(outcome)
	e.serveReady()
	if e.stats.errorReplies == wrong && outcome == Done {
		return nil
	}
	return obeyed(s.Out.Bytes())
}

// obeyed returns the first error in a reply.
func obeyed(reply []byte) error {
	if at := bytes.IndexByte(reply, '-'); at >= 0 {
		text, _, _ := bytes.Cut(reply[at+1:], []byte("\r\n"))
		return errors.New(string(text))
	}
	return errors.New("the command did not finish")
}

// Knows reports whether args are a known command with an acceptable number of arguments.
func Knows(args [][]byte) bool {
	cmd, unknownSub := lookup(args)
	return cmd != nil && !unknownSub && cmd.run != nil && cmd.takes(len(args))
}

// IsEffect reports whether args may come from a master to its replicas: a write, a message, or a command that says where and how writes are
// done. Other commands (REPLICAOF, QUIT, SCRIPT) have no place in its stream.
func IsEffect(args [][]byte) bool {
	cmd, unknownSub := lookup(args)
	if cmd == nil || unknownSub {
		return false
	}
	switch cmd.Name {
	case "select", "multi", "exec", "publish", "spublish":
		return true
	}
	return cmd.Flags&Write != 0
}

// hasRelativeTTL reports whether a command sets a time to live relative to when it is run.
func hasRelativeTTL(args [][]byte) bool {
	from := 0 // where the options begin
	switch name := args[0]; len(name) {
	case 3:
		if is(name, "SET") {
			from = 3
		}
	case 5:
		if is(name, "SETEX") || is(name, "GETEX") && len(args) > 2 {
			return !is(name, "GETEX") || is(args[2], "EX") || is(args[2], "PX")
		}
	case 6:
		if is(name, "HSETEX") || is(name, "HGETEX") {
			from = 2
		} else if is(name, "EXPIRE") || is(name, "PSETEX") {
			return true
		}
	case 7:
		if is(name, "RESTORE") && len(args) > 3 && string(args[2]) != "0" {
			for _, a := range args[4:] {
				if is(a, "ABSTTL") {
					return false
				}
			}
			return true
		}
		return is(name, "PEXPIRE") || is(name, "HEXPIRE")
	case 8:
		return is(name, "HPEXPIRE")
	}
	if from > 0 && len(args) > from {
		for _, a := range args[from:] {
			if is(a, "FIELDS") {
				break
			}
			if is(a, "EX") || is(a, "PX") {
				return true
			}
		}
	}
	return false
}

// ReapAll removes everything dead at now, in unix microseconds: keys and fields that expired while the engine was not running.
func (e *Engine) ReapAll(now int64) {
	e.setNow(now)
	for _, d := range e.dbs {
		d.each(func(o *object) {
			if d.dead(o, e.ms) {
				e.expire(d, o)
				e.endUnit(Done)
			}
		})
		for e.reapFields(d, tickWork) > 0 {
		}
	}
	e.flushInvalidations()
	e.serveReady()
}

// Settled resets the counters after the data have been loaded.
func (e *Engine) Settled() { e.stats, e.changes = stats{}, 0 }

// reload has the engine write its data and read them back: DEBUG RELOAD and DEBUG LOADAOF.
func (e *Engine) reload(keepDead bool) error {
	s := e.Snapshot()
	b, more := s.Next(nil, 1<<20)
	for more {
		b, more = s.Next(b, 1<<20)
	}
	var sum rdb.Sum
	sum.Add(b)
	for _, d := range e.dbs {
		d.leave()
	}
	_, err := e.Load(e.now, rdb.NewFile(bytes.NewReader(rdb.AppendEnd(b, sum))), keepDead)
	return err
}
