package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

func TestPopsAnswerEmptyListsInThreeWays(t *testing.T) {
	play(t, Options{}, `
		LPOP l                       (nil)
		LPOP l 2                     (nil array)
		LPOP l 0                     (nil array)
		RPUSH l a b c                :3
		LPOP l 0                     []
		LPOP l -1                    -ERR value is out of range, must be positive
		LPOP l x                     -ERR value is out of range, must be positive
		LPOP l 1 2                   -ERR wrong number of arguments for 'lpop' command
		RPOP l 9223372036854775807   ["c", "b", "a"]
		EXISTS l                     :0
		LMPOP 1 l LEFT               (nil array)
		LMPOP 9223372036854775807 l LEFT        -ERR syntax error
		LMPOP 0 l LEFT               -ERR numkeys should be greater than 0
		LMPOP 1 l LEFT COUNT 0       -ERR count should be greater than 0
		LMPOP 1 l LEFT COUNT 1 COUNT 1          -ERR syntax error
	`)
}

func TestListIndexesAtTheEndsOfTheirRange(t *testing.T) {
	play(t, Options{}, `
		RPUSH l a b c                                         :3
		LRANGE l -9223372036854775808 9223372036854775807     ["a", "b", "c"]
		LRANGE l 2 1                                          []
		LINDEX l 9223372036854775807                          (nil)
		LINDEX l -4                                           (nil)
		LSET l 3 x                                            -ERR index out of range
		LSET l 9223372036854775807 z                          +OK
		LRANGE l 0 -1                                         ["a", "b", "z"]
		LREM l -9223372036854775808 a                         -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
		LPOS l a RANK -9223372036854775808                    -ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807
		LPOS l a RANK 0                                       -ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list
		LTRIM l 1 -9223372036854775808                        +OK
		EXISTS l                                              :0
	`)
}

func TestLPOSSearchesBothWays(t *testing.T) {
	play(t, Options{}, `
		RPUSH l a b c a b c a        :7
		LPOS l a                     :0
		LPOS l a RANK 2              :3
		LPOS l a RANK -1             :6
		LPOS l a RANK -4             (nil)
		LPOS l a COUNT 0             [:0, :3, :6]
		LPOS l a COUNT 2 RANK -1     [:6, :3]
		LPOS l c MAXLEN 2            (nil)
		LPOS l c MAXLEN 3            :2
		LPOS l c COUNT 0 MAXLEN 3 RANK -1       [:5]
		LPOS none a                  (nil)
		LPOS none a COUNT 1          []
		LPOS l a COUNT -1            -ERR COUNT can't be negative
		LPOS l a MAXLEN x            -ERR MAXLEN can't be negative
	`)
}

