package sliding

import (
	"math"
	"sync/atomic"
	"time"
)

// share is what one trip brought of a key's limit: calls that this process may admit by itself, and the reply's view of the rest.
//
// Redis counts the calls of a share when it gives the share, in the current window, and says how long they may be used. The process ends the share
// no later: it measures from before the trip was sent, and leaves out a 128th, since clocks do not run at the same speed. It uses the process's
// monotonic clock and its wall clock, whichever is ahead: the monotonic one stands still while a machine is suspended.
type share struct {
	begun  time.Time     // before the trip
	length time.Duration // how long its calls may be admitted
	id     uint64
	size   int64
	calls  atomic.Int64 // the calls left; far below zero once the share is closed

	heard   time.Time     // after the trip
	said    Decision      // the trip's decision; Remaining excludes the share's calls
	again   time.Duration // until then, measured from begun, calls that do not fit are refused without asking
	refused atomic.Int64  // calls refused without asking

	// refuses says of n calls that do not fit when they will, measured from heard, and until when they are refused without asking, measured from
	// begun.
	// It is nil if the trip found room.
	refuses func(n int) (retry, again time.Duration)
}

// closed stays below zero, however many calls are put back.
const closed = math.MinInt64 / 2

// age returns the share's age by the clock that is ahead.
func (s *share) age(now time.Time) time.Duration {
	return max(now.Sub(s.begun), time.Duration(now.UnixNano()-s.begun.UnixNano()))
}

// take takes n calls, and returns how many are left.
func (s *share) take(n int64, age time.Duration) (left int64, ok bool) {
	if age >= s.length {
		return 0, false
	}
	for {
		left = s.calls.Load()
		if left < n {
			return max(left, 0), false
		}
		if s.calls.CompareAndSwap(left, left-n) {
			return left - n, true
		}
	}
}

// admit admits n calls, if the share has them. now was read after the share existed, and is the instant at which the calls are admitted.
func (s *share) admit(n int, now time.Time) (d Decision, ok bool) {
	if s == nil {
		return d, false
	}
	age := s.age(now)
	left, ok := s.take(int64(n), age)
	return s.decision(left, now), ok
}

// decide answers n calls, if that needs no trip: it admits or refuses them.
func (s *share) decide(n int, now time.Time) (d Decision, known bool) {
	if s == nil {
		return d, false
	}
	age := s.age(now)
	left, ok := s.take(int64(n), age)
	d = s.decision(left, now)
	if ok {
		return d, true
	}
	if s.refuses == nil || n > 0 && left+int64(s.said.Remaining) >= int64(n) {
		return d, false
	}
	retry, again := s.refuses(max(n, 1))
	if age >= again {
		return d, false
	}
	if n > 0 {
		s.refused.Add(int64(n))
		d.Allowed, d.RetryAfter = false, max(retry-now.Sub(s.heard), again-age)
	}
	return d, true
}

// decision returns the decision for admitted calls that left this many calls in the share.
func (s *share) decision(left int64, now time.Time) Decision {
	return Decision{Allowed: true, Limit: s.said.Limit, Remaining: s.said.Remaining + int(left), ResetAfter: max(s.said.ResetAfter-now.Sub(s.heard), 0)}
}

// over reports whether the share decides nothing any more.
func (s *share) over(now time.Time) bool {
	return s == nil || s.age(now) >= max(s.length, s.again)
}
