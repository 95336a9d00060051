package sliding

import (
	"math"
	"time"
)

// appetite measures how many calls of one key this process receives, and decides how large a share of the limit it takes in advance. A share has the
// calls of one lease's length, and is usually no larger than needed for one trip per 60 calls: nobody else can have the calls that a share holds. It
// has no clock.
type appetite struct {
	lease time.Duration
	limit int64
	seen  float64 // calls per lease, measured since the trip before the last
	calls float64 // the same, but a few calls in quick succession do not count as a crowd
}

// stride is the number of calls that makes a trip worthwhile. A share may have that many, however many other shares are out.
const stride = 60

// fits reports whether shares are worthwhile: if a limit allows fewer than 100 calls per lease, each call asks Redis.
func fits(limit int64, lease, window time.Duration) bool {
	return lease > 0 && float64(limit)*float64(lease) >= 100*float64(window)
}

// out bounds the calls in the shares of all processes at any time: a 32nd of the limit.
func (a *appetite) out() int64 { return a.limit / 32 }

// next records the calls asked for since the last trip, which was since ago, and returns how many calls the next share should have: as many
// as arrive during a lease, plus a margin for chance.
func (a *appetite) next(asked int64, since time.Duration) (share int64) {
	a.seen = float64(asked) * float64(a.lease) / float64(max(since, time.Microsecond))
	most := a.seen
	if asked < stride/2 {
		most = 4*a.calls + 4
	}
	a.calls = min(a.seen, most)
	share = int64(a.calls + 1.5*math.Sqrt(a.calls) + 1)
	if share < 4 {
		return 0 // returning what is left of so small a share would take a trip of its own
	}
	return min(share, a.out())
}

// pause returns how long calls are refused without asking when nothing is left: the time in which a stride of calls arrives, and a little more, since
// other processes also wait for room.
func (a *appetite) pause() time.Duration {
	return min(max(time.Duration(float64(a.lease)*1.1*stride/max(a.seen, 1)), time.Millisecond), a.lease)
}

// again returns how long after a trip calls that did not fit are refused without asking. They would fit from retry on, if nothing is given back
// sooner. A sliding window gains a little room each millisecond, but is not asked again before a pause is over. If others hold shares, some of
// them may come back. If nobody does, only a deletion of the counter can make room sooner, which is noticed after a second.
func (a *appetite) again(retry time.Duration, others, slides bool) time.Duration {
	pause := a.pause()
	switch {
	case !others:
		pause = max(a.lease, time.Second)
		if slides {
			return max(min(pause, retry), a.pause())
		}
	case slides:
		return pause
	}
	return min(pause, retry)
}
