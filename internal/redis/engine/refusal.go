package engine

const errReadOnly = "READONLY You can't write against a read only replica."

// RefuseWrites refuses writes whenever why, called before each, returns an error for them, in Redis's words. The journal uses it when it
// cannot be written.
func (e *Engine) RefuseWrites(why func() string) { e.refused = why }

// RefusesWrites returns the error with which writes are refused, in Redis's words; empty if they are accepted.
func (e *Engine) RefusesWrites() string {
	if e.refused == nil {
		return ""
	}
	return e.refused()
}

// refusal returns the error for a command that may not change data now; empty if it may run. As in Redis, PING reports a failing disk too.
func (e *Engine) refusal(s *Session, cmd *Command) string {
	if e.refused == nil && e.master == nil || s.obeys {
		return ""
	}
	writes := cmd.Flags&Write != 0
	if cmd.Name == "exec" && s.queue != nil {
		for _, q := range s.queue.commands {
			writes = writes || q.cmd.Flags&Write != 0
		}
	}
	if writes || cmd.Name == "ping" {
		if text := e.RefusesWrites(); text != "" {
			return text
		}
	}
	if e.master != nil && writes {
		return errReadOnly
	}
	return ""
}
