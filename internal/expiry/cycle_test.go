package expiry

import (
	"fmt"
	"math/bits"
	"testing"
	"time"
)

const cycleNow = 1_700_000_000_000

// mortals returns an index of n entries, the first dead of which are over at cycleNow.
func mortals(n, dead uint32) *Index {
	x := new(Index)
	for id := range n {
		if id < dead {
			x.Set(id, cycleNow-1)
		} else {
			x.Set(id, cycleNow)
		}
	}
	return x
}

// drawing returns draws that pick these ids, in this order, from an index of n entries without stale ones.
func drawing(n uint32, ids ...uint32) func() uint64 {
	return func() uint64 {
		id := ids[0]
		ids = ids[1:]
		q, _ := bits.Div64(uint64(id), 1<<32, uint64(n)) // a little above id/n of 1<<64
		return q
	}
}

// from returns n numbers from first on.
func from(first, n uint32) (ids []uint32) {
	for i := range n {
		ids = append(ids, first+i)
	}
	return ids
}

func still() time.Duration { return 0 }

func TestCycleStepByStep(t *testing.T) {
	// sample draws d dead and a living entries, each only once, of 300 entries whose first 100 are dead.
	const held, over = 300, 100
	var deads, alives uint32
	sample := func(d, a uint32) []uint32 {
		ids := append(from(deads, d), from(over+alives, a)...)
		deads, alives = deads+d, alives+a
		return ids
	}
	for _, c := range []struct {
		name    string
		cycle   Cycle
		samples [][2]uint32 // dead and living in each
		steps   int         // steps taken; another one would have nothing to draw and panic
	}{
		{"a run that meets no dead is one step", Cycle{}, [][2]uint32{{0, 20}}, 1},
		{"a quarter dead is not more than a quarter", Cycle{}, [][2]uint32{{5, 15}}, 1},
		{"more than a quarter dead starts again", Cycle{}, [][2]uint32{{6, 14}, {5, 15}}, 2},
		{"it goes on as long as that lasts", Cycle{}, [][2]uint32{{20, 0}, {6, 14}, {13, 7}, {1, 19}}, 4},
		{"the modern cycle goes on above a tenth", Cycle{Repeat: 0.10}, [][2]uint32{{3, 17}, {5, 15}, {2, 18}}, 3},
		{"another sample size has its own quarter", Cycle{Sample: 8}, [][2]uint32{{3, 5}, {2, 6}}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			deads, alives = 0, 0
			var ids []uint32
			want := 0
			for _, s := range c.samples {
				ids = append(ids, sample(s[0], s[1])...)
				want += int(s[0])
			}
			x := mortals(held, over)
			var reaped []uint32
			reads := 0
			clock := func() time.Duration { reads++; return 0 }
			removed := c.cycle.Run(x, cycleNow, drawing(held, ids...), clock, func(id uint32) { reaped = append(reaped, id) })
			if removed != want || len(reaped) != want || x.Len() != held-want || reads != c.steps {
				t.Errorf("removed %d, told %v, %d steps; want %d in %d steps", removed, reaped, reads, want, c.steps)
			}
			for _, id := range reaped {
				if id >= over {
					t.Errorf("%d was alive", id)
				}
			}
			if f := x.Figures(cycleNow); f.Reaped != want || f.Dead != over-want || f.OverdueSum != time.Duration(want)*time.Millisecond {
				t.Errorf("figures %+v", f)
			}
		})
	}
}

func TestCycle(t *testing.T) {
	random := func(t *testing.T) func() uint64 { return chance(t).Uint64 }
	for _, c := range []struct {
		name string
		do   func(t *testing.T) any
		want any
	}{
		{"the documented cycle runs ten times a second", func(t *testing.T) any { return Cycle{}.Every() }, 100 * time.Millisecond},
		{"and another as often as it is told", func(t *testing.T) any { return Cycle{Hz: 500}.Every() }, 2 * time.Millisecond},
		{"with fewer entries than a sample it tests no more than there are", func(t *testing.T) any {
			return fmt.Sprint(Cycle{}.Step(mortals(7, 0), cycleNow, random(t), nil))
		}, "7 0"},
		{"with none it tests none and ends", func(t *testing.T) any {
			return Cycle{}.Run(new(Index), cycleNow, random(t), still, nil)
		}, 0},
		{"a few dead ones all go in one run", func(t *testing.T) any {
			x := mortals(15, 15)
			Cycle{}.Run(x, cycleNow, random(t), still, func(uint32) {})
			return x.Len()
		}, 0},
		{"when all are dead it ends with none", func(t *testing.T) any {
			x := mortals(5000, 5000)
			Cycle{}.Run(x, cycleNow, random(t), still, func(uint32) {})
			return x.Len()
		}, 0},
		{"a run ends when a quarter of its period is over", func(t *testing.T) any {
			// All dead, each step a millisecond: 25 steps of 20.
			at := time.Hour
			clock := func() time.Duration { at += time.Millisecond; return at }
			return Cycle{}.Run(mortals(5000, 5000), cycleNow, random(t), clock, func(uint32) {})
		}, 500},
		{"or when its own bound is", func(t *testing.T) any {
			at := time.Duration(0)
			clock := func() time.Duration { at += time.Millisecond; return at }
			return Cycle{Bound: 3 * time.Millisecond}.Run(mortals(5000, 5000), cycleNow, random(t), clock, func(uint32) {})
		}, 60},
		{"left to end by itself it leaves about a quarter dead", func(t *testing.T) any {
			// It stops at the first sample of 20 with at most 5 dead. Starting from half dead, that comes early or late at random, but
			// neither above a half nor below a twentieth.
			x := mortals(100_000, 50_000)
			Cycle{}.Run(x, cycleNow, random(t), still, func(uint32) {})
			f := x.Figures(cycleNow)
			share := float64(f.Dead) / float64(f.Held)
			return share > 0.05 && share <= 0.5
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.do(t); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
