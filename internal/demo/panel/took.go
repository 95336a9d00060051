package panel

import (
	"maps"
	"math/bits"
	"slices"
	"time"
)

// Took is how long things took: how many for each duration. Durations are rounded to five bits, which is within 3 %, so
// that there are few of them. Took of different times can be put together.
type Took map[time.Duration]int

// Add counts one more.
func (t Took) Add(d time.Duration) { t[rounded(max(0, d))]++ }

func rounded(d time.Duration) time.Duration {
	off := max(0, bits.Len64(uint64(d))-5)
	return d>>off<<off + 1<<off/2
}

// AddAll counts all that o counts.
func (t Took) AddAll(o Took) {
	for d, n := range o {
		t[d] += n
	}
}

// At returns the duration that a share of them did not exceed: 0.99 for the 99th percentile, 1 for the longest. It is 0 if
// there are none.
func (t Took) At(share float64) time.Duration {
	all, seen := 0, 0
	for _, n := range t {
		all += n
	}
	for _, d := range slices.Sorted(maps.Keys(t)) {
		if seen += t[d]; float64(seen) > share*float64(all) || seen == all {
			return d
		}
	}
	return 0
}
