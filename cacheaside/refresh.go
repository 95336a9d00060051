package cacheaside

import (
	"context"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
)

// renew has a value renewed in the background, if nobody does so already and there is room. It never waits.
func (c *Cache[K, V]) renew(ctx context.Context, p pending[K, V]) {
	if c.quiet.is(p.full) {
		return
	}
	select {
	case c.renewing <- struct{}{}:
	default:
		c.tell(ctx, mayfly.Event{Kind: mayfly.Refresh, Outcome: mayfly.Dropped, Key: p.full})
		return
	}
	f, ok := c.flights.Lead(p.full)
	if ok && c.works.Start(func() {
		defer func() { <-c.renewing }()
		c.flyRenewal(ctx, f, p)
	}) {
		return
	}
	if ok {
		f.Land(outcome[V]{}, mayfly.ErrClosed)
	}
	<-c.renewing
}

// flyRenewal loads a newer value under the lock of the one that was found, and puts it in its place. Who misses the key
// meanwhile, because it ended, waits for this flight; it is told to look again if nothing comes of it.
func (c *Cache[K, V]) flyRenewal(caller context.Context, f *flight.Flight[outcome[V]], p pending[K, V]) {
	ctx, cancel := c.works.On(caller)
	defer cancel()
	e := mayfly.Event{Kind: mayfly.Refresh, Outcome: mayfly.OK, Key: p.full}
	var a lease.Claimed
	if !p.unseen || c.seeAgain(ctx, &p) {
		a = c.guard.Renew(ctx, p.full, p.found)
	}
	switch {
	case a.Err != nil:
		c.unsure(ctx, p.full, a)
		e.Outcome, e.Err = mayfly.Failed, a.Err
	case a.Claim == nil: // another process does it, did it, or failed lately
		e.Outcome = mayfly.Refused
	}
	if e.Outcome != mayfly.OK {
		c.quiet.set(p.full)
		f.Land(outcome[V]{again: true}, nil)
		c.tell(ctx, e)
		return
	}
	l := c.loadAndFill(ctx, f, p, a.Claim)
	if l.err != nil {
		e.Outcome, e.Err = mayfly.Failed, l.err
		c.quiet.set(p.full)
	}
	e.Took = l.cost
	c.tell(ctx, e)
}

// quietFor is for how long a process that lost a renewal does not ask for the same one again: many readers decide while
// one process loads, and each would ask Redis for a lock that is taken.
const quietFor = lease.TTL / 4

// quiet remembers renewals that were lost, in a fixed space: another key in the same place makes it forget one, which
// costs a question.
type quiet [256]struct {
	key   atomic.Uint64
	until atomic.Int64 // since epoch, which a change of the wall clock does not move
}

var (
	quietSeed = maphash.MakeSeed()
	epoch     = time.Now()
)

func (q *quiet) is(key string) bool {
	h := maphash.String(quietSeed, key)
	at := &q[h%uint64(len(q))]
	return at.key.Load() == h && int64(time.Since(epoch)) < at.until.Load()
}

func (q *quiet) set(key string) {
	h := maphash.String(quietSeed, key)
	at := &q[h%uint64(len(q))]
	at.until.Store(int64(time.Since(epoch) + quietFor))
	at.key.Store(h)
}
