package localsync

import (
	"errors"
	"maps"
	"slices"
	"time"
)

// Now returns the time that deadlines of copies are compared with, in unix milliseconds.
func (t *Local) Now() int64 { return t.clock.Now() }

// Trusted reports whether copies may be served at now. Every read asks it.
func (t *Local) Trusted(now int64) bool { return now <= t.served.Load() }

// inStep reports whether every change is heard at now, so that a value read now may be copied.
func (t *Local) inStep(now int64) bool { return now <= t.until.Load() }

func (t *Local) rung() Rung { return Rung(t.rungs.Load()) }

// settleLocked works out what all links together are worth: as much as the worst one. It returns the rung, and whether it changed.
func (t *Local) settleLocked() (to Rung, changed bool) {
	until, rung := int64(forever), Tracking
	for _, l := range t.links {
		until, rung = min(until, l.until), min(rung, l.rung)
	}
	if len(t.links) == 0 {
		rung = Off
	}
	if rung == Off || t.unsure || t.asleep.Load() || t.Closed() {
		until = 0
	}
	most := int64(forever)
	if t.opt.MaxTTL > 0 {
		most = t.opt.MaxTTL.Milliseconds()
	}
	if rung == ShortTTL {
		most = min(most, t.opt.ShortTTL.Milliseconds())
	}
	t.most.Store(most)
	served := t.servedLocked(until)
	t.until.Store(until)
	t.served.Store(served)
	changed = Rung(t.rungs.Swap(uint32(rung))) != rung
	return rung, changed && !t.Closed()
}

// servedLocked returns the time up to which copies are served, if they are in step up to until. When they are no longer in step they are
// served for Options.Outage more. When changes are heard again they are dropped first, since nobody knows which changes were missed.
func (t *Local) servedLocked(until int64) int64 {
	switch more := t.opt.Outage.Milliseconds(); {
	case more == 0:
		return until
	case until > 0:
		if t.outage {
			t.outage = false
			t.served.Store(0)
			t.drop("")
		}
		return min(until, forever-more) + more
	case t.asleep.Load() || t.Closed():
		t.outage = false
		return 0
	case t.outage:
		return t.served.Load()
	default:
		t.outage = true
		return min(t.served.Load(), t.clock.Now()+more)
	}
}

// lost drops all copies, since changes may no longer be heard. During an outage it leaves that to the outage's end.
func (t *Local) lost() {
	t.mu.Lock()
	keep := t.outage
	t.mu.Unlock()
	if !keep {
		t.drop("")
	}
}

// settle runs change under the lock and works out the trust and the rung anew. It reports the rung if it has changed or if change has set
// retell.
func (t *Local) settle(why error, change func()) {
	t.mu.Lock()
	change()
	to, tell := t.settleLocked()
	tell = tell || t.retell && !t.Closed()
	t.retell = false
	first := !t.isOpened && t.triedLocked()
	t.isOpened = t.isOpened || first
	t.mu.Unlock()
	if tell && t.opt.RungChanged != nil {
		t.opt.RungChanged(to, why)
	}
	if first {
		close(t.opened)
	}
}

// whyLocked says why the rung is not Tracking: the reason of each link, and why it is not known which links there should be.
func (t *Local) whyLocked() error {
	if t.rung() == Tracking {
		return nil
	}
	whys := []error{t.noMasters}
	for _, name := range slices.Sorted(maps.Keys(t.links)) {
		whys = append(whys, t.links[name].why)
	}
	return errors.Join(whys...)
}

func (t *Local) triedLocked() bool {
	for _, l := range t.links {
		if !l.tried {
			return false
		}
	}
	return !t.unsure || t.given
}

// sleepAfter is how long after the last read the links stop beating. This is not for correctness but to save timers: a process that reads
// nothing should do nothing.
const sleepAfter = time.Minute

// sleepy reports whether nothing has been read for sleepAfter. Then everything is dropped, and the links may rest until awake is closed.
func (t *Local) sleepy() (awake <-chan struct{}, asleep bool) {
	now, reads := t.clock.Now(), t.store.Reads()+t.begun.Load()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.asleep.Load():
		return t.awake, true
	case reads != t.reads:
		t.reads, t.readAt = reads, now
		return nil, false
	case now-t.readAt < sleepAfter.Milliseconds():
		return nil, false
	}
	t.asleep.Store(true)
	t.awake = make(chan struct{})
	for _, l := range t.links {
		if l.rung > ShortTTL {
			l.until = 0
		}
	}
	t.unsure = t.cluster != nil // the masters are listed again on waking
	t.settleLocked()
	t.drop("")
	return t.awake, true
}

// wake ends the sleep, if there is one.
func (t *Local) wake() {
	if !t.asleep.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asleep.Swap(false) {
		t.readAt = t.clock.Now()
		close(t.awake)
		t.settleLocked()
	}
}
