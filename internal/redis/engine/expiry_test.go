package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// A key exists in the millisecond of its deadline and is gone in the next, whether a command, the index, or both find it.
func TestDeadlinesAreExactToTheMillisecond(t *testing.T) {
	for _, active := range []string{"0", "1"} {
		s := newStage(Options{})
		s.do("", "DEBUG", "SET-ACTIVE-EXPIRE", active)
		for ms := int64(1); ms <= 50; ms++ {
			key := fmt.Sprint("k", ms)
			s.do("", "SET", key, "v", "PX", fmt.Sprint(ms))
		}
		for ms := int64(1); ms <= 50; ms++ {
			key := fmt.Sprint("k", ms)
			s.sleep(1)
			if got := s.do("", "GET", key); got != `"v"` {
				t.Fatalf("active %s: %s after %d ms", active, got, ms)
			}
			s.now += 999 // microseconds: still the same millisecond
			if got := s.do("", "PTTL", key); got != ":0" {
				t.Fatalf("active %s: PTTL %s in the last millisecond", active, got)
			}
			s.now++
			if got := s.do("", "GET", key); got != "(nil)" {
				t.Fatalf("active %s: %s after %d ms", active, got, ms+1)
			}
			s.now -= 1000
		}
	}
}

// Nothing is done early, and nothing due is left: the engine says when to wake it. A dead key that is the destination of an empty result is
// removed like a living one; SCAN finds it, whatever type it asks for.
func TestDeadKeysThatAreNotLookedUp(t *testing.T) {
	s := play(t, Options{}, `
		DEBUG SET-ACTIVE-EXPIRE 0                    +OK
		CONFIG SET notify-keyspace-events EA         +OK
		MSET a 1 b 2 c 3 d 4                         +OK
		PEXPIRE a 1                                  :1
		PEXPIRE b 1                                  :1
		PEXPIRE c 1                                  :1
		PEXPIRE d 1                                  :1
		@csub PSUBSCRIBE __keyevent@0__:*            ["psubscribe", "__keyevent@0__:*", :1]
		@sleep 2
		SINTERSTORE a none                           :0
		BITOP NOT d none                             :0
		SCAN 0 TYPE list MATCH b                     ["0", []]
		RESTORE c 0 x REPLACE                        -ERR DUMP payload version or checksum are wrong
	`)
	if got, want := events(s.take("sub")), "{del a, del d, expired b}"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestWakesWhenSomethingIsDue(t *testing.T) {
	s := newStage(Options{})
	if at, ok := s.NextWake(); ok {
		t.Errorf("an empty engine wants to be woken at %d", at)
	}
	s.do("", "SET", "forever", "v")
	if _, ok := s.NextWake(); ok {
		t.Error("a key without a deadline wants to be woken for")
	}
	s.do("", "SET", "k", "v", "PX", "500")
	s.do("", "SET", "j", "v", "PX", "100")
	if at, ok := s.NextWake(); !ok || at > s.now+101_000 {
		t.Errorf("woken in %d, %v", at-s.now, ok)
	}
	s.sleep(101)
	if n := s.dbs[0].len(); n != 2 {
		t.Errorf("%d keys after 101 ms", n)
	}
	s.sleep(400)
	if n := s.dbs[0].len(); n != 1 {
		t.Errorf("%d keys after 501 ms", n)
	}
	if _, ok := s.NextWake(); ok {
		t.Error("nothing is left to wake for")
	}
	if s.stats.expiredKeys != 2 {
		t.Errorf("%d expired", s.stats.expiredKeys)
	}
}

func TestAWeekCostsNoTicks(t *testing.T) {
	s := newStage(Options{})
	const week = 7 * 24 * 3600 * 1000
	s.do("", "SET", "k", "v", "PX", fmt.Sprint(week))
	ticks, end := 0, s.now+week*1000
	for at, ok := s.NextWake(); ok && at <= end; at, ok = s.NextWake() {
		s.now = at
		s.Tick(at)
		ticks++
	}
	if ticks > 100 {
		t.Errorf("%d ticks in a week", ticks)
	}
}

// A burst is reaped in pieces, so that commands never wait long for one Tick.
func TestATickIsBounded(t *testing.T) {
	s := newStage(Options{})
	const keys = 3*tickWork + 1
	for i := range keys {
		s.do("", "SET", fmt.Sprint("k", i), "v", "PX", "10")
	}
	s.now += 11_000
	ticks := 0
	for ticks = range s.ticks() {
		if got := keys - s.dbs[0].len(); got > ticks*tickWork {
			t.Fatalf("%d keys in %d ticks", got, ticks)
		}
	}
	if s.dbs[0].len() != 0 || ticks < 4 {
		t.Errorf("%d keys left after %d ticks", s.dbs[0].len(), ticks)
	}
}

// The documented cycle runs ten times a second while any key has a deadline, finds dead keys by sampling, and may be late.
func TestTheDocumentedCycle(t *testing.T) {
	s := newStage(Options{Cycle: Documented})
	for i := range 1000 {
		s.do("", "SET", fmt.Sprint("dead", i), "v", "PX", "10")
		s.do("", "SET", fmt.Sprint("live", i), "v", "PX", "1000000")
	}
	var wakes []int64
	for range 30 {
		at, ok := s.NextWake()
		if !ok {
			t.Fatal("nothing to wake for")
		}
		s.now = max(s.now, at)
		s.Tick(s.now)
		wakes = append(wakes, s.now)
	}
	for i := 2; i < len(wakes); i++ {
		if d := wakes[i] - wakes[i-1]; d != 100_000 {
			t.Errorf("cycle %d after %d us", i, d)
		}
	}
	left := s.dbs[0].len() - 1000
	if left < 100 || left > 500 { // about a third of the others, which is a quarter of all
		t.Errorf("%d dead keys left of 1000", left)
	}
	if got := s.do("", "EXISTS", "live7", "dead7"); got != ":1" {
		t.Errorf("EXISTS %s", got)
	}
}

// A key that exists during a whole SCAN is returned exactly once, whatever happens to others.
func TestScanMeetsEveryKeyOnce(t *testing.T) {
	effort.Alone(t)
	const seed = 3
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	s := newStage(Options{})
	const stay = 500
	for i := range stay {
		s.do("", "SET", fmt.Sprint("stay:", i), "v")
		s.do("", "SET", fmt.Sprint("go:", i), "v")
	}
	for range 20 {
		met := map[string]int{}
		session := s.session("")
		for cursor := "0"; ; {
			s.Do(s.now, session, command("SCAN", cursor, "COUNT", fmt.Sprint(1+r.IntN(20)), "MATCH", "stay:*"))
			v, err := readOne(session)
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range v.List[1].List {
				met[key.Text]++
			}
			if cursor = v.List[0].Text; cursor == "0" {
				break
			}
			for range r.IntN(30) {
				key := fmt.Sprint("go:", r.IntN(3*stay))
				s.do("", []string{"SET", "DEL"}[r.IntN(2)], key, "v")
			}
		}
		if len(met) != stay {
			t.Fatalf("met %d keys of %d", len(met), stay)
		}
		for key, n := range met {
			if n != 1 {
				t.Fatalf("%s met %d times", key, n)
			}
		}
	}
}

func TestRandomKeyIsFair(t *testing.T) {
	s := newStage(Options{Seed: 5})
	for i := range 1000 {
		s.do("", "SET", fmt.Sprint(i), "v")
	}
	for i := range 996 { // most slots are free now
		s.do("", "DEL", fmt.Sprint(i))
	}
	drawn := map[string]int{}
	for range 4000 {
		drawn[s.do("", "RANDOMKEY")]++
	}
	if len(drawn) != 4 {
		t.Fatal(drawn)
	}
	for key, n := range drawn {
		if n < 850 || n > 1150 {
			t.Errorf("%s drawn %d times of 4000", key, n)
		}
	}
}
