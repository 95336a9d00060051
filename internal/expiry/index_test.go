package expiry

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
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
				after.OverdueSum, after.OverdueMean(), after.OverdueMax)
		}, "3 2 0 1 0 2 30ms 15ms 20ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.do(new(Index))
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// The owner of a timer wakes at Next and reaps. For a deadline far away, or after the nearest one was taken back, it may
// wake in vain, but not often.
func TestATimerWakesAFewTimesForAFarDeadline(t *testing.T) {
	const start = 1_700_000_000_123
	for _, far := range []int64{1, 63, 64, 5_000, 3_600_000, 7 * 24 * 3_600_000, 10 * 365 * 24 * 3_600_000} {
		for _, taken := range []int64{0, 1, far / 2, far - 1} {
			var x Index
			x.Set(1, start+far)
			if taken > 0 { // a nearer one, taken back: the bound it leaves behind is wrong
				x.Set(2, start+taken)
				x.Remove(2)
			}
			wakes, now := 0, int64(start)
			for x.Len() > 0 {
				at, _ := x.Next()
				now = max(now, at)
				x.Reap(now, 10, func(uint32) {})
				wakes++
			}
			if now != start+far+1 {
				t.Errorf("deadline in %d ms: reaped after %d", far, now-start)
			}
			if wakes > 9 || taken == 0 && wakes != 1 {
				t.Errorf("deadline in %d ms, one in %d taken back: %d wakes", far, taken, wakes)
			}
		}
	}
}

// An owner as it is meant: one timer, armed for Next, parked when there is none.
func TestAWeekInABubbleTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x Index
		end := time.Now().Add(7 * 24 * time.Hour)
		x.Set(0, end.UnixMilli())
		for id := range uint32(100) { // nearer ones that are taken back
			x.Set(1+id, end.Add(-time.Duration(id)*time.Hour).UnixMilli())
			x.Remove(1 + id)
		}
		wakes := 0
		for {
			at, ok := x.Next()
			if !ok {
				break
			}
			time.Sleep(time.Until(time.UnixMilli(at)))
			x.Reap(time.Now().UnixMilli(), 10, func(uint32) {})
			wakes++
		}
		if late := time.Since(end); late != time.Millisecond || wakes > 10 {
			t.Errorf("reaped %v after the deadline, after %d wakes", late, wakes)
		}
	})
}

func TestTheClockJumpsAhead(t *testing.T) {
	const start, n = 1_700_000_000_000, 200_000
	r := chance(t)
	var x Index
	for id := range uint32(n) {
		x.Set(id, start+1+r.Int64N(4_000_000))
	}
	now := int64(start + 2_000_000)
	want := x.Figures(now).Dead
	reaped, calls := 0, 0
	for {
		if at, _ := x.Next(); at > now {
			break
		}
		k := x.Reap(now, 100, func(id uint32) { reaped++ })
		if calls++; k > 100 {
			t.Fatalf("a call for 100 reaped %d", k)
		}
	}
	// A call reaps its 100 or moves 16 for each of them; each of the living is moved at most once per level.
	if limit := want/100 + (n-want)*len(x.levels)/(effort*100) + 2; calls > limit {
		t.Errorf("%d calls, want at most %d", calls, limit)
	}
	if reaped != want || x.Figures(now).Dead != 0 {
		t.Errorf("reaped %d, want %d; %d dead left", reaped, want, x.Figures(now).Dead)
	}
	if got := drain(t, &x, start+4_000_001, 100); len(got)+reaped != n {
		t.Errorf("reaped %d in all, want %d", len(got)+reaped, n)
	}
}

// One call is bounded, whatever it meets: here everything in one wide bucket, nearly all of it alive.
func TestACallMovesNoMoreThanItMay(t *testing.T) {
	const start, n, wide = 1 << 40, 10_000, 1 << 30
	for _, c := range []struct {
		name       string
		focus, now int64
	}{
		{"ahead", start, start + wide + 2},
		{"back", start + 2*wide, start + wide + 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x Index
			x.Set(n, c.focus) // brings the focus there
			x.Set(0, start+wide+1)
			for id := range uint32(n - 1) {
				x.Set(id+1, start+wide+100+int64(id))
			}
			x.Set(n+1, c.focus+1)
			moved := func() (count int) { // to where they can be reaped from
				for id := range uint32(n) {
					if b := x.bucketOf(id); b/slots < height(start, start+wide) {
						count++
					}
				}
				return count
			}
			before := moved()
			x.Reap(c.now, 1, func(uint32) {})
			x.Reap(c.now, 1, func(uint32) {})
			x.Reap(c.now, 1, func(uint32) {})
			if after := moved(); before != 0 || after == 0 || after > 3*(effort+1) {
				t.Errorf("%d of %d were near before, %d after three calls for one", before, n, after)
			}
		})
	}
}

