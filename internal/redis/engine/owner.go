package engine

// The methods by which the owner of an engine, a server, queries and informs it.

// Anonymous reports whether the session has yet to authenticate: its commands must be small.
func (s *Session) Anonymous() bool { return !s.authenticated && s.engine.settings.locked() }

// SetUser makes AUTH accept a name and a password, so that every connection must authenticate; an empty password removes the name.
func (e *Engine) SetUser(name, password string) {
	if name == "default" {
		e.settings.password = password
		return
	}
	if e.settings.users == nil {
		e.settings.users = make(map[string]string)
	}
	if password == "" {
		delete(e.settings.users, name)
	} else {
		e.settings.users[name] = password
	}
}

// Listening sets the TCP port that INFO shows.
func (e *Engine) Listening(port int) { e.port = port }

// Rejected counts a connection that was turned away.
func (e *Engine) Rejected() { e.stats.rejected++ }

// Seed restarts the random choices from a seed.
func (e *Engine) Seed(seed uint64) { e.rng.Seed(seed, 0) }

// ReadsOnly reports whether the command of this name exists and only reads.
func ReadsOnly(name string) bool {
	cmd, _ := lookup([][]byte{[]byte(name)})
	return cmd != nil && cmd.Flags&ReadOnly != 0
}

// MaxBulk returns the longest argument that a command may have: proto-max-bulk-len.
func (e *Engine) MaxBulk() int { return int(e.settings.maxBulk) }

// Protected reports whether connections from other hosts are turned away: protected-mode is on and there is no password.
func (e *Engine) Protected() bool { return e.settings.protected && !e.settings.locked() }

// Refuse answers a command of s with an error instead of running it. As with any error, an open transaction will fail; if the command is
// EXEC, the transaction ends.
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
