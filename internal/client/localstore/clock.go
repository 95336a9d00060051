package localstore

import "time"

// Clock returns unix milliseconds for about half the cost of time.Now, from the monotonic clock alone: a step of the
// wall clock neither ends an entry early nor makes it live longer. Deadlines for a store must come
// from the same Clock.
//
// The clock stops while the machine is suspended. Copies that a connection keeps coherent are flushed then, because the connection
// does not survive.
type Clock struct {
	start time.Time
	ms    int64
}

// NewClock returns a clock that agrees with time.Now at this moment.
func NewClock() Clock {
	now := time.Now()
	return Clock{now, now.UnixMilli()}
}

// Now returns the time in unix milliseconds.
func (c *Clock) Now() int64 { return c.ms + time.Since(c.start).Milliseconds() }
