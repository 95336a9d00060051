package main

import (
	"math/rand/v2"
	"time"

	"github.com/mayflycache/mayfly/internal/expiry"
)

// The burst, in virtual time: keys that are all there at 0, with lives uniform in 1 to 10 s, and new ones of the same
// kind written for ten seconds. Nobody reads.
const (
	keys        = 1_000_000
	writes      = 20_000 // a second
	writeFor    = 10_000 // ms
	shortest    = 1_000  // ms
	longest     = 10_000 // ms
	lastWritten = writeFor + longest
	between     = 100 // ms between two looks
)

// costly is what it takes to test a key or to delete it, and a quarter of the time is for that. BenchmarkRedisCycle in
// internal/expiry found 1.1 to 1.6 us for a dead key in the cycle of Redis 8.0.2, and 1.25 us for a living one.
const costly = 1500 * time.Nanosecond

// look is what is held at a moment.
type look struct {
	ms, held, dead int
}

// bound is how many dead keys the documentation of EXPIRE allows here.
func (l look) bound() int { return max(l.held/4, writes/4) }

// outcome is one way of reaping, from the burst to the end.
type outcome struct {
	looks   []look // every 100 ms, before what is due then is reaped
	figures expiry.Figures
	emptyAt int // ms
	lastEnd int // ms: the last deadline
}

// worst returns the look with the most dead.
func (o outcome) worst() (w look) {
	for _, l := range o.looks {
		if l.dead > w.dead {
			w = l
		}
	}
	return w
}

// simulate lives through the burst, calling reap every ms.
func simulate(reap func(x *expiry.Index, now int64)) outcome {
	const start = 1 // deadlines are above 0
	var (
		x    expiry.Index
		o    outcome
		r    = rand.New(rand.NewPCG(1, 2))
		ends [lastWritten + 1]int // deadlines in this ms
		id   uint32
	)
	write := func(ms, n int) {
		for range n {
			end := ms + shortest + r.IntN(longest-shortest)
			x.Set(id, int64(start+end))
			id++
			ends[end]++
			o.lastEnd = max(o.lastEnd, end)
		}
	}
	write(0, keys)
	over := 0 // deadlines that have passed
	for ms := 0; x.Len() > 0; ms++ {
		if ms > 0 && ms <= len(ends) {
			over += ends[ms-1]
		}
		if ms%between == 0 {
			o.looks = append(o.looks, look{ms, x.Len(), over - x.Figures(0).Reaped})
		}
		if ms < writeFor {
			write(ms, writes/1000)
		}
		reap(&x, int64(start+ms))
		o.emptyAt = ms
	}
	o.figures = x.Figures(0)
	return o
}

// byIndex wakes when the Index says so and takes no more than a quarter of the time. Moving 16 entries, the most that
// Reap does for each it may reap, takes about as long as deleting one key.
func byIndex() func(*expiry.Index, int64) {
	const most = int(time.Millisecond / 4 / costly)
	return func(x *expiry.Index, now int64) {
		if at, ok := x.Next(); ok && at <= now {
			x.Reap(now, most, func(uint32) {})
		}
	}
}

// byCycle runs c as often as it wants.
func byCycle(c expiry.Cycle) func(*expiry.Index, int64) {
	r := rand.New(rand.NewPCG(3, 4))
	return func(x *expiry.Index, now int64) {
		if now%c.Every().Milliseconds() == 0 {
			steps := -1
			clock := func() time.Duration { // read before each step, which tests 20
				steps++
				return time.Duration(steps) * 20 * costly
			}
			c.Run(x, now, r.Uint64, clock, func(uint32) {})
		}
	}
}
