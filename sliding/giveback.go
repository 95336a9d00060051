package sliding

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// backs is for how many keys one trip gives back: not so many that it takes Redis longer than a limiter waits.
const backs = 500

// giveBack gives back what is unused of shares that have ended, or of all, and drops keys that nobody asks for, or all. Its error says what may
// stay counted.
func (l *Limiter[K]) giveBack(ctx context.Context, all bool) error {
	now := time.Now()
	lessees, owed := l.leases.owing(now, all)
	var lost lost
	for from := 0; from < len(lessees); from += backs {
		to := min(from+backs, len(lessees))
		l.payBack(ctx, lessees[from:to], owed[from:to], &lost)
	}
	if all {
		l.leases.owing(now, all) // drops those that have paid
	}
	if lost.keys == 0 {
		return nil
	}
	return fmt.Errorf("sliding: close: up to %d unused calls of %d key(s), such as %q, may stay counted, for %v at most: %w",
		lost.calls, lost.keys, lost.first, l.counts(), l.failure(ctx, lost.first, lost.err))
}

// lost is what could not be given back, for the reason err or another.
type lost struct {
	keys  int
	calls int64
	first string
	err   error
}

// payBack makes one trip, to each node. Each id gives back once, however often this is sent, and however late it comes.
func (l *Limiter[K]) payBack(ctx context.Context, lessees []*lessee, owed [][]debt, lost *lost) {
	fulls := make([]string, len(lessees))
	for i, e := range lessees {
		fulls[i] = e.full
	}
	for i, cmd := range l.leases.script.Each(ctx, l.redis, fulls, func(i int) []any { return l.leaseArgs(0, 0, 0, 0, owed[i]) }) {
		e := lessees[i]
		if err := cmd.Err(); err != nil && !sendonce.WrongType(err) { // what another type has replaced counts no more
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

// counts is for how long a call counts at most.
func (l *Limiter[K]) counts() time.Duration {
	switch {
	case l.opt.Sliding:
		return 2 * l.room.TTL
	case l.opt.Strict:
		return millis((strictParts + 1) * l.part)
	}
	return l.room.TTL
}

// owing returns the keys that owe something, and what, and drops those that are idle.
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

// owes returns what is to be given back now, or else reports whether the key is idle, and then is dropped. While a trip is under way it does neither.
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
		e.share.Store(nil) // which may refuse for longer than it lasts
	}
	e.debts = slices.DeleteFunc(e.debts, func(d debt) bool { return d.unused == 0 || now.Sub(d.ended) > 8*e.wants.lease })
	if len(e.debts) > 0 {
		return slices.Clone(e.debts), false
	}
	e.dropped = all || s.over(now) && now.Sub(e.since) >= 2*e.wants.lease && !now.Before(e.alone)
	return nil, e.dropped
}
