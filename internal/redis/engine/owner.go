package engine

// What the owner of an engine, a server, asks it about its sessions.

// Anonymous reports whether the session has still to authenticate: its commands must be small.
func (s *Session) Anonymous() bool { return !s.authenticated && s.engine.settings.locked() }

// SetUser makes AUTH take a name and a password, and every connection give some name; an empty password forgets the name.
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

// Listening says at which TCP port connections come, for INFO.
func (e *Engine) Listening(port int) { e.port = port }

// Rejected counts a connection that was turned away.
func (e *Engine) Rejected() { e.stats.rejected++ }

// Seed begins the random choices anew.
func (e *Engine) Seed(seed uint64) { e.rng.Seed(seed, 0) }

// ReadsOnly reports whether there is a command of this name that reads and does not write.
func ReadsOnly(name string) bool {
	cmd, _ := lookup([][]byte{[]byte(name)})
	return cmd != nil && cmd.Flags&ReadOnly != 0
}

// MaxBulk returns the longest argument that a command may have: proto-max-bulk-len.
func (e *Engine) MaxBulk() int { return int(e.settings.maxBulk) }

// Protected reports whether connections from other hosts are turned away: there is no password, and protected-mode is on.
func (e *Engine) Protected() bool { return e.settings.protected && !e.settings.locked() }

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
