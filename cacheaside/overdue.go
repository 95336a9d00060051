package cacheaside

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
)

// A load that was given up, because it took too long or has no waiters, may run on if its loader or the origin ignores the context. It
// still counts as the one load of its key, in all processes, until it ends, its process dies, or overdueFor has passed. Its waiters
// get its error.

// overdueFor is how long a load that was given up still counts, in multiples of LoadTimeout.
const overdueFor = 10

// overdue holds the keys whose loads run on. The zero value is ready.
type overdue struct {
	mu   sync.Mutex               // guards keys
	keys map[string]chan struct{} // closed when the load has ended
}

// add records that the load of keys runs on, until ended is called.
func (o *overdue) add(keys []string) (ended func()) {
	done := make(chan struct{})
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.keys == nil {
		o.keys = make(map[string]chan struct{})
	}
	for _, key := range keys {
		o.keys[key] = done
	}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, key := range keys {
			if o.keys[key] == done { // after a Delete there may be another
				delete(o.keys, key)
			}
		}
		close(done)
	}
}

// of returns a channel that is closed when key's overdue load ends; nil if there is none.
func (o *overdue) of(key string) <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.keys[key]
}

// waitOverdue waits until no overdue load of l's key runs in this process. It reports false if the wait ends first.
func (l *loading[K, V]) waitOverdue(wait context.Context) bool {
	for ended := l.c.overdue.of(l.full); ended != nil; ended = l.c.overdue.of(l.full) {
		select {
		case <-ended:
		case <-wait.Done():
			l.fail(context.Cause(wait))
			return false
		case <-l.c.works.Closing():
			l.fail(mayfly.ErrClosed)
			return false
		case <-l.flight.Abandoned():
			l.fail(errAbandoned)
			return false
		}
	}
	return true
}

// failed ends the claims of a failed load. Waiters in other processes are told, unless the failure concerns only this process and its
// callers. If the load still runs, it ends on runs; otherwise runs is nil.
func (c *Cache[K, V]) failed(ctx context.Context, ls []*loading[K, V], claims []*lease.Claim, runs <-chan flight.Result[struct{}], err error) {
	if runs != nil && c.works.Context().Err() != nil { // most end as soon as their context does
		soon := time.NewTimer(handBack / 4)
		defer soon.Stop()
		select {
		case <-runs:
		case <-soon.C:
		}
		runs = nil
	}
	if runs == nil {
		c.giveUp(ctx, claims, err)
		return
	}
	keys := make([]string, len(ls))
	ends := make([]time.Time, len(ls))
	for i, l := range ls {
		keys[i], ends[i] = l.full, l.ends
	}
	heirs := heirsOf(watch{claims: claims, ends: ends}, time.Time{}) // callers have had the old value for LoadTimeout: take its place in good time
	ended := c.overdue.add(keys)
	c.works.More() // before the load, which is counted too, ends
	go func() {
		defer c.works.Done()
		ctx, cancel := c.works.On(ctx)
		defer cancel()
		bound := time.NewTimer(overdueFor * c.opt.LoadTimeout)
		defer bound.Stop()
		beat := time.NewTimer(lease.Beat / 32) // most end as soon as their context does
		defer beat.Stop()
		due := heirs.due()
		for over := false; !over; {
			select {
			case <-runs:
				over = true
			case <-bound.C:
				over = true
			case <-ctx.Done():
				over = true
			case <-beat.C:
				c.guard.Outlast(ctx, claims, err.Error())
				beat.Reset(lease.Beat)
			case <-due: // whatever the renewal found may end before its load does
				heirs.inherit(ctx, time.Now())
				due = heirs.due()
			}
		}
		c.giveUp(ctx, claims, err)
		ended()
	}()
}

// giveUp ends the claims of a failed load that no longer runs.
func (c *Cache[K, V]) giveUp(ctx context.Context, claims []*lease.Claim, err error) {
	var ends lease.Ending
	for _, claim := range claims {
		ends = append(ends, c.ending(claim, err)...)
	}
	c.end(ctx, ends)
}

// ending ends the claim of a load that failed with err. Waiters are told, unless the failure concerns only this process and its callers.
func (c *Cache[K, V]) ending(claim *lease.Claim, err error) lease.Ending {
	if errors.Is(err, mayfly.ErrClosed) || errors.Is(err, errAbandoned) || errors.Is(err, mayfly.ErrOverloaded) {
		return claim.GivenUp(c.opt.RenewThrottle)
	}
	return claim.Failed(err.Error(), c.opt.RenewThrottle)
}

// end ends claims that were not filled, in one trip per server.
func (c *Cache[K, V]) end(ctx context.Context, ends lease.Ending) {
	if len(ends) == 0 {
		return
	}
	ctx, cancel := c.works.Last(ctx)
	defer cancel()
	c.guard.End(ctx, ends)
}
