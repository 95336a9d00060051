package engine

import (
	"bytes"
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/rdb"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// play runs a script of commands and replies against a new engine, with a clock that moves only when told:
//
//	play(t, Options{}, `
//		SET k v EX 10       +OK
//		@sleep 10001
//		@c2 GET k           (nil)
//	`)
//
// Command and reply stand on one line with two spaces or more between them, the reply in the notation of testdata/expire-rules.md. @cX runs
// on a session of its own; @sleep moves the clock by milliseconds, doing everything that becomes due on the way; @out X shows what was pushed
// to session X.
func play(t *testing.T, o Options, script string) *stage {
	t.Helper()
	s := newStage(o)
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "//") {
			continue
		}
		command, want := line, ""
		if at := strings.LastIndex(line, "  "); at >= 0 {
			command, want = strings.TrimSpace(line[:at]), strings.TrimSpace(line[at:])
		}
		if got := strings.TrimSpace(s.line(command)); got != want {
			t.Errorf("%s\n got %s\nwant %s", command, got, want)
		}
	}
	return s
}

// stage is an engine with a fake clock, and sessions by name.
type stage struct {
	*Engine
	now      int64 // unix microseconds
	sessions map[string]*Session
	args     [][]byte
	follower *stage // a replica; nil: not needed yet
}

func newStage(o Options) *stage {
	if o.Seed == 0 {
		o.Seed = 1
	}
	return &stage{Engine: New(o), now: 1_800_000_000_000_000, sessions: map[string]*Session{}}
}

// ticks makes the engine do what is due now, step by step, and numbers the steps from 1.
func (s *stage) ticks() iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := 1; ; n++ {
			at, ok := s.NextWake()
			if !ok || at > s.now {
				return
			}
			if s.Tick(s.now); !yield(n) {
				return
			}
		}
	}
}

func (s *stage) session(name string) *Session {
	if s.sessions[name] == nil {
		s.sessions[name] = s.NewSession(SessionOptions{Addr: "127.0.0.1:" + strconv.Itoa(40000+len(s.sessions)), Now: s.now})
	}
	return s.sessions[name]
}

// line runs one line of a script and returns the reply.
func (s *stage) line(line string) string {
	who := ""
	if rest, ok := strings.CutPrefix(line, "@c"); ok {
		who, line, _ = strings.Cut(rest, " ")
	}
	args := words(line)
	switch args[0] {
	case "@sleep":
		ms, _ := strconv.Atoi(args[1])
		s.sleep(ms)
		return ""
	case "@out":
		return s.take(args[1])
	}
	return s.do(who, args...)
}

// do runs one command and returns its reply, "" if there is none yet. The clock moves by the time this took.
func (s *stage) do(who string, args ...string) string {
	session := s.session(who)
	s.args = s.args[:0]
	for _, a := range args {
		s.args = append(s.args, []byte(a))
	}
	for out := s.Do(s.now, session, s.args); out == Yielded; out = s.Resume(s.now, session) {
		s.now += 1000 // a slice of a script takes about a millisecond
	}
	for _, a := range s.args { // overwritten, because the engine may keep nothing of the arguments
		for i := range a {
			a[i] = '!'
		}
	}
	return s.take(who)
}

// sleep moves the clock, stopping whenever the engine needs a Tick.
func (s *stage) sleep(ms int) {
	end := s.now + int64(ms)*1000
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

// take empties the Out of a session and returns its contents.
func (s *stage) take(who string) string {
	session := s.session(who)
	r := resp.NewReader(bytes.NewReader(bytes.Clone(session.Out.Bytes())))
	session.Out.Take(nil)
	var replies []string
	for v, err := r.Read(); err == nil; v, err = r.Read() {
		replies = append(replies, notation(v))
	}
	return strings.Join(replies, " ")
}

// readOne empties the Out of a session and returns its first reply.
func readOne(session *Session) (resp.Value, error) {
	v, err := resp.NewReader(bytes.NewReader(bytes.Clone(session.Out.Bytes()))).Read()
	session.Out.Take(nil)
	return v, err
}

func (s *stage) name() string { return "engine" }

func (s *stage) close() {}

func (s *stage) attach() {
	s.do("feed", "SYNC")
	feed := s.session("feed")
	for feed.Syncing() {
		s.SyncPiece(feed)
	}
	feed.Out.Take(nil)
}

func (s *stage) stream() (string, int64) {
	now := s.now / 1000
	s.sleep(settle)
	return propagated(s.readAll("feed")), now
}

// readAll empties the Out of a session and returns a function that reads its values.
func (s *stage) readAll(who string) func() (resp.Value, error) {
	session := s.session(who)
	r := resp.NewReader(bytes.NewReader(bytes.Clone(session.Out.Bytes())))
	session.Out.Take(nil)
	return r.Read
}

func (s *stage) replica(args ...string) string {
	if s.follower == nil {
		out := s.session("R")
		s.do("R", "REPLCONF", "listening-port", "1")
		s.Do(s.now, out, [][]byte{[]byte("SYNC")})
		for out.Syncing() {
			s.SyncPiece(out)
		}
		file, rest, err := snapshotOf(string(out.Out.Bytes()))
		out.Out.Take(nil)
		s.follower = newStage(Options{})
		if err == nil && rest == "" {
			_, err = s.follower.Load(s.now, rdb.NewFile(strings.NewReader(file)), true)
		}
		if err != nil {
			return err.Error()
		}
		s.follower.Follow(&Master{})
	}
	f := s.follower
	f.now = s.now
	master := f.sessions["master"]
	if master == nil {
		master = f.NewSession(SessionOptions{Trusted: true, Obeys: true})
		f.sessions["master"] = master
	}
	for next := s.readAll("R"); ; {
		v, err := next()
		if err != nil {
			break
		}
		var words [][]byte
		for _, arg := range v.List {
			words = append(words, []byte(arg.Text))
		}
		if err := f.Obey(f.now, master, words); err != nil {
			return err.Error()
		}
	}
	return f.do("", args...)
}

// keeping is a Log that keeps nothing.
type keeping struct{}

func (keeping) Dir() string     { return "/" }
func (keeping) Fsync() string   { return "everysec" }
func (keeping) SetFsync(string) {}
func (keeping) Compact() bool   { return true }
func (keeping) State() LogState { return LogState{} }
