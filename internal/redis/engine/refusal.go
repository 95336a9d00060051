package engine

import (
	"bytes"

	"github.com/mayflycache/mayfly/internal/redis/script"
)

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
func (e *Engine) refusal(s *Session, cmd *Command, flags Flag) string {
	if e.refused == nil && e.master == nil || s.obeys {
		return ""
	}
	writes := flags&Write != 0
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

// flags returns what a command of s may do: for EXEC what all queued commands may do, and for a script what its first line says.
func (e *Engine) flags(s *Session, cmd *Command, args [][]byte) Flag {
	switch {
	case cmd.Cats&CatScripting != 0 && cmd.Flags&MovableKeys != 0:
		return e.scripts.flags(cmd, args)
	case cmd.Name == "exec" && s.queue != nil:
		flags := cmd.Flags
		for _, q := range s.queue.commands {
			flags |= e.flags(s, q.cmd, q.args) & (Write | MayReplicate | DenyOOM)
		}
		return flags
	}
	return cmd.Flags
}

// flags are those of EVAL and its relatives with these arguments.
func (l *library) flags(cmd *Command, args [][]byte) Flag {
	var f script.Flags
	if cmd.Name == "evalsha" || cmd.Name == "evalsha_ro" {
		if chunk := l.find(args[1]); chunk != nil {
			f = chunk.Flags
		}
	} else if bytes.HasPrefix(args[1], []byte("#!")) {
		end := bytes.IndexByte(args[1], '\n') + 1
		f, _ = script.ReadFlags(string(args[1][:end])) // if they are malformed, the command itself fails
	}
	flags := cmd.Flags
	if f.Flagged {
		flags &^= MayReplicate
		if !f.NoWrites {
			flags |= Write
		}
		if !f.NoWrites && !f.AllowOOM {
			flags |= DenyOOM
		}
	}
	return flags
}
