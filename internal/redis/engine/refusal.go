package engine

const errReadOnly = "READONLY You can't write against a read only replica."

// RefuseWrites has writes refused with this error, in Redis's words, until it is called with an empty one: the journal cannot be written.
func (e *Engine) RefuseWrites(text string) { e.refused = text }

// refusal returns the error for a command that changes data when nothing may; empty if it may run. As in Redis, PING tells of a failing
// disk too.
func (e *Engine) refusal(s *Session, cmd *Command) string {
	if e.refused == "" && !e.follows || s.obeys {
		return ""
	}
	writes := cmd.Flags&Write != 0
	if cmd.Name == "exec" && s.queue != nil {
		for _, q := range s.queue.commands {
			writes = writes || q.cmd.Flags&Write != 0
		}
	}
	switch {
	case e.refused != "" && (writes || cmd.Name == "ping"):
		return e.refused
	case e.follows && writes:
		return errReadOnly
	}
	return ""
}
