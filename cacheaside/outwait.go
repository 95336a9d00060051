package cacheaside

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// outwait waits for somebody else's load, which takes no permit.
func (l *loading[K, V]) outwait(ctx context.Context) (landed bool) {
	wait, cancel := l.patiently(ctx)
	defer cancel()
	return l.outwaited(ctx, l.c.guard.Outwait(ctx, wait, l.others(), l.usable))
}

// patiently returns the context of a wait for somebody else's load.
func (l *loading[K, V]) patiently(ctx context.Context) (wait context.Context, cancel context.CancelFunc) {
	if id := l.found.Holder(); id != l.behind || id == (record.ID{}) { // or somebody who was faster, whoever that is
		l.behind, l.since = id, time.Now()
	}
	return context.WithDeadlineCause(ctx, l.since.Add(l.patience()), mayfly.ErrLoadTimeout)
}

// others is what is asked of Redis while l waits for somebody else's load.
func (l *loading[K, V]) others() lease.Want {
	w := l.want()
	w.Until = l.since.Add(l.c.opt.LoadTimeout)
	return w
}

// usable reports whether a plain value that is being loaded is good enough.
func (l *loading[K, V]) usable(now lease.Found) bool {
	return l.c.see(now, 0, true).standing != unusable
}

// outwaited goes on after the wait for somebody else's load, and reports whether the flight has landed.
func (l *loading[K, V]) outwaited(ctx context.Context, a lease.Acquired) (landed bool) {
	if a.Standing == lease.Late && a.Err == nil { // the holder lives, and has had its time
		a.Err = mayfly.ErrLoadTimeout
	}
	l.spent, l.past = 0, true
	if a.Standing != lease.Mine { // taken over from one who died, with a clock that was set back
		if l.turnTo(ctx, a) {
			return true
		}
		l.alone = l.alone || a.Voided && time.Since(l.begun) >= l.c.opt.LoadTimeout // it is deleted all the time
		return false
	}
	permit, ok := admission.Of(l.c.origin).Try(ctx)
	defer permit.Drop()
	if !ok {
		a.Claim.GiveUp(ctx, 0)
		l.found = lease.Found{}
		return false
	}
	l.loadAndFill(ctx, &permit, a.Claim)
	return true
}

// patience is how long l waits for somebody else's load at most: as long as a load may take, plus the time until the lease of a killed
// process ends. A holder that is seen to be alive after the former, or whose load is known to be overdue, is not waited for any longer.
func (l *loading[K, V]) patience() time.Duration {
	patience := l.c.opt.LoadTimeout
	if l.found.Failure.ID != l.behind {
		patience += lease.TTL * 3 / 2
	}
	return patience
}
