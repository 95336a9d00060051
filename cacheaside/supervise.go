package cacheaside

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// watch is what supervise takes care of while a load runs.
type watch struct {
	abandoned <-chan struct{} // nobody wants it any more
	claims    []*lease.Claim  // to be kept
	ends      []time.Time     // when the value ends that each claim is to renew; zero: it renews none, or one without an end
}

// endMargin is at most how long before the end of a value the lease of its renewal takes its place. Redis must have the lease before
// the value ends, even if Redis or this process stalls for a moment. Once the value is gone, nobody can tell whether it expired or was
// deleted; then the running load can neither claim the key nor store its result.
const endMargin = lease.TTL / 4

// inheritPause is the time between two attempts to put a lease in a value's place.
const inheritPause = endMargin / 10

// heirs maps the claims of a renewing load to the times at which their leases take the values' places.
type heirs map[*lease.Claim]time.Time

// heirsOf returns the heirs of w. A value that ends soon keeps most of its remaining life, so its readers do not wait.
func heirsOf(w watch, now time.Time) heirs {
	var h heirs
	for i, at := range w.ends {
		if !at.IsZero() && i < len(w.claims) {
			if h == nil {
				h = make(heirs)
			}
			h[w.claims[i]] = at.Add(-min(endMargin, at.Sub(now)/4))
		}
	}
	return h
}

// due returns a channel that tells when the next is due; nil if none will be.
func (h heirs) due() <-chan time.Time {
	var at time.Time
	for _, due := range h {
		if at.IsZero() || due.Before(at) {
			at = due
		}
	}
	if at.IsZero() {
		return nil
	}
	return time.After(time.Until(at))
}

// inherit puts the leases that are due in their values' places. If Redis does not answer, it tries again later.
func (h heirs) inherit(ctx context.Context, now time.Time) {
	for claim, due := range h {
		if due.After(now) {
			continue
		}
		if err := claim.Inherit(ctx); err == nil || nodes.Answered(err) {
			delete(h, claim)
		} else {
			h[claim] = time.Now().Add(inheritPause)
		}
	}
}

// supervise runs load in a goroutine of its own, keeps claims alive meanwhile, and gives up on it after LoadTimeout, when
// the cache is closed, or when nobody waits for it any more. What load wrote may be read only if err is nil. If the load was given up
// and still runs, its end arrives on runs; otherwise runs is nil.
func (c *Cache[K, V]) supervise(ctx context.Context, w watch, load func(ctx context.Context) error) (cost time.Duration, runs <-chan flight.Result[struct{}], err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opt.LoadTimeout, mayfly.ErrLoadTimeout)
	defer cancel()
	begun := time.Now()
	c.works.More()
	ended := flight.Go(func() (struct{}, error) {
		defer c.works.Done()
		return struct{}{}, load(ctx)
	})
	beat := time.NewTicker(lease.Beat)
	defer beat.Stop()
	heirs := heirsOf(w, begun)
	due := heirs.due()
	for {
		select {
		case r := <-ended:
			return time.Since(begun), nil, because(ctx, r.Err)
		case <-ctx.Done():
			return time.Since(begun), ended, context.Cause(ctx)
		case <-w.abandoned:
			return time.Since(begun), ended, errAbandoned
		case <-beat.C:
			c.guard.KeepMany(ctx, w.claims)
		case <-due:
			heirs.inherit(ctx, time.Now())
			due = heirs.due()
		}
	}
}

// because adds the cause of ctx's end, if it has ended, to the error of a load.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}