func TestAnEntryMovesAFewTimesInItsLife(t *testing.T) {
	for _, c := range []struct {
		shortest, longest int64
		most              float64 // moves, in the mean
	}{
		{1_000, 10_000, 2.6},
		{3_240_000, 3_960_000, 3.8},
	} {
		r := chance(t)
		const n = 1000
		var x Index
		now, moves := int64(1_700_000_000_000), 0
		places := map[uint32]uint32{}
		for set, reaped := uint32(0), 0; reaped < n; {
			if now++; set < n { // one born each ms
				x.Set(set, now+c.shortest+r.Int64N(c.longest-c.shortest))
				places[set] = x.bucketOf(set)
				set++
			} else {
				now, _ = x.Next()
			}
			if at, _ := x.Next(); at > now {
				continue
			}
			reaped += x.Reap(now, n, func(id uint32) { delete(places, id) })
			for id, b := range places {
				if p := x.bucketOf(id); p != b {
					places[id] = p
					moves++
				}
			}
		}
		if mean := float64(moves) / n; mean > c.most {
			t.Errorf("lives of %d to %d ms: %.2f moves each", c.shortest, c.longest, mean)
		}
	}
}

// bucketOf finds the bucket in which id stands, from the head of its list.
func (x *Index) bucketOf(id uint32) uint32 {
	n := x.node(id)
	for n.prev&marked == 0 {
		n = x.node(n.prev - 1)
	}
	return n.prev &^ marked
}

func TestTheClockFallsBack(t *testing.T) {
	const start, n = 1_700_000_000_000, 10_000
	r := chance(t)
	var x Index
	alive := map[uint32]int64{}
	for id := range uint32(n) {
		alive[id] = start + r.Int64N(7_200_000)
		x.Set(id, alive[id])
	}
	reap := func(now int64) {
		t.Helper()
		for _, id := range drain(t, &x, now, 50) {
			if d, ok := alive[id]; !ok || !Dead(d, now) {
				t.Fatalf("reaped %d with deadline %d at %d (known: %v)", id, d, now, ok)
			}
			delete(alive, id)
		}
		for id, d := range alive {
			if Dead(d, now) || x.Deadline(id) != d {
				t.Fatalf("%d, deadline %d, indexed %d, still there at %d", id, d, x.Deadline(id), now)
			}
		}
	}
	reap(start + 3_600_000)
	back := int64(start + 600_000) // 50 minutes back; what was reaped stays so
	reap(back)
	for id := range uint32(n) { // life goes on around the old time
		if _, ok := alive[id]; !ok && id%2 == 0 {
			alive[id] = back + r.Int64N(60_000)
			x.Set(id, alive[id])
		}
	}
	for now := back; now < start+7_300_000; now += 1 + r.Int64N(20_000) {
		reap(now)
	}
	if len(alive) != 0 || x.Len() != 0 {
		t.Errorf("%d lost, %d held", len(alive), x.Len())
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

func TestSampleDrawsEachEntryAlike(t *testing.T) {
	const n, draws = 1000, 200_000
	r := chance(t)
	var x Index
	if _, ok := x.Sample(1); ok {
		t.Error("an empty index gave a sample")
	}
	for id := range uint32(4 * n) {
		x.Set(id, 1+r.Int64N(1<<40))
	}
	x.Sample(r.Uint64()) // from here on the list is kept
	for id := range uint32(4 * n) {
		if x.Remove(id); id%8 == 0 {
			x.Set(id, 77) // gone and back
		}
	}
	for id := range uint32(4 * n) {
		if id%8 == 4 {
			x.Set(id, 78) // gone, struck off, and back
		}
		x.Sample(r.Uint64())
	}
	counts := map[uint32]int{}
	for range draws {
		id, ok := x.Sample(r.Uint64())
		if !ok || x.Deadline(id) == None {
			t.Fatalf("drew %d, %v", id, ok)
		}
		counts[id]++
	}
	// Chi-squared with 999 degrees of freedom: mean 999, deviation 45.
	chi := 0.0
	for id := uint32(0); id < 4*n; id += 4 {
		d := float64(counts[id]) - draws/n
		chi += d * d / (draws / n)
	}
	if chi > 999+6*45 || chi < 999-6*45 {
		t.Errorf("chi-squared %.0f over %d ids, want 999 +- 270", chi, len(counts))
	}
}

// What is struck off must not hand its chance to the one that takes its place in the list.
func TestSampleIsEvenAmongTheGone(t *testing.T) {
	r := chance(t)
	const trials = 20_000
	last := 0
	for range trials {
		var x Index
		for id := range uint32(8) {
			x.Set(id, 1)
		}
		x.Sample(0)
		for id := range uint32(7) {
			if id != 2 {
				x.Remove(id)
			}
		}
		if id, _ := x.Sample(r.Uint64()); id == 7 {
			last++
		}
	}
	if last < trials*47/100 || last > trials*53/100 { // six deviations are 2 %
		t.Errorf("one of two was drawn %d times of %d", last, trials)
	}
}
