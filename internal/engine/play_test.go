package engine

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// play runs a script of commands and replies against a new engine, with a clock that moves only when told:
//
//	play(t, Options{}, `
//		SET k v EX 10       +OK
//		@sleep 10000
//		@c2 GET k           "v"
//	`)
//
// Command and reply stand on one line with two spaces or more between them, the reply in the notation of testdata/expire-rules.md.
// @cX runs on a session of its own; @sleep moves the clock by milliseconds; @tick does what is due; @out X is what came to X unasked.
func play(t *testing.T, o Options, script string) *stage {
	t.Helper()
	s := newStage(o)
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		at := strings.LastIndex(line, "  ")
		command, want := line, ""
		if at >= 0 {
			command, want = strings.TrimSpace(line[:at]), strings.TrimSpace(line[at:])
		}
		if got := strings.TrimSpace(s.line(command)); got != want {
			t.Errorf("%s\n got %s\nwant %s", command, got, want)
		}
	}
	return s
}

// stage is an engine with a fake clock and sessions by name.
type stage struct {
	*Engine
	now      int64 // unix microseconds
	sessions map[string]*Session
	args     [][]byte
}

func newStage(o Options) *stage {
	if o.Seed == 0 {
		o.Seed = 1
	}
	return &stage{Engine: New(o), now: 1_800_000_000_000_000, sessions: map[string]*Session{}}
}

func (s *stage) session(name string) *Session {
	if s.sessions[name] == nil {
		s.sessions[name] = s.NewSession(SessionOptions{Addr: "127.0.0.1:" + strconv.Itoa(40000+len(s.sessions)), Now: s.now})
	}
	return s.sessions[name]
}

// line runs one line of a script and returns the reply in its notation.
func (s *stage) line(line string) string {
	who := ""
	if rest, ok := strings.CutPrefix(line, "@c"); ok {
		who, line, _ = strings.Cut(rest, " ")
	}
	args := words(line)
	switch args[0] {
	case "@sleep":
		ms, _ := strconv.ParseInt(args[1], 10, 64)
		s.sleep(ms)
		return ""
	case "@tick":
		s.Tick(s.now)
		return ""
	case "@out":
		return s.take(s.session(args[1]))
	}
	return s.do(who, args...)
}

// do runs one command and returns what it replied, "" if nothing yet.
func (s *stage) do(who string, args ...string) string {
	session := s.session(who)
	s.args = s.args[:0]
	for _, a := range args {
		s.args = append(s.args, []byte(a))
	}
	s.Do(s.now, session, s.args)
	for _, a := range s.args { // nothing of the arguments may be kept
		for i := range a {
			a[i] = '!'
		}
	}
	return s.take(session)
}

// sleep moves the clock, stopping whenever the engine wants to be woken.
func (s *stage) sleep(ms int64) {
	end := s.now + ms*1000
	for range 100000 {
		at, ok := s.NextWake()
		if !ok || at > end {
			break
		}
		s.now = max(s.now, at)
		s.Tick(s.now)
	}
	s.now = end
}

// take returns what is in the Out of a session, and empties it.
func (s *stage) take(session *Session) string {
	b := bytes.Clone(session.Out.Bytes())
	session.Out.Take(nil)
	var replies []string
	for len(b) > 0 {
		var r string
		r, b = notation(b)
		replies = append(replies, r)
	}
	return strings.Join(replies, " ")
}

// words splits a command line as redis-cli does: spaces, quotes, backslashes in double quotes.
func words(line string) []string {
	var out []string
	for line = strings.TrimLeft(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		switch line[0] {
		case '"':
			q, err := strconv.QuotedPrefix(line)
			if err != nil {
				panic(line)
			}
			w, _ := strconv.Unquote(q)
			out, line = append(out, w), line[len(q):]
		case '\'':
			w, rest, _ := strings.Cut(line[1:], "'")
			out, line = append(out, w), rest
		default:
			w, rest, _ := strings.Cut(line, " ")
			out, line = append(out, w), rest
		}
	}
	return out
}

// notation renders the first reply of b as the table of rules does.
func notation(b []byte) (text string, rest []byte) {
	end := bytes.Index(b, []byte("\r\n"))
	head, rest := string(b[1:end]), b[end+2:]
	n, _ := strconv.Atoi(head)
	list := func(open, shut string, n int) (string, []byte) {
		parts := make([]string, n)
		for i := range parts {
			parts[i], rest = notation(rest)
		}
		return open + strings.Join(parts, ", ") + shut, rest
	}
	switch b[0] {
	case '+', '-', ':', ',', '#', '(':
		return string(b[0]) + head, rest
	case '_':
		return "null", rest
	case '$', '=':
		if n < 0 {
			return "(nil)", rest
		}
		return strconv.Quote(string(rest[:n])), rest[n+2:]
	case '*':
		if n < 0 {
			return "(nil array)", rest
		}
		return list("[", "]", n)
	case '~':
		return list("~[", "]", n)
	case '%':
		return list("{", "}", 2*n)
	case '>':
		return list(">[", "]", n)
	}
	panic(fmt.Sprintf("not a reply: %q", b))
}
