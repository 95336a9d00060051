package expiry

import "testing"

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
			x.Set(id, 77) // removed and set again
		}
	}
	for id := range uint32(4 * n) {
		if id%8 == 4 {
			x.Set(id, 78) // removed, taken off the list, and set again
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

// An entry taken off the list must not pass its chance on to the one that takes its place.
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
