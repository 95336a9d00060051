package admission

import "time"

// Place is a load's place in the queue. It receives reports of callers that join the load before or while it queues. Make it with
// [Limiter.Place] and use it for one Enter.
type Place struct {
	of *Limiter

	// Guarded by of.mu.
	waiter *waiter   // nil: not in the queue yet
	told   bool      // somebody has joined
	until  time.Time // when the last of the callers leaves; zero: never
	hurry  bool      // one of the callers holds a permit
}

// Place returns a place for a load that will Enter.
func (l *Limiter) Place() *Place { return &Place{of: l} }

// Joined says until when a caller that joined will wait; zero means as long as it takes. A caller that holds a permit of the limiter is in
// a hurry: the load is let in at once, beyond the limit.
func (p *Place) Joined(until time.Time, hurry bool) {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	switch {
	case !p.told || until.IsZero():
		p.until = until
	case !p.until.IsZero() && until.After(p.until):
		p.until = until
	}
	p.told, p.hurry = true, p.hurry || hurry
	p.applyLocked(time.Now())
}

// applyLocked updates a queued load with what is known of its callers. A load that was late and no longer is moves to the end of those in
// time: it has lost its place, but gets a turn.
func (p *Place) applyLocked(now time.Time) {
	w, l := p.waiter, p.of
	if !p.told || w == nil || w.in == nil {
		return
	}
	w.until = p.until
	switch {
	case p.hurry && !l.closed:
		w.in.remove(w)
		l.grantLocked(w, now)
	case w.in == &l.queue.late && (w.until.IsZero() || l.policy.InTime(w.until.Sub(now))):
		w.in.remove(w)
		l.queue.push(w)
	}
}
