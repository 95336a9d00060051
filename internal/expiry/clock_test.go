package expiry

import (
	"testing"
	"testing/synctest"
	"time"
)

// The owner of a timer wakes at Next and reaps. For a deadline far away, or after the nearest one was removed, it may wake in vain, but not
// often.
func TestATimerWakesAFewTimesForAFarDeadline(t *testing.T) {
	const start = 1_700_000_000_123
	for _, far := range []int64{1, 63, 64, 5_000, 3_600_000, 7 * 24 * 3_600_000, 10 * 365 * 24 * 3_600_000} {
		for _, taken := range []int64{0, 1, far / 2, far - 1} {
			var x Index
			x.Set(1, start+far)
			if taken > 0 { // a nearer one, removed again: it leaves a wrong bound behind
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

// An owner as intended: one timer, armed for Next, and parked when there is none.
func TestAWeekInABubbleTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x Index
		end := time.Now().Add(7 * 24 * time.Hour)
		x.Set(0, end.UnixMilli())
		for id := range uint32(100) { // nearer ones, removed again
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
	// A call reaps its 100 or moves 16 for each of them; each living entry is moved at most once per level.
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

// One call is bounded, whatever it finds: here everything is in one wide bucket, and nearly all of it is alive.
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
			x.Set(n, c.focus) // moves the focus there
			x.Set(0, start+wide+1)
			for id := range uint32(n - 1) {
				x.Set(id+1, start+wide+100+int64(id))
			}
			x.Set(n+1, c.focus+1)
			moved := func() (count int) { // to buckets they can be reaped from
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
		most              float64 // average number of moves
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
			if now++; set < n { // a new one each ms
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

// bucketOf finds the bucket of id by going to the head of its list.
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
	for id := range uint32(n) { // entries come and go around the old time
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
