package engine

import (
	"fmt"
	"strings"
	"testing"
)

func TestDeadFieldsGoWhenNamedAndStayWhenPassed(t *testing.T) {
	for _, c := range []struct{ command, want, events, left string }{
		{"HGET h f", "(nil)", "{hexpired h}", ":1"},
		{"HMGET h f g f", `[(nil), "w", (nil)]`, "{hexpired h}", ":1"},
		{"HEXISTS h f", ":0", "{hexpired h}", ":1"},
		{"HSTRLEN h f", ":0", "{hexpired h}", ":1"},
		{"HINCRBY h f 1", ":1", "{hexpired h, hincrby h}", ":2"},
		{"HINCRBYFLOAT h f 1", `"1"`, "{hexpired h, hincrbyfloat h}", ":2"},
		{"HSETNX h f 1", ":1", "{hexpired h, hset h}", ":2"},
		{"HSET h f 1", ":0", "{hset h}", ":2"},
		{"HDEL h f", ":1", "{hdel h}", ":1"},
		{"HGETALL h", `["g", "w"]`, "{}", ":2"},
		{"HSCAN h 0", `["0", ["g", "w"]]`, "{}", ":2"},
		{"HRANDFIELD h 5", `["g"]`, "{hexpired h}", ":1"},
		{"HRANDFIELD h 0", `[]`, "{hexpired h}", ":1"},
		{"HTTL h FIELDS 1 f", "[:-2]", "{}", ":2"},
		{"HPERSIST h FIELDS 1 f", "[:-2]", "{}", ":2"},
		{"HEXPIRE h 100 FIELDS 1 f", "[:1]", "{hexpire h}", ":2"},
		{"HEXPIRE h 100 NX FIELDS 1 f", "[:0]", "{}", ":2"},
		{"HEXPIRE h 0 FIELDS 1 f", "[:2]", "{hdel h}", ":1"},
		{"HGETEX h EX 10 FIELDS 2 f g", `[(nil), "w"]`, "{hexpired h, hexpire h}", ":1"},
		{"HGETDEL h FIELDS 2 f g", `[(nil), "w"]`, "{hexpired h, hdel h, del h}", ":0"},
		{"HSETEX h FNX FIELDS 1 f 1", ":1", "{hset h}", ":2"},
		{"HSETEX h FXX FIELDS 1 f 1", ":0", "{}", ":1"},
		{"HSETEX h KEEPTTL FIELDS 1 f 1", ":1", "{hset h}", ":2"},
		{"HSETEX h EX 10 FIELDS 1 f 1", ":1", "{hset h, hexpire h}", ":2"},
		{"HSETEX h PXAT 1 FIELDS 1 f 1", ":1", "{hset h, hdel h}", ":1"},
	} {
		for _, large := range []bool{false, true} {
			s := withDeadField("HSET h f 5 g w", large)
			if got := s.line(c.command); got != c.want && !large {
				t.Errorf("%s: got %s, want %s", c.command, got, c.want)
			}
			if got := events(s.take("events")); got != c.events {
				t.Errorf("%s: events %s, want %s", c.command, got, c.events)
			}
			if got := s.line("HLEN h"); got != c.left {
				t.Errorf("%s: %s fields left, want %s", c.command, got, c.left)
			}
		}
	}
}

// withDeadField returns a stage with a hash h whose field f is dead but not reaped, and a subscriber "events".
func withDeadField(create string, large bool) *stage {
	s := newStage(Options{})
	if large {
		s.limits.HashMaxListpackEntries = 0
	}
	s.line("DEBUG SET-ACTIVE-EXPIRE 0")
	s.line(create)
	s.line("HPEXPIRE h 1 FIELDS 1 f")
	s.sleep(2)
	s.settings.notify = notifyKeyevent | notifyAll
	s.do("events", "PSUBSCRIBE", "__keyevent@0__:*")
	s.take("events")
	return s
}

func TestTheLastDeadFieldTakesTheKeyWithIt(t *testing.T) {
	for _, c := range []struct{ command, want, events string }{
		{"HGET h f", "(nil)", "{hexpired h, del h}"},
		{"HMGET h f g", "[(nil), (nil)]", "{}"}, // Redis publishes nothing here
		{"HINCRBY h f 1", ":1", "{hexpired h, del h, hincrby h}"},
		{"HSETNX h f 1", ":1", "{hexpired h, del h, hset h}"},
		{"HRANDFIELD h", "(nil)", "{hexpired h, del h}"},
		{"HGETEX h EX 10 FIELDS 2 f g", "[(nil), (nil)]", "{hexpired h, del h}"},
		{"HGETDEL h FIELDS 1 f", "[(nil)]", "{hexpired h, del h}"},
		{"HSETEX h FXX FIELDS 1 f 1", ":0", "{del h}"},
		{"HDEL h f", ":1", "{hdel h, del h}"},
		{"HEXPIRE h 0 FIELDS 1 f", "[:2]", "{hdel h, del h}"},
	} {
		s := withDeadField("HSET h f 5", false)
		if got := s.line(c.command); got != c.want {
			t.Errorf("%s: got %s, want %s", c.command, got, c.want)
		}
		if got := events(s.take("events")); got != c.events {
			t.Errorf("%s: events %s, want %s", c.command, got, c.events)
		}
	}
}

