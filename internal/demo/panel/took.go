package panel

import (
	"maps"
	"math/bits"
	"slices"
	"time"
)

// Took counts how long things took: how many there were for each duration. Durations are rounded to five bits, which is within 3 %, so
// that there are few different ones. Two Tooks can be added.
type Took map[time.Duration]int

// Add counts one more thing that took d.
func (t Took) Add(d time.Duration) { t[rounded(max(0, d))]++ }

func rounded(d time.Duration) time.Duration {
	off := max(0, bits.Len64(uint64(d))-5)
	return d>>off<<off + 1<<off/2
}

// AddAll adds the counts of o.
func (t Took) AddAll(o Took) {
	for d, n := range o {
		t[d] += n
	}
}

// At returns the duration that this share of the things did not exceed: 0.99 for the 99th percentile, 1 for the longest. It is 0 if
// nothing was counted.
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
