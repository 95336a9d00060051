package admission

import "time"

// Outcome is what the end of a load says about its origin.
type Outcome uint8

const (
	// Failed is an error of the origin. A panic counts as one.
	Failed Outcome = iota
	// OK is an answer, including the answer that there is nothing.
	OK
	// TimedOut means that no answer came within the time a load may take.
	TimedOut
	// Abandoned is a load that ended because its callers had left. It counts as timed out if it took longer than the policy allows, and
	// otherwise says nothing: with an origin that is too slow, all callers may leave before any load ends.
	Abandoned
	// NoSample says nothing about the origin: there was nothing to load, or the load was not typical.
	NoSample
)

// Policy finds how many loads an origin can handle at a time. It has no clock and no lock: times are arguments, counted from any fixed
// moment.
//
// It divides time into epochs of a few loads and compares each epoch with what it knows. By Little's law the number of loads in flight is
// the rate of completions times the duration of a load. So a saturated origin is given its rate times the delay that we allow:
//
//	errors beyond what is tolerated     fewer than succeeded, and careful growth from then on; if cuts do not help, tolerate them
//	timeouts, or crowded beyond delay   rate x delay + 1; if cuts do not help either, the origin has become slower: learn that
//	loads wait, careful                 up to rate x delay + 1, by 2 % an epoch
//	loads wait, crowded                 up to rate x delay + 1, by 10 % an epoch
//	loads wait, not crowded             double it; only 10 % an epoch above half of what was recently too much
//	no load waits                       unchanged
//
// Crowded means at least half again as slow as usual. The delay is the smallest of a quarter of the load's timeout, a third of how long
// callers wait, and eight times the usual duration. It is never below twice the usual duration and never above half the timeout.
//
// The usual duration is the lowest mean of an epoch, and is slowly forgotten: in saturation it doubles in three and a half minutes. The
// policy never holds loads back just to measure it.
type Policy struct {
	timeout  float64 // seconds, as all below
	limit    float64
	usual    float64 // mean duration of a load when the origin is not crowded; 0: not known yet
	known    float64 // number of loads that usual was learned from, at most about 100
	recent   float64 // mean duration of the latest loads
	patience float64 // mean time that callers wait; 0: not known

	epoch  epoch
	errors errorCuts
	trial  trial
	fell   float64 // the limit that recently led to timeouts or slowness; 0: none. Forgotten within a minute
}

// epoch counts the loads between two adjustments.
type epoch struct {
	begun            float64
	ok, failed, late float64
	took             float64 // total duration of the loads that are ok
	waits            bool    // a load had to wait
}

func (e epoch) loads() float64 { return e.ok + e.failed + e.late }

// errorCuts keeps track of cuts because of errors.
type errorCuts struct {
	tolerated float64 // share of loads
	careful   bool    // an epoch had too many errors
	count     int     // cuts in a row
	same      int     // how many of these in a row changed nothing
	share     float64 // before the latest cut
	limit     float64 // before the first cut
}

// trial shows whether cutting the limit makes a slow origin faster.
type trial struct {
	limit, mean   float64 // before the first cut; limit 0: no trial
	dur, ok, took float64 // of epochs with at most half that limit
}

const (
	start    = 4   // few, since every process starts at once, perhaps in front of a small origin
	least    = 1   // loads in flight
	most     = 1e6 // loads in flight
	allowed  = .1  // share of errors
	forget   = 300 // seconds until usual may have grown by its own size
	approach = 30  // the same while cuts do not help
	careful  = 60  // seconds until fell is forgotten
	enough   = 100 // loads after which a mean is certain
	inTime   = 1.5 // how many times recent a load needs to end in time
	minEpoch = 8   // loads
)

// NewPolicy returns a policy for loads with this timeout.
func NewPolicy(timeout time.Duration) *Policy {
	return &Policy{timeout: timeout.Seconds(), limit: start, errors: errorCuts{tolerated: allowed}}
}

// Limit returns how many loads may be in flight.
func (p *Policy) Limit() int { return int(p.limit) }

// Waits reports that a load has to wait for a permit, so the limit is in effect.
func (p *Policy) Waits() { p.epoch.waits = true }

// Wanted reports how long a load's callers wait for it.
func (p *Policy) Wanted(within time.Duration) {
	if p.patience == 0 {
		p.patience = within.Seconds()
	}
	p.patience += (within.Seconds() - p.patience) / 64
}

// InTime reports whether a load that begins now is likely to end within left.
func (p *Policy) InTime(left time.Duration) bool { return left.Seconds() >= inTime*p.recent }

// Done reports how a load that began at begun has ended, and whether other loads wait now.
func (p *Policy) Done(begun, now time.Duration, how Outcome, waits bool) {
	e, took := &p.epoch, (now - begun).Seconds()
	if how == Abandoned && took > p.delay() {
		how = TimedOut
	}
	if e.loads() == 0 {
		e.begun = max(e.begun, begun.Seconds()) // before this load the origin was idle
	}
	switch how {
	case OK:
		e.ok++
		e.took += took
		p.recent += (took - p.recent) / 16
	case Failed:
		e.failed++
	case TimedOut:
		e.late++
	default:
		return
	}
	// A load that began before the epoch says something about the previous limit.
	if begun.Seconds() < e.begun || e.loads() < min(minEpoch, p.limit) {
		return
	}
	p.adjust(max(now.Seconds()-e.begun, 1e-6))
	p.epoch = epoch{begun: now.Seconds(), waits: waits}
}

