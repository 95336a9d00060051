package engine

import (
	"fmt"
	"strings"
	"testing"
)

// psync sends PSYNC as who, and returns the answer with the whole snapshot.
func (s *stage) psync(who string, id string, next int64) string {
	session := s.session(who)
	s.Do(s.now, session, [][]byte{[]byte("REPLCONF"), []byte("capa"), []byte("eof")})
	session.Out.Take(nil)
	s.Do(s.now, session, [][]byte{[]byte("PSYNC"), []byte(id), fmt.Append(nil, next)})
	for session.Syncing() {
		s.SyncPiece(session)
	}
	answer := string(session.Out.Bytes())
	session.Out.Take(nil)
	return answer
}

func TestAReplicaIsFedOnceItHasItsSnapshot(t *testing.T) {
	s := newStage(Options{})
	s.do("", "SET", "k", "v")
	answer := s.psync("r", "?", -1)
	var id string
	var offset int64
	if n, err := fmt.Sscanf(answer, "+FULLRESYNC %40s %d\r\n$EOF:", &id, &offset); n != 2 || err != nil || offset != 0 {
		t.Fatalf("%.100q: %v", answer, err)
	}
	_, rest, _ := strings.Cut(answer, "$EOF:")
	if mark := rest[:40]; !strings.HasSuffix(answer, mark) || !strings.Contains(rest, "\r\nREDIS0010") {
		t.Errorf("%q", answer)
	}
	s.do("", "INCR", "n")
	if got := string(s.session("r").Out.Bytes()); got != "" {
		t.Errorf("before it acknowledged the snapshot it was sent %q", got)
	}
	s.do("r", "REPLCONF", "ACK", "0")
	s.do("r", "REPLCONF", "ACK", "0")
	s.do("", "INCR", "n")
	const incr = "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n"
	const fed = "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n" + incr + incr
	if got := s.feed.offset; got != int64(len(fed)) || string(s.feed.backlog) != fed {
		t.Errorf("%d bytes were fed: %q", got, s.feed.backlog)
	}

	// The link breaks; what was missed comes from the backlog, and nothing else does.
	s.Drop(s.session("r"))
	delete(s.sessions, "r")
	s.do("", "INCR", "n")
	if got := s.psync("r", id, int64(len(fed))+1); got != "+CONTINUE "+id+"\r\n"+incr {
		t.Errorf("it goes on with %q", got)
	}
	for _, next := range []int64{0, int64(len(fed)) * 3} {
		if got := s.psync(fmt.Sprint("other", next), id, next); !strings.HasPrefix(got, "+FULLRESYNC") {
			t.Errorf("from %d on: %.80q", next, got)
		}
	}
	if got := s.psync("stranger", strings.Repeat("0", 40), 1); !strings.HasPrefix(got, "+FULLRESYNC") {
		t.Errorf("of another stream: %.80q", got)
	}
}

func TestWaitCountsAcknowledgements(t *testing.T) {
	s := newStage(Options{})
	s.psync("r", "?", -1)
	s.do("r", "REPLCONF", "ACK", "0")
	if got := s.do("", "WAIT", "1", "0"); got != ":1" {
		t.Errorf("nothing was written: %s", got)
	}
	s.do("", "SET", "k", "v")
	written := s.feed.offset
	if got := s.do("", "WAIT", "1", "100"); got != "" {
		t.Errorf("nobody has it yet: %s", got)
	}
	s.sleep(101)
	if got := s.take(""); got != ":0" {
		t.Errorf("when the time is up: %s", got)
	}
	s.do("", "WAIT", "1", "0")
	s.do("r", "REPLCONF", "ACK", fmt.Sprint(written))
	if got := s.take(""); got != ":1" {
		t.Errorf("acknowledged: %s", got)
	}
	if got := string(s.feed.backlog); strings.Count(got, "GETACK") != 2 {
		t.Errorf("it was asked for: %q", got)
	}
	if got := s.do("", "ROLE"); got != fmt.Sprintf(`["master", :%d, [["127.0.0.1", "", "%d"]]]`, s.feed.offset, written) {
		t.Errorf("ROLE: %s", got)
	}
}

// A replica gets a PING every ten seconds. One that takes too long to load is dropped; after an hour without replicas nothing is fed any
// more.
func TestReplicasComeAndGo(t *testing.T) {
	s := newStage(Options{})
	s.psync("r", "?", -1)
	s.do("r", "REPLCONF", "ACK", "0")
	s.sleep(35_000)
	if got := string(s.session("r").Out.Bytes()); strings.Count(got, "PING") != 3 {
		t.Errorf("in 35 s: %q", got)
	}
	s.psync("slow", "?", -1)
	s.feed.heldLimit = 10_000
	for range 5 {
		s.do("", "SET", "big", strings.Repeat("v", 3000))
	}
	if !s.session("slow").Closing() || s.session("r").Closing() {
		t.Errorf("slow: %v, the other: %v", s.session("slow").Closing(), s.session("r").Closing())
	}
	s.do("", "SET", "big", strings.Repeat("v", 3*backlogSize))
	for range 300 {
		s.do("", "SET", "big", strings.Repeat("v", 10_000))
	}
	if n := len(s.feed.backlog); n < backlogSize || n > 2*backlogSize || cap(s.feed.backlog) > 3*backlogSize || !strings.HasSuffix(string(s.feed.backlog), "v\r\n") {
		t.Errorf("the backlog is %d bytes in %d", n, cap(s.feed.backlog))
	}
	s.Drop(s.session("slow"))
	s.Drop(s.session("r"))
	s.sleep(backlogLife + 1000)
	if s.feed.on || s.feed.backlog != nil {
		t.Error("effects are fed to nobody")
	}
	if _, ok := s.NextWake(); ok {
		t.Error("there is something to do")
	}
}