func TestAFieldIsReadableInItsLastMillisecondAndNotAfter(t *testing.T) {
	for _, entries := range []int{128, 0} {
		s := newStage(Options{})
		s.limits.HashMaxListpackEntries = entries
		s.line("HSET h f v g w")
		s.line("HPEXPIRE h 100 FIELDS 1 f")
		s.sleep(100)
		if got := s.line("HGET h f"); got != `"v"` {
			t.Errorf("at its deadline: %s", got)
		}
		s.sleep(1)
		if got := s.line("HLEN h"); got != ":1" { // reaped, not only hidden
			t.Errorf("a millisecond later: HLEN %s", got)
		}
	}
}

// A Tick reaps a bounded number of fields, and enough Ticks reap all of them, none being idle.
func TestReapingFieldsIsBoundedAndComplete(t *testing.T) {
	s := newStage(Options{})
	const fields = 3*tickWork + 12 // a multiple of 100
	for i := 0; i < fields; i += 100 {
		args := []string{"HSETEX", fmt.Sprint("h", i%300/100), "PX", "50", "FIELDS", "100"}
		for j := range 100 {
			args = append(args, fmt.Sprint("f", i+j), "v")
		}
		s.do("", args...)
	}
	s.line("HSET stays f v")
	s.line("HPEXPIRE stays 60000 FIELDS 1 f")
	s.now += 51_000
	ticks, before := 0, int64(0)
	for ticks = range s.ticks() {
		reaped := s.stats.expiredFields - before
		if before = s.stats.expiredFields; reaped > tickWork {
			t.Errorf("a tick reaped %d fields", reaped)
		}
		if ticks > 20 {
			t.Fatalf("%d ticks, %d fields reaped", ticks, before)
		}
	}
	if before != fields {
		t.Errorf("%d of %d fields reaped", before, fields)
	}
	if got := s.line("DBSIZE"); got != ":1" {
		t.Errorf("%s keys left", got)
	}
	if at, ok := s.NextWake(); !ok || at < s.now+59_000_000-60_000 {
		t.Errorf("woken for nothing: in %d us, %v", at-s.now, ok)
	}
}

func TestDeadlinesOfFieldsAreRecordedAsAbsolute(t *testing.T) {
	var log effects
	s := newStage(Options{})
	s.SetSink(&log)
	now := s.now / 1000
	for _, step := range []struct{ command, want string }{
		{"HSET h f 1 g 2 x 3", "HSET h f 1 g 2 x 3"},
		{"HEXPIRE h 100 NX FIELDS 3 f g none", fmt.Sprintf("HPEXPIREAT h %d NX FIELDS 2 f g", now+100000)},
		{"HEXPIRE h 100 NX FIELDS 1 f", ""},
		{"HGETEX h PX 5 FIELDS 2 x none", fmt.Sprintf("HPEXPIREAT h %d FIELDS 1 x", now+5)},
		{"HINCRBYFLOAT h f 0.5", "HSETEX h KEEPTTL FIELDS 1 f 1.5"},
		{"HPERSIST h FIELDS 2 f none", "HPERSIST h FIELDS 2 f none"},
		{"HINCRBYFLOAT h f 0.5", "HSET h f 2"},
		{"HSETEX h FXX EX 7 FIELDS 1 g 5", fmt.Sprintf("HSETEX h PXAT %d FIELDS 1 g 5", now+7000)},
		{"HSETEX h FNX EX 7 FIELDS 1 g 5", ""},
		{"HSETEX h EXAT 1 FIELDS 2 a 5 g 6", "HDEL h a g"},
		{"HGETDEL h FIELDS 2 x none", "HDEL h x"},
		{"HEXPIRE h 0 FIELDS 1 f", "HDEL h f"},
		{"HSETEX h PX 10 FIELDS 2 a 1 b 2", fmt.Sprintf("HSETEX h PXAT %d FIELDS 2 a 1 b 2", now+10)},
		{"@sleep 11", "HDEL h b; HDEL h a"},
	} {
		log = nil
		s.line(step.command)
		if got := strings.Join(log, "; "); got != step.want {
			t.Errorf("%s is recorded as %q, want %q", step.command, got, step.want)
		}
	}
}
