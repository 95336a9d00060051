package engine

import "strconv"

// A Sink receives what changes the data: the effects of writes, as commands that can be replayed. They are deterministic, their times are
// absolute, and expired or evicted keys and fields appear as DEL, UNLINK or HDEL. The journal and the replicas' feed are made of them.
type Sink interface {
	// Effect receives one effect. args are valid until it returns.
	Effect(db int, args [][]byte)

	// End says that the effects since the last End are complete and take effect together or not at all: those of one command, one transaction
	// or one script.
	End()
}

// SetSink sends the effects of later writes to sink; nil: nowhere.
func (e *Engine) SetSink(sink Sink) { e.sink, e.unit = sink, false }

// tells reports whether effects are sent anywhere.
func (e *Engine) tells() bool { return e.sink != nil || e.feeds() }

// feeds reports whether effects go to replicas. A replica's own replicas get its master's bytes instead: see Advance.
func (e *Engine) feeds() bool { return e.feed.on && e.master == nil }

func (e *Engine) tell(db int, args [][]byte) {
	e.unit = true
	if e.sink != nil {
		e.sink.Effect(db, args)
	}
	if e.feeds() {
		e.feed.stream.Effect(db, args)
	}
}

// endUnit ends the unit of a command, or of something that no client sent, unless it has only yielded.
func (e *Engine) endUnit(outcome Outcome) {
	if e.unit && outcome != Yielded {
		e.unit = false
		if e.sink != nil {
			e.sink.End()
		}
		e.feed.stream.End()
	}
}

// endTold is endUnit for a command of s. It records for WAIT how far s has written.
func (e *Engine) endTold(s *Session, outcome Outcome) {
	if e.unit && outcome != Yielded {
		e.endUnit(outcome)
		s.wrote = e.feed.offset
	}
}

// Stream is a Sink that turns effects into the bytes of Redis's append-only file and of its replication stream. A unit of several effects
// becomes a transaction.
type Stream struct {
	Write func(unit []byte) // receives each unit whole, valid until Write returns

	db    int    // the database that the reader has selected, plus one; 0: not selected yet
	was   int    // db before the unit
	n     int    // number of effects in the unit
	bytes []byte // MULTI and the effects of the unit
}

const multi, exec = "*1\r\n$5\r\nMULTI\r\n", "*1\r\n$4\r\nEXEC\r\n"

// Reselect makes the next unit select its database, because a new reader begins there.
func (s *Stream) Reselect() { s.db, s.was = 0, 0 }

// Effect adds an effect to the unit.
func (s *Stream) Effect(db int, args [][]byte) {
	if s.n == 0 {
		s.was, s.bytes = s.db, append(s.bytes[:0], multi...)
	}
	if s.db != db+1 {
		s.db = db + 1
		s.bytes = AppendCommand(s.bytes, [][]byte{[]byte("SELECT"), decimal(int64(db))})
	}
	s.bytes = AppendCommand(s.bytes, args)
	s.n++
}

// End writes the unit.
func (s *Stream) End() {
	switch {
	case s.n == 1:
		s.Write(s.bytes[len(multi):])
	case s.n > 1:
		s.bytes = append(s.bytes, exec...)
		s.Write(s.bytes)
	}
	s.n = 0
	const keep = 1 << 20
	if cap(s.bytes) > keep {
		s.bytes = nil
	}
}

// AppendCommand appends a command as a client sends it: an array of bulk strings.
func AppendCommand(b []byte, args [][]byte) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), '\r', '\n')
	for _, a := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(a)), 10), '\r', '\n')
		b = append(append(b, a...), '\r', '\n')
	}
	return b
}