// adjust sets the limit at the end of an epoch.
func (p *Policy) adjust(dur float64) {
	e, rate := p.epoch, p.epoch.ok/dur
	var mean, withLate float64
	if e.ok+e.late > 0 {
		withLate = (e.took + e.late*p.timeout) / (e.ok + e.late)
	}
	if e.ok > 0 {
		mean = e.took / e.ok
		p.learn(mean, dur)
	}
	delay := p.delay()
	crowded := e.ok > 0 && mean > 1.5*p.usual
	slow := crowded && withLate > delay
	tried := p.trial.limit != 0
	p.try(slow, mean, delay, dur)
	learned := tried && p.trial.limit == 0 // or it is no longer slow
	failed := p.errors.tooMany(e, dur)
	limit := p.limit
	switch {
	case failed:
		limit = p.errors.cut(limit, max(least, min(.9*limit, .9*rate*mean+1)))
	case e.late > .02*e.ok || slow:
		if p.fell = max(p.fell/2, limit); learned { // so it was not too much
			p.fell = 0
		}
		limit = max(least, min(limit, rate*delay+1))
	case !e.waits:
	case p.errors.careful:
		limit = max(limit, min(rate*delay+1, 1.02*limit+.5))
	case crowded:
		limit = max(limit, min(rate*delay+1, 1.1*limit))
	case e.ok > 0:
		faster := min(2, max(1.1, .8*p.timeout/mean))
		if limit*faster > p.fell/2 && p.fell > 0 {
			faster = 1.1
		}
		limit *= faster
	}
	if p.fell *= 1 - min(1, dur/careful); p.fell < 1 {
		p.fell = 0
	}
	p.limit = min(limit, most)
}

// delay is how long a load may take in an origin that we saturate.
func (p *Policy) delay() float64 {
	delay := p.timeout / 4
	if p.usual == 0 {
		return delay
	}
	if p.patience > 0 {
		delay = min(delay, p.patience/3)
	}
	return min(max(min(delay, 8*p.usual), 2*p.usual), p.timeout/2)
}

// learn takes an epoch's mean into account.
func (p *Policy) learn(mean, dur float64) {
	n := p.epoch.ok
	p.known = min(p.known+n, max(enough, n))
	switch {
	case p.usual == 0:
		p.usual = mean
	case mean < p.usual:
		p.usual -= (p.usual - mean) * n / p.known // an epoch of few loads is often fast by chance
	default:
		p.usual = min(mean, p.usual*(1+dur/forget))
	}
}

// try watches what cuts achieve. If half as many loads, or the least possible, are still about as slow after two timeouts, and twice as
// slow as we allow, our loads are not the cause: the origin has become slower, and try forgets what was usual. It waits that long because
// the origin may still be working on abandoned loads. If they are slower than we allow but not twice as slow, another process may simply
// allow more than we do. Then we approach its value step by step: if both learned at once, they could outbid each other.
func (p *Policy) try(slow bool, mean, delay, dur float64) {
	t, e := &p.trial, p.epoch
	low := p.limit <= t.limit/2 || p.limit < 2*least
	switch {
	case t.limit == 0 && slow:
		*t = trial{limit: p.limit, mean: mean}
	case t.limit == 0 || !low && !slow:
		*t = trial{}
	case !low:
		t.mean = max(t.mean, mean)
	case low && e.ok > 0:
		p.usual = max(p.usual, min(mean, p.usual*(1+dur/approach)))
		t.dur, t.ok, t.took = t.dur+dur, t.ok+e.ok, t.took+e.took
		if t.dur < 2*p.timeout || t.ok < minEpoch {
			return
		}
		now := t.took / t.ok
		switch {
		case now > .8*t.mean && now > 2*delay:
			p.usual, p.known = now, 0
		case now > .8*t.mean:
			t.dur, t.ok, t.took = 0, 0, 0 // start counting again
			return
		}
		*t = trial{}
	}
}

// tooMany reports whether an epoch had more errors than are tolerated. Without errors, the tolerance is gone within minutes.
func (c *errorCuts) tooMany(e epoch, dur float64) bool {
	share := e.failed / e.loads()
	if share > c.tolerated {
		c.careful = true
		c.same++
		if c.count == 0 || share <= .8*c.share {
			c.same = 0
		}
		c.share = share
		return true
	}
	c.count, c.same = 0, 0
	c.tolerated = max(allowed, c.tolerated*(1-min(1, dur/60)))
	return false
}

// cut returns the limit after a cut. If cuts have changed nothing, it restores the limit from before them: then our load does not cause the
// errors.
func (c *errorCuts) cut(from, to float64) float64 {
	if c.count == 0 {
		c.limit = from
	}
	c.count++
	if c.same < 3 {
		return to
	}
	c.tolerated = min(1, 1.25*c.share+.1)
	c.count, c.same = 0, 0
	return max(from, c.limit)
}
