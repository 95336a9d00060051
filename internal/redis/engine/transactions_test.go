package engine

import "testing"

func TestWatchSpoilsTransactions(t *testing.T) {
	play(t, Options{}, `
		// by another session
		WATCH k                      +OK
		@c2 SET k v                  +OK
		MULTI                        +OK
		PING                         +QUEUED
		EXEC                         (nil array)
		// by itself, before MULTI
		WATCH k                      +OK
		SET k w                      +OK
		MULTI                        +OK
		EXEC                         (nil array)
		// a change of nothing
		WATCH none                   +OK
		@c2 DEL none                 :0
		MULTI                        +OK
		EXEC                         []
		// in another database
		WATCH k                      +OK
		@c2 SELECT 1                 +OK
		@c2 SET k v                  +OK
		MULTI                        +OK
		EXEC                         []
		// by FLUSHALL, if it was there
		WATCH k                      +OK
		@c2 FLUSHALL                 +OK
		MULTI                        +OK
		EXEC                         (nil array)
		WATCH none                   +OK
		@c2 FLUSHALL                 +OK
		MULTI                        +OK
		EXEC                         []
		// by SWAPDB
		@c2 SET swapped v            +OK
		WATCH swapped                +OK
		@c2 SWAPDB 0 1               +OK
		MULTI                        +OK
		EXEC                         (nil array)
		// UNWATCH and DISCARD forget
		WATCH k                      +OK
		@c3 SET k v                  +OK
		UNWATCH                      +OK
		MULTI                        +OK
		EXEC                         []
		WATCH k                      +OK
		MULTI                        +OK
		DISCARD                      +OK
		@c3 SET k w                  +OK
		MULTI                        +OK
		EXEC                         []
		// a second WATCH of a spoiled session changes nothing
		WATCH k                      +OK
		@c3 SET k x                  +OK
		WATCH j                      +OK
		MULTI                        +OK
		EXEC                         (nil array)
	`)
}

// A watched key that is absent at first and then dead has not changed.
func TestSwappedDeadKeysAreNoChange(t *testing.T) {
	play(t, Options{}, `
		DEBUG SET-ACTIVE-EXPIRE 0    +OK
		@c2 SELECT 1                 +OK
		@c2 SET k v PX 1             +OK
		@sleep 2
		WATCH k                      +OK
		SWAPDB 0 1                   +OK
		MULTI                        +OK
		EXEC                         []
		WATCH k                      +OK
		@c2 SET k v PX 1             +OK
		@sleep 2
		SWAPDB 0 1                   +OK
		MULTI                        +OK
		EXEC                         []
		WATCH k                      +OK
		@c2 SET k v                  +OK
		SWAPDB 0 1                   +OK
		MULTI                        +OK
		EXEC                         (nil array)
	`)
}

func TestTimeStandsStillInATransaction(t *testing.T) {
	s := play(t, Options{}, `
		MULTI                        +OK
		TIME                         +QUEUED
		SET k v PX 1                 +QUEUED
		PTTL k                       +QUEUED
		TIME                         +QUEUED
		EXEC                         [["1800000000", "0"], +OK, :1, ["1800000000", "0"]]
	`)
	s.sleep(2)
	if got := s.do("", "EXISTS", "k"); got != ":0" {
		t.Error(got)
	}
}

func TestDroppedSessionsLeaveNothing(t *testing.T) {
	s := newStage(Options{})
	s.do("a", "WATCH", "k")
	s.do("a", "BLPOP", "l", "5")
	s.do("a", "SUBSCRIBE", "c")
	s.Drop(s.session("a"))
	s.Drop(s.session("a"))
	d := s.dbs[0]
	if len(d.watched)+len(d.blocked)+s.waits.Len()+len(s.Engine.sessions) != 0 {
		t.Errorf("%d watched, %d blocked, %d waits, %d sessions", len(d.watched), len(d.blocked), s.waits.Len(), len(s.Engine.sessions))
	}
	if got := s.do("b", "RPUSH", "l", "x"); got != ":1" {
		t.Errorf("RPUSH %s", got)
	}
	if got := s.do("b", "LLEN", "l"); got != ":1" {
		t.Errorf("LLEN %s: a dropped session took the element", got)
	}
}

func TestDebugSleepStalls(t *testing.T) {
	s := newStage(Options{})
	session := s.session("")
	if got := s.Do(s.now, session, command("DEBUG", "SLEEP", "0.25")); got != Stalled {
		t.Errorf("outcome %d", got)
	}
	if got := s.StalledUntil(); got != s.now+250_000 {
		t.Errorf("until %d us from now", got-s.now)
	}
	s.now += 250_000
	s.take("")
	if s.do("", "PING"); s.StalledUntil() != 0 {
		t.Error("stalled forever")
	}
}
