package engine

import (
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/script"
)

// A script runs within one command, at one time, without other clients' commands in between. A long one yields: Do returns Yielded, and the
// owner of the engine calls Resume until that returns something else. Once the script has run for busy-reply-threshold, the owner should let
// other clients in between: they are told BUSY, and may send SCRIPT KILL.

// running is the script in progress.
type running struct {
	run       *script.Run
	s         *Session // the caller
	started   int64    // unix microseconds: the time during the whole script
	readOnly  bool
	wrote     bool
	mayBeFull bool // it declared that it runs although memory is full
	slow      bool // it has passed the threshold
	oneSlot   bool // in a cluster its keys must all be in
	slot      int  // this slot; -1: no key seen yet
	mute      bool // CLIENT REPLY silences the reply
}

// busy reports whether a script has yielded: no other command may run.
func (l *library) busy() bool { return l.running != nil }

// Busy reports whether a script runs beyond its time limit: the owner should let other clients in to learn that.
func (e *Engine) Busy() bool { return e.scripts.running != nil && e.scripts.running.slow }

// startScript runs chunk until it ends or yields. In a transaction it runs to the end.
func (e *Engine) startScript(c *call, chunk *script.Chunk, readOnly bool, keys, args [][]byte) {
	l := &e.scripts
	if l.machine == nil {
		l.machine = script.NewMachine(host{e})
		l.session = &Session{engine: e, authenticated: true, noBlock: true}
	}
	l.session.db, l.session.noTouch, l.session.Out.Proto = c.s.db, c.s.noTouch, 2
	r := &running{s: c.s, started: e.now, readOnly: readOnly || chunk.NoWrites, mayBeFull: chunk.AllowOOM, run: l.machine.Start(chunk, keys, args)}
	if r.oneSlot = chunk.OneSlot; r.oneSlot {
		r.slot, _ = c.cmd.slot(c.args, -1)
	}
	l.running = r
	c.silent = true // its commands record themselves
	for !r.run.Step() {
		if !c.s.noBlock {
			c.outcome = Yielded
			return
		}
	}
	e.endScript(c.out)
}

func (e *Engine) endScript(out *resp.Writer) {
	r := e.scripts.running
	e.scripts.running = nil
	if text := r.run.Reply(out); text != "" {
		e.countError(text)
	}
}

// Resume continues the script of s, for which Do returned Yielded. It returns Yielded again or, once the reply is in s.Out, Done.
func (e *Engine) Resume(now int64, s *Session) Outcome {
	r := e.scripts.running
	if r == nil || r.s != s {
		return Done
	}
	if limit := e.settings.busyAfter * 1000; limit > 0 && now-r.started >= limit {
		r.slow = true
	}
	e.setNow(r.started)
	e.current = s
	if !r.run.Step() {
		e.current = nil
		return Yielded
	}
	start := s.Out.Mark()
	e.endScript(&s.Out)
	if r.mute {
		s.Out.Rewind(start)
	}
	e.endTurn(s)
	e.endTold(s, Done)
	e.setNow(now)
	e.serveReady()
	return Done
}

// host is the engine as its scripts see it.
type host struct{ e *Engine }

func (h host) Version() string { return Version }

func (h host) Has(args [][]byte) bool {
	cmd, unknownSub := lookup(args)
	return cmd != nil && !unknownSub || notInScripts[strings.ToLower(string(args[0]))]
}

// notInScripts are commands that the engine does not have and that scripts may not call.
var notInScripts = map[string]bool{"monitor": true, "shutdown": true, "sync": true, "psync": true, "acl": true, "save": true, "bgsave": true,
	"function": true, "fcall": true, "fcall_ro": true, "latency": true, "module": true, "failover": true}

func (h host) SetProto(proto int) { h.e.scripts.session.Out.Proto = proto }

// Call runs a command of the running script.
func (h host) Call(args [][]byte) []byte {
	e, s := h.e, h.e.scripts.session
	s.Out.Rewind(resp.Mark{})
	if text := e.refuseInScript(args); text != "" {
		s.Out.Error(text)
		return s.Out.Bytes()
	}
	cmd, _ := lookup(args)
	if cmd.Flags&Write != 0 {
		e.scripts.running.wrote = true
	}
	e.run(s, cmd, args, &s.Out, nil)
	return s.Out.Bytes()
}

// refuseInScript returns the error for a command that the running script may not call; empty if it may.
func (e *Engine) refuseInScript(args [][]byte) string {
	cmd, unknownSub := lookup(args)
	switch r := e.scripts.running; {
	case cmd == nil && notInScripts[strings.ToLower(string(args[0]))]:
		return "ERR This Redis command is not allowed from script"
	case cmd == nil || unknownSub:
		return "ERR Unknown Redis command called from script"
	case !cmd.takes(len(args)) || cmd.run == nil:
		return "ERR Wrong number of args calling Redis command from script"
	case cmd.Flags&NoScript != 0:
		return "ERR This Redis command is not allowed from script"
	case cmd.Flags&(Write|MayReplicate) != 0 && r.readOnly:
		return "ERR Write commands are not allowed from read-only scripts."
	case cmd.Flags&DenyOOM != 0 && !r.wrote && !r.mayBeFull && e.full(r.s):
		return errOOM
	}
	if text := e.refusal(e.scripts.running.s, cmd, cmd.Flags); text != "" && cmd.Flags&Write != 0 {
		return text
	}
	return e.wrongNodeInScript(cmd, args)
}
