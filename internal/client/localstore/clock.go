package localstore

import "time"

// Clock tells the unix milliseconds for about half the price of time.Now, by the monotonic clock alone: a step of the
// wall clock neither ends an entry early nor makes it live longer than it was given. Deadlines for a store must come
// from the same Clock.
//
// A machine that is suspended stops it. What is kept coherent over a connection is flushed then, because the connection
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
