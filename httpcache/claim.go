package httpcache

import (
	"context"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/client/lease"
)

// This file prolongs a claim while its handler runs, and gives up a claim that is not filled.

// beat prolongs a claim until it is stopped.
type beat struct {
	claim *lease.Claim
	among *beats

	mu    sync.Mutex  // guards timer
	timer *time.Timer // nil: stopped
}

// beats are the beats of running handlers. Close hands their claims back, since nothing is stored after Close.
type beats struct {
	mu     sync.Mutex // guards the rest
	all    map[*beat]struct{}
	closed bool
}

func (bs *beats) add(b *beat) (ok bool) {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	if bs.closed {
		return false
	}
	if bs.all == nil {
		bs.all = make(map[*beat]struct{})
	}
	bs.all[b] = struct{}{}
	return true
}

// close refuses new beats, and returns the current ones.
func (bs *beats) close() map[*beat]struct{} {
	bs.mu.Lock()
	defer bs.mu.Unlock()
	all := bs.all
	bs.all, bs.closed = nil, true
	return all
}

// keep prolongs a claim while the handler runs, for at most as long as a handler may run for others. In a closed cache it hands the claim back.
func (c *Cache) keep(ctx context.Context, claim *lease.Claim) *beat {
	if claim == nil {
		return nil
	}
	ends, b := time.Now().Add(c.opt.SharedTimeout), &beat{claim: claim, among: &c.beats}
	if !c.beats.add(b) {
		c.release(ctx, claim)
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer = time.AfterFunc(lease.Beat, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.timer == nil {
			return
		}
		c.works.Start(func() { claim.Keep(c.works.Context()) })
		if time.Now().Before(ends) {
			b.timer.Reset(lease.Beat)
		}
	})
	return b
}

// used marks the claim as about to be filled. It is still prolonged, and Close waits for the filling instead of handing the claim back.
func (b *beat) used() {
	if b == nil {
		return
	}
	b.among.mu.Lock()
	defer b.among.mu.Unlock()
	delete(b.among.all, b)
}

func (b *beat) stop() {
	if b == nil {
		return
	}
	b.used()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
}

// abandon gives up the claims of running handlers. The handlers continue, and their answers are not stored.
func (c *Cache) abandon() {
	for b := range c.beats.close() {
		b.stop()
		c.release(context.Background(), b.claim)
	}
}

// release gives a claim up in the background, without making the client wait. If that fails nothing is lost: the lease ends by itself.
func (c *Cache) release(ctx context.Context, claim *lease.Claim) {
	if claim != nil {
		c.behind(ctx, func(ctx context.Context) { claim.Release(ctx) })
	}
}

// rest gives a claim up because the handler failed. If there is a stored response, nobody tries again for a while.
// The returned function waits until the claim has been given up.
func (c *Cache) rest(ctx context.Context, claim *lease.Claim) (wait func()) {
	done := make(chan struct{})
	if claim == nil {
		close(done)
	} else {
		c.behind(ctx, func(ctx context.Context) {
			defer close(done)
			claim.Rest(ctx, c.opt.RenewThrottle)
		})
	}
	return func() { <-done }
}

// behind runs do, which talks to Redis, in the background. In a closed cache it runs do at once, so that other processes need not wait for what
// this one holds.
func (c *Cache) behind(ctx context.Context, do func(ctx context.Context)) {
	ctx = context.WithoutCancel(ctx)
	if c.works.Start(func() {
		ctx, cancel := c.works.On(ctx)
		defer cancel()
		last, cancel := c.works.Last(ctx)
		defer cancel()
		do(last)
	}) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, handBackFor)
	defer cancel()
	do(ctx)
}

// handBackFor bounds how long it takes to hand back what a closed cache holds.
const handBackFor = 250 * time.Millisecond
