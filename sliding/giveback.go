package sliding

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// backs bounds the keys that one trip gives back, so that the trip takes Redis no longer than a limiter waits.
const backs = 500

// giveBack gives back the unused calls of shares that have ended, or of all shares, and drops keys that nobody asks for, or all keys. Its error says
// how many calls may stay counted.
func (l *Limiter[K]) giveBack(ctx context.Context, all bool) error {
	now := time.Now()
	lessees, owed := l.leases.owing(now, all)
	var lost lost
	for from := 0; from < len(lessees); from += backs {
		to := min(from+backs, len(lessees))
		l.payBack(ctx, lessees[from:to], owed[from:to], &lost)
	}
	if all {
		l.leases.owing(now, all) // drops the keys that owe nothing more
	}
	if lost.keys == 0 {
		return nil
	}
	return fmt.Errorf("sliding: close: up to %d unused calls of %d key(s), such as %q, may stay counted, for %v at most: %w",
		lost.calls, lost.keys, lost.first, l.counts(), l.failure(ctx, lost.first, lost.err))
}

// lost counts what could not be given back. err is one of the reasons.
type lost struct {
	keys  int
	calls int64
	first string
	err   error
}

// payBack makes one trip to each node. Each id gives back once, however often this is sent, and however late it arrives.
func (l *Limiter[K]) payBack(ctx context.Context, lessees []*lessee, owed [][]debt, lost *lost) {
	fulls := make([]string, len(lessees))
	for i, e := range lessees {
		fulls[i] = e.full
	}
	for i, cmd := range l.leases.script.Each(ctx, l.redis, fulls, func(i int) []any { return l.leaseArgs(0, 0, 0, 0, owed[i]) }) {
		e := lessees[i]
		if err := cmd.Err(); err != nil && !sendonce.WrongType(err) { // if a value of another type has replaced the counter, nothing counts any more
			if lost.keys++; lost.err == nil {
				lost.first, lost.err = e.full, err
			}
			for _, d := range owed[i] {
				lost.calls += min(d.unused, e.wants.out())
			}
			continue
		}
		e.mu.Lock()
		e.paidLocked(owed[i])
		e.mu.Unlock()
	}
}

// counts bounds how long a call counts.
func (l *Limiter[K]) counts() time.Duration {
	switch {
	case l.opt.Sliding:
		return 2 * l.room.TTL
	case l.opt.Strict:
		return millis((strictParts + 1) * l.part)
	}
	return l.room.TTL
}

// owing returns the keys that owe calls, with their debts, and drops the idle ones.
func (ls *leases[K]) owing(now time.Time, all bool) (lessees []*lessee, owed [][]debt) {
	for i := range ls.shards {
		sh := &ls.shards[i]
		sh.mu.Lock()
		for key, e := range sh.keys {
			debts, idle := e.owes(now, all)
			switch {
			case len(debts) > 0:
				lessees, owed = append(lessees, e), append(owed, debts)
			case idle:
				delete(sh.keys, key)
				ls.mu.Lock()
				ls.keys--
				ls.mu.Unlock()
			}
		}
		sh.mu.Unlock()
	}
	return lessees, owed
}

// owes returns what the key has to give back now, or reports that it is idle, and drops it. While a trip is under way it does neither.
func (e *lessee) owes(now time.Time, all bool) (debts []debt, idle bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.trip != nil {
		return nil, false
	}
	s := e.share.Load()
	if s != nil && (all || s.age(now) >= s.length+e.wants.lease/8) {
		e.endLocked(now)
	}
	if all {
		e.share.Store(nil) // it may refuse for longer than its calls last
	}
	e.debts = slices.DeleteFunc(e.debts, func(d debt) bool { return d.unused == 0 || now.Sub(d.ended) > 8*e.wants.lease })
	if len(e.debts) > 0 {
		return slices.Clone(e.debts), false
	}
	e.dropped = all || s.over(now) && now.Sub(e.since) >= 2*e.wants.lease && !now.Before(e.alone)
	return nil, e.dropped
}
