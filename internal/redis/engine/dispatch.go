package engine

import (
	"strings"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// turn runs one command as a turn of s: CLIENT REPLY may silence it, and what is pushed to s meanwhile follows the reply. w is non-nil when a
// parked command runs again; the checks are skipped then, because it passed them before it parked.
func (e *Engine) turn(s *Session, args [][]byte, w *waiter) (outcome Outcome) {
	start, skip := s.Out.Mark(), s.reply == replySkip
	if skip {
		s.reply = replyOn
	}
	e.current = s
	if w == nil {
		outcome = e.process(s, args)
		e.forgetCaching(s, args)
	} else {
		outcome = e.run(s, w.cmd, args, &s.Out, w)
	}
	mute := skip || s.reply == replyOff
	if outcome == Yielded {
		e.scripts.running.mute = mute
		e.current = nil
		return outcome
	}
	if mute {
		s.Out.Rewind(start)
	}
	e.endTurn(s)
	return outcome
}

// endTurn sends the pushes held back while a command of s ran.
func (e *Engine) endTurn(s *Session) {
	e.flushInvalidations()
	e.current = nil
	if s.pushes.Len() > 0 {
		s.Out.RawBytes(s.pushes.Bytes())
		s.pushes.Rewind(resp.Mark{})
	}
}

// process takes one command through the checks, in Redis's order, then runs or queues it.
func (e *Engine) process(s *Session, args [][]byte) Outcome {
	cmd, unknownSub := lookup(args)
	switch {
	case cmd == nil:
		if isHTTP(args[0]) {
			return Close
		}
		return e.reject(s, nil, unknownCommand(args))
	case unknownSub:
		return e.reject(s, cmd, unknownSubcommand(args))
	case !cmd.takes(len(args)) || cmd.run == nil:
		return e.reject(s, cmd, wrongArity(cmd.Name))
	case s.Anonymous() && cmd.Flags&NoAuth == 0:
		return e.reject(s, cmd, errNoAuth)
	}
	s.last, s.lastUse = cmd, e.now
	if text := e.wrongNode(s, cmd, args); text != "" {
		if cmd.Name == "exec" {
			e.discard(s) // and the reply is just the error
		}
		return e.reject(s, cmd, text)
	}
	flags := e.flags(s, cmd, args)
	if e.full(s) && flags&DenyOOM != 0 {
		return e.reject(s, cmd, errOOM)
	}
	if text := e.refusal(s, cmd, flags); text != "" {
		return e.reject(s, cmd, text)
	}
	if s.Out.Proto != 3 && s.Subscribed() && !allowedWhileSubscribed(cmd) {
		return e.reject(s, cmd, onlySubscribe(cmd.Name))
	}
	if e.scripts.busy() && cmd.Flags&AllowBusy == 0 {
		return e.reject(s, cmd, errBusy)
	}
	if s.queue != nil && cmd.Flags&NoMulti != 0 {
		return e.reject(s, cmd, "ERR Command not allowed inside a transaction")
	}
	if e.pause.until != 0 && e.waitsOut(s, cmd, flags) {
		return e.postpone(s, cmd, args)
	}
	if s.queue != nil && !runsInMulti(cmd) {
		if !s.queue.broken {
			s.queue.commands = append(s.queue.commands, queued{cmd, copyArgs(args)})
		}
		s.Out.Simple("QUEUED")
		return Done
	}
	return e.run(s, cmd, args, &s.Out, nil)
}

// run runs a command that passed the checks, for a client, a transaction or a script, and writes the reply to out.
func (e *Engine) run(s *Session, cmd *Command, args [][]byte, out *resp.Writer, w *waiter) Outcome {
	c := e.takeCall()
	c.e, c.s, c.db, c.cmd, c.args, c.out, c.retry = e, s, e.dbs[s.db], cmd, args, out, w
	changes := e.changes
	e.stats.commands++
	cmd.run(c)
	if cmd.Flags&ReadOnly != 0 && e.tracking.sessions > 0 {
		e.remember(c)
	}
	if e.tells() && e.changes != changes && !c.silent {
		c.propagate()
	}
	outcome := c.outcome
	e.giveBack(c)
	return outcome
}

// takeCall returns a call to use; giveBack returns it. Calls nest in transactions, scripts and served waiters.
func (e *Engine) takeCall() *call {
	if n := len(e.calls); n > 0 {
		c := e.calls[n-1]
		e.calls = e.calls[:n-1]
		return c
	}
	return new(call)
}

func (e *Engine) giveBack(c *call) {
	*c = call{words: c.words}
	e.calls = append(e.calls, c)
}

// reject answers a command that is not run. In a transaction it makes EXEC fail.
func (e *Engine) reject(s *Session, cmd *Command, text string) Outcome {
	if s.queue != nil {
		s.queue.broken = true
		if cmd != nil && cmd.Name == "exec" {
			e.discard(s)
			text = "EXECABORT Transaction discarded because of: " + strings.TrimPrefix(text, "ERR ")
		}
	}
	e.countError(text)
	s.Out.Error(text)
	return Done
}

// countError counts an error reply by its code, its first word.
func (e *Engine) countError(text string) {
	code, _, _ := strings.Cut(text, " ")
	if e.stats.errors == nil {
		e.stats.errors = make(map[string]int64)
	}
	e.stats.errors[code]++
	e.stats.errorReplies++
}

// isHTTP recognises a request that a web page was tricked into sending; Redis closes such a connection without a reply.
func isHTTP(name []byte) bool {
	return len(name) == 4 && strings.EqualFold(string(name), "post") || len(name) == 5 && strings.EqualFold(string(name), "host:")
}
