package sliding

import (
	"math"
	"sync/atomic"
	"time"
)

// share is what one trip brought of a key's limit: calls that this process may admit by itself, and what it said of the rest.
//
// Redis counts the calls of a share when it gives it, in the window that runs then, and says for how long that is. Here the share ends no later: the time
// counts from before the trip was sent, and an 128th is left out, as clocks do not run alike. Both clocks of the process must agree: the
// monotonic one stands still while a machine is suspended.
type share struct {
	begun  time.Time     // before the trip
	length time.Duration // how long its calls may be admitted
	id     uint64
	size   int64
	calls  atomic.Int64 // that are left; far below zero once the share was closed

	heard   time.Time     // after the trip
	said    Decision      // then; Remaining is without the share's calls
	again   time.Duration // until then, from begun on, the calls of the trip are refused without asking, if they do not fit
	refused atomic.Int64  // calls

	// refuses returns, of n calls that do not fit, in how long they will, from heard on, and until when they are refused without asking, from begun on.
	// It is nil if the trip found room.
	refuses func(n int) (retry, again time.Duration)
}

// closed is below zero, whatever is put back to it.
const closed = math.MinInt64 / 2

// age is how old the share is by the clock that is ahead.
func (s *share) age(now time.Time) time.Duration {
	return max(now.Sub(s.begun), time.Duration(now.UnixNano()-s.begun.UnixNano()))
}

// take takes n calls, and tells how many are left.
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

// admit admits n calls, if the share has them. The share was there before now was taken, which is the instant at which they are admitted.
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

// decision is what an admission is told when so many calls are left.
func (s *share) decision(left int64, now time.Time) Decision {
	return Decision{Allowed: true, Limit: s.said.Limit, Remaining: s.said.Remaining + int(left), ResetAfter: max(s.said.ResetAfter-now.Sub(s.heard), 0)}
}

// over reports whether nothing is decided by the share any more.
func (s *share) over(now time.Time) bool {
	return s == nil || s.age(now) >= max(s.length, s.again)
}
