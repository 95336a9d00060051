package expiry

import (
	"cmp"
	"time"
)

// Cycle is the active expiry that the documentation of EXPIRE describes. Ten times a second it
//
//  1. tests 20 random entries among those with a deadline,
//  2. removes all dead ones,
//  3. and if more than 25 % of the 20 were dead, starts again at 1,
//
// on the assumption that the sample represents the rest, so that at most a quarter of the entries are dead. A run is limited in time, and a
// burst of deadlines reaches that limit before the assumption holds: docs/decisions/0003 shows how much stays dead. The Index itself needs no
// cycle; Cycle is for callers who want Redis's timing. Without Reap, Next is not updated: after the earliest entry is gone it may stay in the
// past, and the cycle then runs for nothing, as Redis's does.
//
// A zero field has the documented value. Redis since 6.0 repeats while more than 10 % were dead (Repeat: 0.10), walks its table where the
// documentation draws at random, and adds short runs in between when one was cut off.
type Cycle struct {
	Hz     int           // runs a second; 10
	Sample int           // entries tested in a step; 20
	Repeat float64       // another step if more than this share of the last one was dead; 0.25
	Bound  time.Duration // no step begins after this long; a quarter of the time between two runs
}

// Every returns the time between two runs. The owner calls Run that often.
func (c Cycle) Every() time.Duration {
	return time.Second / time.Duration(cmp.Or(c.Hz, 10))
}

// Step tests one sample against now and removes the dead entries from x, calling reap for each after its removal. draw returns uniform 64-bit
// numbers. If there are fewer entries than a sample, it draws as many times as there are entries.
func (c Cycle) Step(x *Index, now int64, draw func() uint64, reap func(id uint32)) (tested, dead int) {
	for sample := min(cmp.Or(c.Sample, 20), x.Len()); tested < sample; tested++ {
		id, ok := x.Sample(draw())
		if !ok {
			break
		}
		if deadline := x.Deadline(id); Dead(deadline, now) {
			x.Remove(id)
			x.end(deadline, now)
			dead++
			reap(id)
		}
	}
	return tested, dead
}

// Run is one run: it takes steps until one finds too few dead entries or the time is up, and returns how many entries it removed. clock
// returns a time that only grows, such as time.Since(start); it is read before each step.
func (c Cycle) Run(x *Index, now int64, draw func() uint64, clock func() time.Duration, reap func(id uint32)) int {
	bound, repeat := cmp.Or(c.Bound, c.Every()/4), cmp.Or(c.Repeat, 0.25)
	removed := 0
	for start := clock(); ; {
		tested, dead := c.Step(x, now, draw, reap)
		removed += dead
		if float64(dead) <= repeat*float64(tested) || clock()-start >= bound {
			return removed
		}
	}
}
