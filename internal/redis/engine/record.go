package engine

import "strconv"

// Sink receives the effects of writes as commands that can be replayed: deterministic, with absolute times, expiry spelt out as DEL or HDEL.
// A journal or a replication feed is one. args are good until Record returns.
type Sink interface {
	Record(db int, args [][]byte)
}

// A command that changed something is recorded as it was sent. A handler whose command must not be replayed so (it has a relative time, or
// a random choice) says c.rewrite; one whose parts record themselves sets c.silent. Building the new form costs something: ask c.recording
// first.

// recording reports whether anybody wants to know effects.
func (c *call) recording() bool { return c.e.options.Sink != nil }

// rewrite replaces what is recorded for this command. It keeps args until the command ends.
func (c *call) rewrite(args ...[]byte) { c.effect = args }

// propagate hands the effect of a finished command to the sink.
func (c *call) propagate() {
	if c.silent {
		return
	}
	if c.effect == nil {
		c.effect = c.args
	}
	c.e.record(c.e.dbs[c.s.db], c.effect) // not c.db: MOVE and COPY change that
}

// record is the one place where effects leave the engine. There must be a sink.
func (e *Engine) record(d *db, args [][]byte) { e.options.Sink.Record(d.index, args) }

// recordRemoval records that key expired.
func (e *Engine) recordRemoval(d *db, key []byte) {
	if e.options.Sink != nil {
		e.record(d, [][]byte{e.removalVerb(), key})
	}
}

// removalVerb is the command that an expiry is recorded as.
func (e *Engine) removalVerb() []byte {
	if e.settings.lazyExpire {
		return []byte("UNLINK")
	}
	return []byte("DEL")
}

// decimal returns n as an argument.
func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
