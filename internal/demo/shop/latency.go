package shop

import (
	"math"
	"sync/atomic"
	"time"
)

// latency counts how long pages took, in steps of a fifth: the error of a percentile is within a tenth.
type latency struct{ counts [steps]atomic.Int64 }

const (
	steps    = 96
	smallest = 2 * time.Microsecond
	grows    = 1.2
)

func (l *latency) add(d time.Duration) {
	i := 0
	if d > smallest {
		i = min(steps-1, int(math.Ceil(math.Log(float64(d)/float64(smallest))/math.Log(grows))))
	}
	l.counts[i].Add(1)
}

// histogram is what a latency had counted at some moment.
type histogram [steps]int64

func (l *latency) now() (h histogram) {
	for i := range h {
		h[i] = l.counts[i].Load()
	}
	return h
}

// since returns what was counted after an earlier moment.
func (h histogram) since(earlier histogram) histogram {
	for i := range h {
		h[i] -= earlier[i]
	}
	return h
}

// at returns the percentile of a share, 0 if nothing was counted.
func (h histogram) at(share float64) time.Duration {
	var all, seen int64
	for _, n := range h {
		all += n
	}
	for i, n := range h {
		if seen += n; all > 0 && float64(seen) >= share*float64(all) {
			return time.Duration(float64(smallest) * math.Pow(grows, float64(i)))
		}
	}
	return 0
}
