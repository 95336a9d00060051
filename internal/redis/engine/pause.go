package engine

import "github.com/mayflycache/mayfly/internal/redis/values"

// A pause holds back all commands, or those that write, for as long as an operator needs. Commands are not refused: they wait and run when
// the pause ends. Meanwhile nothing expires or is evicted; dead keys are only hidden.
type pause struct {
	until   int64 // unix ms; 0: not paused
	all     bool  // reads wait too
	waiting []*waiter
}

func clientPauseCommand(c *call) {
	all := true
	if len(c.args) == 4 {
		switch {
		case c.is(3, "WRITE"):
			all = false
		case !c.is(3, "ALL"):
			c.fail("ERR CLIENT PAUSE mode must be WRITE or ALL")
			return
		}
	} else if len(c.args) > 4 {
		c.fail(wrongSubcommand(c.args))
		return
	}
	until := c.waitMilliseconds(2)
	if c.failed {
		return
	}
	p := &c.e.pause
	if until == 0 { // a pause of no length, over at once
		until = c.e.ms
	}
	p.until, p.all = max(p.until, until), p.all && p.until > 0 || all
	c.ok()
}

func clientUnpauseCommand(c *call) {
	if c.e.pause.until != 0 {
		c.e.pause.until = c.e.ms
	}
	c.ok()
}

// paused reports whether a pause is in effect.
func (e *Engine) paused() bool { return e.pause.until != 0 && e.ms < e.pause.until }

// waitsOut reports whether a pause holds back a command of s.
func (e *Engine) waitsOut(s *Session, cmd *Command, flags Flag) bool {
	if !e.paused() || s.obeys || s.IsReplica() || cmd.Name == "psync" || cmd.Name == "replconf" {
		return false
	}
	return e.pause.all || flags&(Write|MayReplicate) != 0
}

// postpone makes s wait for the end of the pause. Its command is kept and runs then: see Resumed.
func (e *Engine) postpone(s *Session, cmd *Command, args [][]byte) Outcome {
	s.held = copyArgs(args)
	s.waiting = &waiter{s: s, cmd: cmd, db: e.dbs[s.db], kind: values.Missing, slot: e.waiterSlot()}
	e.waiters[s.waiting.slot] = s.waiting
	e.pause.waiting = append(e.pause.waiting, s.waiting)
	return Blocked
}

// endPause releases the waiting sessions once the pause is over.
func (e *Engine) endPause() {
	if e.pause.until == 0 || e.paused() {
		return
	}
	held := e.pause.waiting
	e.pause = pause{}
	for _, w := range held {
		if w.s.waiting == w { // otherwise it has left
			e.unpark(w.s)
			e.markDirty(w.s)
		}
	}
}

// Held reports whether a pause holds back a command of s.
func (s *Session) Held() bool { return s.held != nil }

// Resumed returns the command that a pause held back, once the pause is over: the owner runs it before those that came after it.
func (s *Session) Resumed() [][]byte {
	args := s.held
	if s.waiting == nil {
		s.held = nil
	}
	return args
}