func TestListEventsArePushThenPopThenDel(t *testing.T) {
	s := newStage(Options{})
	s.settings.notify = notifyKeyevent | notifyAll
	s.do("events", "PSUBSCRIBE", "__keyevent@0__:*")
	s.take("events")
	for _, line := range []string{"RPUSH a 1", "LMOVE a b LEFT RIGHT", "RPOPLPUSH b b", "LSET b 0 2", "LINSERT b AFTER 2 3", "LTRIM b 0 0", "LREM b 0 2"} {
		s.line(line)
	}
	got := events(s.take("events"))
	const want = "{rpush a, rpush b, lpop a, del a, lpush b, rpop b, lset b, linsert b, ltrim b, lrem b, del b}"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestBlockedSessionsAreServedInTheOrderTheyCame(t *testing.T) {
	play(t, Options{}, `
		@c1 BLPOP a b 0
		@c2 BRPOP a 0
		@c3 BLMOVE a d LEFT RIGHT 0
		RPUSH a 1 2 3 4              :4
		@out 1                       ["a", "1"]
		@out 2                       ["a", "4"]
		@out 3                       "2"
		LRANGE a 0 -1                ["3"]
		LRANGE d 0 -1                ["2"]
	`)
}

func TestATransactionEndsBeforeItServesTheBlocked(t *testing.T) {
	play(t, Options{}, `
		@c1 BLPOP b a 0
		MULTI                        +OK
		RPUSH a 1                    +QUEUED
		DEL a                        +QUEUED
		EXEC                         [:1, :1]
		@out 1
		MULTI                        +OK
		RPUSH a 1                    +QUEUED
		RPUSH b 2                    +QUEUED
		LPUSH b 3                    +QUEUED
		EXEC                         [:1, :1, :2]
		@out 1                       ["b", "3"]
		LRANGE b 0 -1                ["2"]
	`)
}

func TestNothingBlocksInATransaction(t *testing.T) {
	play(t, Options{}, `
		MULTI                        +OK
		BLPOP k 0                    +QUEUED
		BLMOVE k x LEFT LEFT 0       +QUEUED
		BRPOPLPUSH k x 0             +QUEUED
		BLMPOP 0 1 k LEFT            +QUEUED
		EXEC                         [(nil array), (nil), (nil), (nil array)]
	`)
}

func TestTheBlockedMeetOtherTypes(t *testing.T) {
	play(t, Options{}, `
		@c1 BLPOP a 0
		SET a x                      +OK
		@out 1
		DEL a                        :1
		RPUSH a 1                    :1
		@out 1                       ["a", "1"]
		@c1 BLMOVE s d LEFT LEFT 0
		SET d x                      +OK
		RPUSH s 1                    :1
		@out 1                       -WRONGTYPE Operation against a key holding the wrong kind of value
		LRANGE s 0 -1                ["1"]
		@c1 BLPOP x y 0
		SET x str                    +OK
		RPUSH y 1                    :1
		@out 1                       -WRONGTYPE Operation against a key holding the wrong kind of value
		LRANGE y 0 -1                ["1"]
	`)
}

func TestAServedCommandServesTheNext(t *testing.T) {
	play(t, Options{}, `
		@c1 BLMOVE a b LEFT LEFT 0
		@c2 BLMOVE b c LEFT LEFT 0
		@c3 BLPOP c 0
		RPUSH a v                    :1
		@out 1                       "v"
		@out 2                       "v"
		@out 3                       ["c", "v"]
		EXISTS a b c                 :0
		@c1 BLPOP a a 0
		RPUSH b 1                    :1
		RENAME b a                   +OK
		@out 1                       ["a", "1"]
		@c1 BRPOPLPUSH q q 0
		RPUSH q 1 2                  :2
		@out 1                       "2"
		LRANGE q 0 -1                ["2", "1"]
	`)
}

func TestBlockingTimeouts(t *testing.T) {
	play(t, Options{}, `
		BLPOP a x                    -ERR timeout is not a float or out of range
		BLPOP a -1                   -ERR timeout is negative
		BLPOP a 1e30                 -ERR timeout is out of range
		BLMOVE a b LEFT LEFT 1e400   -ERR timeout is out of range
		BLPOP a -1e400               -ERR timeout is negative
		BLPOP a 1e5000               -ERR timeout is not a float or out of range
		@c1 BLPOP a 1e-400
		@sleep 2
		@out 1                       (nil array)
		BLMPOP x 1 a MIDDLE          -ERR syntax error
		BLMPOP x 1 a LEFT            -ERR timeout is not a float or out of range
		@c1 BLPOP a 0.05
		@c2 BLMOVE a b LEFT LEFT 0.0501
		@sleep 50
		@out 1
		@sleep 1
		@out 1                       (nil array)
		@out 2
		@sleep 1
		@out 2                       (nil array)
		@c3 HELLO 3                  {"server", "redis", "version", "8.0.2", "proto", :3, "id", :4, "mode", "standalone", "role", "master", "modules", []}
		@c3 BRPOPLPUSH a b 1
		@sleep 1001
		@out 3                       null
	`)
}

func TestListsAreRecordedByTheirEffects(t *testing.T) {
	var log effects
	s := newStage(Options{})
	s.SetSink(&log)
	for _, step := range []struct{ command, want string }{
		{"RPUSH l a b c d e f", "RPUSH l a b c d e f"},
		{"LMPOP 2 x l LEFT COUNT 2", "LPOP l 2"},
		{"BLPOP x l 0", "LPOP l"},
		{"BLMOVE l m LEFT RIGHT 0", "LMOVE l m LEFT RIGHT"},
		{"BRPOPLPUSH l m 0", "RPOPLPUSH l m"},
		{"BLMPOP 0 1 m RIGHT COUNT 10", "RPOP m 2"},
		{"LREM l 0 none", ""},
		{"LTRIM l 0 -1", ""},
	} {
		log = nil
		s.line(step.command)
		if got := strings.Join(log, "; "); got != step.want {
			t.Errorf("%s is recorded as %q, want %q", step.command, got, step.want)
		}
	}
}

// effects records the effects it receives.
type effects []string

func (*effects) End() {}

func (l *effects) Effect(_ int, args [][]byte) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = string(a)
	}
	*l = append(*l, strings.Join(words, " "))
}

// runner returns a way to run commands on one engine without counting their preparation: it turns a line into a function that runs it.
func runner() func(line string) func() {
	e := New(Options{})
	s := e.NewSession(SessionOptions{})
	return func(line string) func() {
		var args [][]byte
		for _, word := range words(line) {
			args = append(args, []byte(word))
		}
		return func() {
			e.Do(1_800_000_000_000_000, s, args)
			s.Out.Rewind(resp.Mark{})
		}
	}
}

func TestCommonListCommandsDoNotAllocate(t *testing.T) {
	run := runner()
	for i := range 20000 {
		run(fmt.Sprintf("RPUSH l element:%d", i))()
	}
	for line, most := range map[string]float64{"LINDEX l 5000": 0, "LPOP l": 0, "LLEN l": 0, "RPUSH l x": 0.1, "LPUSH l x": 0.1, "LMOVE l l LEFT RIGHT": 1.1} {
		if got := testing.AllocsPerRun(1000, run(line)); got > most {
			t.Errorf("%s: %g allocations", line, got)
		}
	}
}
