package engine

const errReadOnly = "READONLY You can't write against a read only replica."

// Follow makes the engine a replica, or a master again. A replica hides what is dead, removes nothing of itself, and refuses writes but those of its
// master, which Obey brings.
func (e *Engine) Follow(on bool) { e.follows = on }

// RefuseWrites has writes refused whenever why, which is asked before each, returns an error for them: in Redis's words, that the journal
// cannot be written.
func (e *Engine) RefuseWrites(why func() string) { e.refused = why }

// refusal returns the error for a command that changes data when nothing may; empty if it may run. As in Redis, PING tells of a failing
// disk too.
func (e *Engine) refusal(s *Session, cmd *Command) string {
	if e.refused == nil && !e.follows || s.obeys {
		return ""
	}
	writes := cmd.Flags&Write != 0
	if cmd.Name == "exec" && s.queue != nil {
		for _, q := range s.queue.commands {
			writes = writes || q.cmd.Flags&Write != 0
		}
	}
	if e.refused != nil && (writes || cmd.Name == "ping") {
		if text := e.refused(); text != "" {
			return text
		}
	}
	if e.follows && writes {
		return errReadOnly
	}
	return ""
}
