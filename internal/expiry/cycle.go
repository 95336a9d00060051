package expiry

import "time"

// Cycle is the active expiry that the documentation of EXPIRE describes: Hz times a second, test Sample random
// entries among those with a deadline, delete the dead ones, and start again while more than a share of Repeat of them was dead.
// A field left zero has the documented value. The owner calls Run Hz times a second.
type Cycle struct {
	Hz     int           // runs a second; 10
	Sample int           // entries a step; 20
	Repeat float64       // again while more than this share of a step was dead; 0.25. Redis since 6.0: 0.10
	Bound  time.Duration // a run ends when it has taken this long; a quarter of the time between two runs
}

// Every returns the time between two runs.
func (c Cycle) Every() time.Duration {
	if c.Hz == 0 {
		return time.Second / 10
	}
	return time.Second / time.Duration(c.Hz)
}

// Step tests one sample against now and removes the dead, calling reap for each. It draws with draw, uniform 64-bit numbers.
// When there are fewer entries than a sample has, it tests as many as there are.
func (c Cycle) Step(x *Index, now int64, draw func() uint64, reap func(id uint32)) (tested, dead int) {
	n := c.Sample
	if n == 0 {
		n = 20
	}
	for n = min(n, x.Len()); tested < n; tested++ {
		id, ok := x.Sample(draw())
		if !ok {
			break
		}
		if deadline := x.Deadline(id); Dead(deadline, now) {
			x.reaped.add(now - deadline)
			x.Remove(id)
			dead++
			reap(id)
		}
	}
	return tested, dead
}

// Run is one run: steps, until one finds too few dead to go on or the time is used up. clock returns a time that only grows, such as
// time.Since(start). Run returns how many it removed.
func (c Cycle) Run(x *Index, now int64, draw func() uint64, clock func() time.Duration, reap func(id uint32)) int {
	bound, repeat := c.Bound, c.Repeat
	if bound == 0 {
		bound = c.Every() / 4
	}
	if repeat == 0 {
		repeat = 0.25
	}
	start, total := clock(), 0
	for {
		tested, dead := c.Step(x, now, draw, reap)
		total += dead
		if float64(dead) <= repeat*float64(tested) || clock()-start >= bound {
			return total
		}
	}
}
