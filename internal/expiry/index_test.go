package expiry

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var seed = flag.Uint64("seed", 0, "seed of the random tests; 0 draws one")

// chance returns a source of random numbers and logs its seed, which a failing test prints.
func chance(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d (repeat with -seed %d)", s, s)
	return rand.New(rand.NewPCG(s, 0))
}

// drain reaps in calls of max until Next is in the future, and returns what was reaped.
func drain(t testing.TB, x *Index, now int64, max int) (ids []uint32) {
	t.Helper()
	for calls := 0; ; calls++ {
		if at, ok := x.Next(); !ok || at > now {
			return ids
		}
		if calls > 1_000_000 {
			t.Fatalf("Next stays at or before now, %d, with %d entries left", now, x.Len())
		}
		x.Reap(now, max, func(id uint32) { ids = append(ids, id) })
	}
}

func TestDead(t *testing.T) {
	for _, c := range []struct {
		name          string
		deadline, now int64
		want          bool
	}{
		{"it is readable before its deadline", 5000, 4999, false},
		{"it is readable during its last millisecond", 5000, 5000, false},
		{"it is gone in the millisecond after", 5000, 5001, true},
		{"what has no deadline never ends", None, math.MaxInt64, false},
		{"the last deadline there is never passes", math.MaxInt64, math.MaxInt64, false},
		{"a deadline before 1970 has passed", -1, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Dead(c.deadline, c.now); got != c.want {
				t.Errorf("Dead(%d, %d) = %v", c.deadline, c.now, got)
			}
		})
	}
}

func TestIndex(t *testing.T) {
	const now = 1_700_000_000_000
	reap := func(x *Index, now int64) []uint32 {
		ids := drain(t, x, now, 10)
		slices.Sort(ids)
		return ids
	}
	for _, c := range []struct {
		name string
		do   func(x *Index) any
		want any
	}{
		{"an entry is not reaped in its last millisecond", func(x *Index) any {
			x.Set(3, now)
			return reap(x, now)
		}, []uint32(nil)},
		{"an entry is reaped in the millisecond after", func(x *Index) any {
			x.Set(3, now)
			return reap(x, now+1)
		}, []uint32{3}},
		{"Next is the first millisecond at which Reap finds something", func(x *Index) any {
			x.Set(3, now+500)
			at, ok := x.Next()
			return fmt.Sprint(at-now, ok, len(reap(x, at-1)), len(reap(x, at)))
		}, "501 true 0 1"},
		{"the timer can be parked when nothing has a deadline", func(x *Index) any {
			x.Set(3, now)
			x.Remove(3)
			_, ok := x.Next()
			return ok
		}, false},
		{"a moved entry ends at its new time only", func(x *Index) any {
			x.Set(3, now+100)
			x.Set(3, now+90_000)
			early := len(reap(x, now+89_999))
			return fmt.Sprint(early, reap(x, now+90_001))
		}, "0 [3]"},
		{"an entry moved forward ends early", func(x *Index) any {
			x.Set(3, now+90_000)
			x.Set(3, now+100)
			at, _ := x.Next()
			return fmt.Sprint(at-now, reap(x, now+101))
		}, "101 [3]"},
		{"setting None removes", func(x *Index) any {
			x.Set(3, now)
			x.Set(3, None)
			return fmt.Sprint(x.Len(), x.Deadline(3), reap(x, now+1))
		}, "0 0 []"},
		{"removing what is absent does nothing", func(x *Index) any {
			x.Remove(7)
			x.Set(3, now)
			x.Remove(2)
			x.Remove(9)
			return x.Len()
		}, 1},
		{"absent entries have no deadline", func(x *Index) any {
			x.Set(3, now)
			return x.Deadline(2) + x.Deadline(4)
		}, None},
		{"an entry set in the past is reaped at once", func(x *Index) any {
			x.Set(1, now+1000)
			reap(x, now)
			x.Set(3, now-5_000_000)
			at, _ := x.Next()
			return fmt.Sprint(at-now, reap(x, now))
		}, "-4999999 [3]"},
		{"deadlines before 1970 come first", func(x *Index) any {
			x.Set(1, now)
			x.Set(2, math.MinInt64)
			x.Set(3, -1)
			x.Set(4, 1<<62)
			at, _ := x.Next()
			return fmt.Sprint(at == math.MinInt64+1, reap(x, 0))
		}, "true [2 3]"},
		{"the end of time is a deadline like others and never passes", func(x *Index) any {
			x.Set(1, math.MaxInt64)
			x.Set(2, now)
			ids := reap(x, now+1)
			at, ok := x.Next()
			return fmt.Sprint(ids, at == math.MaxInt64, ok, x.Reap(math.MaxInt64, 10, nil))
		}, "[2] true true 0"},
		{"a max as large as Len leaves nothing dead", func(x *Index) any {
			r := chance(t)
			for id := range uint32(5000) {
				x.Set(id, now+r.Int64N(1<<r.IntN(40)))
			}
			x.Reap(now+1<<19, x.Len(), func(uint32) {})
			return x.Figures(now + 1<<19).Dead
		}, 0},
		{"max may be any number", func(x *Index) any {
			x.Set(1, now)
			x.Set(2, now+100)
			return x.Reap(now+50, math.MaxInt, func(uint32) {})
		}, 1},
		{"the wheel is finest at its first entry, then at the time of the last reaping", func(x *Index) any {
			x.Set(1, now)
			x.Set(2, now+3_600_000)
			first := x.bucket(now+1) / slots
			reap(x, now+1_800_000)
			return fmt.Sprint(first, height(now+1_800_000, x.focus))
		}, "0 0"},
		{"reaping with no allowance reaps nothing", func(x *Index) any {
			x.Set(1, now)
			return x.Reap(now+1, 0, nil) + x.Reap(now+1, -1, nil)
		}, 0},
		{"figures tell how late the reaped were", func(x *Index) any {
			x.Set(1, now)
			x.Set(2, now+10)
			x.Set(3, now+500)
			before := x.Figures(now + 20)
			reap(x, now+20)
			after := x.Figures(now + 20)
			return fmt.Sprint(before.Held, before.Dead, before.Reaped, " ", after.Held, after.Dead, after.Reaped,
				after.OverdueSum, after.OverdueMax)
		}, "3 2 0 1 0 2 30ms 20ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.do(new(Index))
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var x Index
	now := int64(1_700_000_000_000)
	r := rand.New(rand.NewPCG(1, 1))
	reap := func(uint32) {}
	turn := func() {
		for range 100 {
			x.Set(uint32(r.IntN(1000)), now+r.Int64N(10_000))
			x.Remove(uint32(r.IntN(1000)))
			x.Sample(r.Uint64())
		}
		now += 500
		x.Reap(now, 100, reap)
		x.Next()
		x.Figures(now)
	}
	for range 1000 {
		turn()
	}
	if n := testing.AllocsPerRun(1000, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}
