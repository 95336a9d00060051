package engine

import (
	"slices"
	"strings"
)

// A Log is a journal, as far as commands need to know it.
type Log interface {
	Dir() string   // absolute, or as it was given
	Fsync() string // always, everysec or no
	SetFsync(policy string)
	Compact() bool // in the background; false: one is in progress
	State() LogState
}

// LogState is what INFO shows of a Log.
type LogState struct {
	Size, Base   int64 // bytes, now and after the last compaction
	Compacting   bool
	CompactError error // of the last one
	WriteError   error // of the last write
}

// SetLog sets the journal that commands ask about. SetSink feeds it.
func (e *Engine) SetLog(log Log) { e.log = log }

var logCommands = []Command{
	{Name: "bgrewriteaof", Arity: 1, Flags: Admin | NoScript, run: bgrewriteaofCommand},
}

const errNoLog = "ERR This server keeps nothing on disk: it was started without a directory"

func bgrewriteaofCommand(c *call) {
	switch {
	case c.e.log == nil:
		c.fail(errNoLog)
	case !c.e.log.Compact():
		c.fail("ERR Background append only file rewriting already in progress")
	default:
		c.out.Simple("Background append only file rewriting started")
	}
}

func (e *Engine) fsync() string {
	if e.log == nil {
		return "everysec"
	}
	return e.log.Fsync()
}

func (e *Engine) dir() string {
	if e.log == nil {
		return ""
	}
	return e.log.Dir()
}

// checkAppendonly accepts only the present state: a journal cannot be added or removed while the server runs.
func checkAppendonly(e *Engine, value string) string {
	switch {
	case strings.EqualFold(value, yesOrNo(e.log != nil)):
		return ""
	case e.log == nil:
		return "it was started without a directory to keep the data in"
	}
	return "the journal cannot be turned off while the server runs"
}

func parseAppendfsync(value string) (func(*Engine), string) {
	policies := []string{"everysec", "always", "no"}
	value = strings.ToLower(value)
	if !slices.Contains(policies, value) {
		return nil, "argument(s) must be one of the following: " + strings.Join(policies, ", ")
	}
	return func(e *Engine) {
		if e.log != nil {
			e.log.SetFsync(value)
		}
	}, ""
}

func (e *Engine) logState() (s LogState) {
	if e.log != nil {
		s = e.log.State()
	}
	return s
}

func logStatus(err error) string {
	if err != nil {
		return "err"
	}
	return "ok"
}

// infoLog writes the fields of INFO that exist only with a journal.
func infoLog(e *Engine, w *strings.Builder) {
	if e.log != nil {
		line(w, "aof_current_size", e.logState().Size)
		line(w, "aof_base_size", e.logState().Base)
	}
}
