package engine

// What the owner of an engine, a server, asks it about its sessions.

// Anonymous reports whether the session has still to authenticate: its commands must be small.
func (s *Session) Anonymous() bool { return !s.authenticated && s.engine.settings.password != "" }

// MaxBulk returns the longest argument that a command may have: proto-max-bulk-len.
func (e *Engine) MaxBulk() int { return int(e.settings.maxBulk) }

// Protected reports whether connections from other hosts are turned away: there is no password, and protected-mode is on.
func (e *Engine) Protected() bool { return e.settings.protected && e.settings.password == "" }

// Refuse answers a command of s, which is not run, with an error. As with any error a transaction cannot be executed after it, and it ends if
// the command is EXEC.
func (e *Engine) Refuse(now int64, s *Session, args [][]byte, text string) {
	e.setNow(now)
	start, quiet := s.Out.Mark(), s.reply != replyOn
	if s.reply == replySkip {
		s.reply = replyOn
	}
	e.reject(s, nil, text)
	if cmd, _ := lookup(args); cmd != nil && cmd.Name == "exec" {
		e.discard(s)
	}
	if quiet {
		s.Out.Rewind(start)
	}
}
