package sliding

import (
	"math"
	"time"
)

// appetite is how many calls of one key a process is asked for, and so how large a share of the limit it takes in advance. A share is as large as
// the calls of one lease's length, and as a rule no larger than one trip per 60 calls needs: what a share holds nobody else can have meanwhile. It knows
// no clock.
type appetite struct {
	lease time.Duration
	limit int64
	seen  float64 // calls in the time of a lease, since the trip before the last
	calls float64 // the same, where few calls in quick succession are not taken for a crowd
}

// stride is for how many calls a trip is worth its while. A share may have as many, however many other shares are out.
const stride = 60

// fits reports whether shares are worth their while: a limit that allows less than 100 calls in the time of a lease is asked for call by call.
func fits(limit int64, lease, window time.Duration) bool {
	return lease > 0 && float64(limit)*float64(lease) >= 100*float64(window)
}

// out is how many calls may be in the shares of all processes at a time: what they hold is a 32nd of the limit at most.
func (a *appetite) out() int64 { return a.limit / 32 }

// next learns that so many calls were asked for since the last trip, which was so long ago, and returns how many the next share should have: as many
// as come in the time of a lease, and as many more as chance may bring.
func (a *appetite) next(asked int64, since time.Duration) (share int64) {
	a.seen = float64(asked) * float64(a.lease) / float64(max(since, time.Microsecond))
	most := a.seen
	if asked < stride/2 {
		most = 4*a.calls + 4
	}
	a.calls = min(a.seen, most)
	share = int64(a.calls + 1.5*math.Sqrt(a.calls) + 1)
	if share < 4 {
		return 0 // what is left of it would have to be given back by a trip of its own
	}
	return min(share, a.out())
}

// pause is for how long calls are refused without asking when nothing is left: the time of a stride and a little, as the process is not the only one
// who waits for room.
func (a *appetite) pause() time.Duration {
	return min(max(time.Duration(float64(a.lease)*1.1*stride/max(a.seen, 1)), time.Millisecond), a.lease)
}

// again is for how long after a trip calls are refused without asking that did not fit, and would from retry on if nothing is given back. A window that
// slides has a little more room each millisecond, which is not asked for sooner than after a pause. Where others hold shares, some of them
// may come back. Where nobody does, only a deletion of the counter could make room sooner, which is noticed after a second.
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
