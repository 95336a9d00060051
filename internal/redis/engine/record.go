package engine

import (
	"bytes"
	"strconv"
	"strings"
)

// A command that changed something is recorded as it was sent. A handler whose command must not be replayed so (it has a relative time, or
// a random choice) says c.rewrite; one whose parts record themselves sets c.silent.

// rewrite replaces what is recorded for this command by the parts of another one: words in any case, arguments, lists of arguments and
// numbers.
func (c *call) rewrite(parts ...any) {
	if c.e.sink != nil {
		c.effect = effectOf(parts)
	}
}

// propagate records the effect of a finished command.
func (c *call) propagate() {
	if c.effect == nil {
		c.effect = c.args
	}
	c.e.tell(c.s.db, c.effect) // not c.db: MOVE and COPY change that
}

// record records what no command asked for: an expiry or an eviction. The parts are those of rewrite.
func (e *Engine) record(d *db, parts ...any) {
	if e.sink != nil {
		e.tell(d.index, effectOf(parts))
	}
}

func effectOf(parts []any) (args [][]byte) {
	for _, part := range parts {
		switch p := part.(type) {
		case string:
			args = append(args, []byte(strings.ToUpper(p)))
		case []byte:
			args = append(args, bytes.Clone(p)) // not p: then no caller's parts escape to the heap
		case [][]byte:
			args = append(args, p...)
		case []string:
			for _, text := range p {
				args = append(args, []byte(text))
			}
		case int:
			args = append(args, decimal(int64(p)))
		case int64:
			args = append(args, decimal(p))
		}
	}
	return args
}

// removalVerb is the command that an expiry is recorded as.
func (e *Engine) removalVerb() string {
	if e.settings.lazyExpire {
		return "UNLINK"
	}
	return "DEL"
}

// decimal returns n as an argument.
func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
