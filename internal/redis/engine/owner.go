package engine

// What the owner of an engine, a server, asks it about its sessions.

// Anonymous reports whether the session has still to authenticate: its commands must be small.
func (s *Session) Anonymous() bool { return !s.authenticated && s.engine.settings.password != "" }

// MaxBulk returns the longest argument that a command may have: proto-max-bulk-len.
func (e *Engine) MaxBulk() int { return int(e.settings.maxBulk) }

// Refuse answers a command of s, which is not run, with an error. As with any error a transaction cannot be executed after it.
func (e *Engine) Refuse(now int64, s *Session, text string) {
	e.setNow(now)
	start, quiet := s.Out.Mark(), s.reply != replyOn
	if s.reply == replySkip {
		s.reply = replyOn
	}
	e.reject(s, nil, text)
	if quiet {
		s.Out.Rewind(start)
	}
}
