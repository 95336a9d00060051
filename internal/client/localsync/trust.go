package localsync

import (
	"time"

	"github.com/mayflycache/mayfly/internal/client/localstore"
)

// Now returns the time by which copies live, in unix milliseconds.
func (t *Local) Now() int64 { return t.clock.Now() }

// Trusted reports whether copies may be served at now. It is asked on every read.
func (t *Local) Trusted(now int64) bool { return now <= t.until.Load() }

// Ticket is the right to insert a copy of what is read after it was drawn. The zero Ticket is none.
type Ticket struct {
	change   localstore.Ticket
	at, most int64
}

// Begin draws a ticket for key. It must be called before Redis is read.
func (t *Local) Begin(key string) Ticket {
	t.begun.Add(1)
	// First the ticket, then the question for trust: if that is lost in between the answer is no, and if it is lost later,
	// everything is dropped and the ticket worthless.
	change := t.store.Ticket(key)
	now := t.clock.Now()
	if !t.Trusted(now) {
		t.wake()
		return Ticket{}
	}
	return Ticket{change, now, t.most.Load()}
}

// End returns when that ends, in the time of Now, which had left to live when Redis was asked. The clock's milliseconds are
// whole, so one is given up, lest it seem to end a part of one later.
func (k Ticket) End(left time.Duration) int64 { return k.at + left.Milliseconds() - 1 }

// Insert keeps a copy of what was read under ticket k and had left to live, unless key has changed since.
func Insert[V any](t *Local, v *localstore.Values[V], key string, k Ticket, value V, cost int64, left time.Duration) {
	if k.at == 0 {
		return
	}
	end := min(k.End(left), k.at+k.most-1)
	if v.Insert(key, k.change, value, cost, end, t.clock.Now()) == localstore.Outdated {
		t.counts.outdated.Add(1)
	}
}

func (t *Local) rung() Rung { return Rung(t.rungs.Load()) }

// settleLocked works out what the links together are worth: as much as the worst. It returns how the rung changed.
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
	t.until.Store(until)
	changed = Rung(t.rungs.Swap(uint32(rung))) != rung
	return rung, changed && !t.Closed()
}

// settle has changed the books of the links and tells if the rung has changed with them.
func (t *Local) settle(why error, change func()) {
	t.mu.Lock()
	change()
	to, changed := t.settleLocked()
	first := !t.isOpened && t.triedLocked()
	t.isOpened = t.isOpened || first
	t.mu.Unlock()
	if changed && t.opt.Moved != nil {
		t.opt.Moved(to, why)
	}
	if first {
		close(t.opened)
	}
}

func (t *Local) triedLocked() bool {
	for _, l := range t.links {
		if !l.tried {
			return false
		}
	}
	return !t.unsure || t.given
}

// drop drops the copies under prefix, all if it is empty, and makes what is being read uninsertable.
func (t *Local) drop(prefix string) {
	t.counts.flushes.Add(1)
	t.store.InvalidateAll(prefix)
	t.watched.all()
}

// heard drops what is known to have changed.
func (t *Local) heard(key string) {
	t.counts.heard.Add(1)
	t.store.Invalidate(key)
	t.watched.one(key)
}

// sleepAfter is how long nobody may read before the links stop beating. It is not a matter of truth but of timers: a
// process that reads nothing should do nothing.
const sleepAfter = time.Minute

// sleepy reports whether nobody has read for long. Then everything is dropped, and the links may rest until awake is
// closed.
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
	t.unsure = t.cluster != nil // and is asked for when it wakes
	t.settleLocked()
	t.drop("")
	return t.awake, true
}

// wake ends the sleep, if it sleeps.
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
