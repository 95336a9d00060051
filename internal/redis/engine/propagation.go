package engine

import "strconv"

// A Sink is told what changes the data: the effects of writes, as commands that can be replayed. They are deterministic, their times are
// absolute, and what expired or was evicted is spelt out as DEL, UNLINK or HDEL. A journal and the feed of replicas are made of them.
type Sink interface {
	// Effect is told one of them. args are good until it returns.
	Effect(db int, args [][]byte)

	// End says that what came since the last End is complete, and takes effect whole or not at all: the effects of one command, of one
	// transaction, of one script.
	End()
}

// SetSink gives the effects of later writes to sink; nil: to nobody.
func (e *Engine) SetSink(sink Sink) { e.sink, e.unit = sink, false }

// tells reports whether anybody is told of effects.
func (e *Engine) tells() bool { return e.sink != nil || e.feeds() }

// feeds reports whether effects go to replicas. Those of a replica get its master's own words: see Advance.
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

// endUnit says that a command has come to its end, one that nobody sent included, unless it has only yielded.
func (e *Engine) endUnit(outcome Outcome) {
	if e.unit && outcome != Yielded {
		e.unit = false
		if e.sink != nil {
			e.sink.End()
		}
		e.feed.stream.End()
	}
}

// endTold is endUnit for what s asked for. It notes for WAIT how far s has written.
func (e *Engine) endTold(s *Session, outcome Outcome) {
	if e.unit && outcome != Yielded {
		e.endUnit(outcome)
		s.wrote = e.feed.offset
	}
}

// Stream is a Sink that makes of the effects the bytes that stand in Redis's append-only file and go to its replicas. A unit of several
// effects is a transaction.
type Stream struct {
	Write func(unit []byte) // is given each unit whole; it is good until Write returns

	db    int    // which database the reader has selected, plus one; 0: it is to be told
	was   int    // db before the unit
	n     int    // effects in the unit
	bytes []byte // multi and the effects of the unit
}

const multi, exec = "*1\r\n$5\r\nMULTI\r\n", "*1\r\n$4\r\nEXEC\r\n"

// Reselect makes the next unit say which database it is about: another reader begins there.
func (s *Stream) Reselect() { s.db, s.was = 0, 0 }

// Effect adds to the unit.
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

// AppendCommand appends a command as it is sent: an array of strings.
func AppendCommand(b []byte, args [][]byte) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), '\r', '\n')
	for _, a := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(a)), 10), '\r', '\n')
		b = append(append(b, a...), '\r', '\n')
	}
	return b
}
