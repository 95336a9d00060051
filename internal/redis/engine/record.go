package engine

import "strconv"

// A command that changed something is recorded as it was sent. If it must not be replayed that way, because of a relative time or a random
// choice, its handler calls c.rewrite; a handler whose parts record themselves sets c.silent.

// rewrite replaces what is recorded for this command with another command, made of parts: words in any case, arguments, lists of arguments
// and numbers.
func (c *call) rewrite(parts ...any) {
	if c.e.tells() {
		c.effect = c.words.of(parts)
	}
}

// propagate records the effect of a finished command.
func (c *call) propagate() {
	if c.effect == nil {
		c.effect = c.args
	}
	c.e.tell(c.s.db, c.effect) // not c.db: MOVE and COPY change that
}

// record records an effect that no command asked for: an expiry or an eviction. The parts are those of rewrite.
func (e *Engine) record(d *db, parts ...any) {
	if e.tells() {
		e.tell(d.index, e.words.of(parts))
	}
}

// phrase holds the arguments of an effect in reusable memory.
type phrase struct {
	args [][]byte
	text []byte
}

// of returns parts as arguments, valid until the next call. The caller's parts do not escape to the heap.
func (w *phrase) of(parts []any) [][]byte {
	if cap(w.text) > 64<<10 {
		w.text = nil
	}
	w.args, w.text = w.args[:0], w.text[:0]
	for _, part := range parts {
		from := len(w.text)
		switch p := part.(type) {
		case string:
			for i := range len(p) {
				c := p[i]
				if 'a' <= c && c <= 'z' {
					c -= 'a' - 'A'
				}
				w.text = append(w.text, c)
			}
		case []byte:
			w.text = append(w.text, p...)
		case [][]byte:
			w.args = append(w.args, p...)
			continue
		case []string:
			for _, text := range p {
				w.args = append(w.args, []byte(text))
			}
			continue
		case int:
			w.text = strconv.AppendInt(w.text, int64(p), 10)
		case int64:
			w.text = strconv.AppendInt(w.text, p, 10)
		}
		w.args = append(w.args, w.text[from:len(w.text):len(w.text)])
	}
	return w.args
}

// removalVerb is the command that records an expiry.
func (e *Engine) removalVerb() string {
	if e.settings.lazyExpire {
		return "UNLINK"
	}
	return "DEL"
}

// decimal returns n as an argument.
func decimal(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
