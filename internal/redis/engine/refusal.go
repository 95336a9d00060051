package engine

const errReadOnly = "READONLY You can't write against a read only replica."

// RefuseWrites has writes refused whenever why, which is asked before each, returns an error for them: in Redis's words, that the journal
// cannot be written.
func (e *Engine) RefuseWrites(why func() string) { e.refused = why }

// RefusesWrites returns why writes are refused, in Redis's words: the journal cannot be written. Empty: they are not.
func (e *Engine) RefusesWrites() string {
	if e.refused == nil {
		return ""
	}
	return e.refused()
}

// refusal returns the error for a command that changes data when nothing may; empty if it may run. As in Redis, PING tells of a failing
// disk too.
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
