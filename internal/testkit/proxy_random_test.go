package testkit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
)

// The same seed does the same, and another seed something else.
func TestChanceRepeats(t *testing.T) {
	run := func(seed uint64) string {
		p, rdb, direct := through(t)
		p.Random(seed, proxy.Odds{Delay: 0.1, CutBefore: 0.15, CutAfter: 0.15, Truncate: 0.1, Late: 0.1})
		var saw string
		for range 40 {
			if err := rdb.Incr(t.Context(), "n").Err(); err != nil {
				saw += "x"
			} else {
				saw += "."
			}
		}
		p.Random(seed, proxy.Odds{})
		p.Close() // late requests are dropped, or have arrived
		return fmt.Sprint(saw, direct.Exists(t.Context(), "n").Val())
	}
	one, same, other := run(1), run(1), run(2)
	if one != same {
		t.Errorf("a seed once and again:\n%s\n%s", one, same)
	}
	if one == other {
		t.Errorf("two seeds did the same: %s", one)
	}
}

// Each kind of fault happens about as often as the odds say.
func TestOdds(t *testing.T) {
	p, rdb, _ := through(t)
	p.Random(7, proxy.Odds{CutBefore: 0.5})
	lost := 0
	for range 200 {
		if rdb.Ping(t.Context()).Err() != nil {
			lost++
		}
	}
	if lost < 60 || lost > 140 {
		t.Errorf("%d of 200 were cut, at odds of a half", lost)
	}
}

// A randomly delayed reply comes after the server has executed; and a command may have odds of its own.
func TestOddsOfACommand(t *testing.T) {
	t.Parallel()
	p, rdb, direct := through(t)
	p.Random(7, proxy.Odds{CutBefore: 1, Most: 100 * time.Millisecond, Of: map[string]proxy.Odds{"incr": {DelayReply: 1}}})
	if rdb.Ping(t.Context()).Err() == nil {
		t.Error("a PING was not cut")
	}
	delayed := 0
	for n := range 8 {
		replied := in(func() error { return rdb.Incr(t.Context(), "n").Err() })
		expect.Eventually(t, "it is executed", func() bool { return direct.Get(t.Context(), "n").Val() == fmt.Sprint(n+1) })
		select {
		case err := <-replied:
			expect.OK(t, err)
		default:
			delayed++
			expect.OK(t, <-replied)
		}
	}
	if delayed == 0 {
		t.Error("no reply was delayed")
	}
}
