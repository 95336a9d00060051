package proxy_test

import (
	"fmt"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/proxy"
)

// The same seed does the same, and another one something else.
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
		p.Close() // what is late is dropped, or has arrived
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

// Each kind of thing happens about as often as the odds say.
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
