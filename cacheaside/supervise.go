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

// watch is what has to be seen to while a load runs.
type watch struct {
	abandoned <-chan struct{} // nobody wants it any more
	claims    []*lease.Claim  // to be kept
	ends      []time.Time     // when the value ends that each claim is to renew; zero: it renews none, or one without an end
}

// endMargin is how long before the end of a value its renewal takes its place at most: Redis must have the lease by then, also if it or
// this process stands still for a moment. Once the value is gone nobody can tell whether it has ended or was deleted, so that neither
// the key can be claimed for a load that runs, nor what it brings be stored.
const endMargin = lease.TTL / 4

// inheritPause is the time between two attempts to put a lease in the place of a value.
const inheritPause = endMargin / 10

// heirs are the claims of a load on renewals, each with the time at which its lease is to take the place of the value.
type heirs map[*lease.Claim]time.Time

// heirsOf returns those of w. A value that ends soon keeps most of what it has left: its readers do not wait.
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

// next returns when the next is due; zero if none will be.
func (h heirs) next() (at time.Time) {
	for _, due := range h {
		if at.IsZero() || due.Before(at) {
			at = due
		}
	}
	return at
}

// inherit gives those that are due the place of their values. Where Redis does not answer it is tried again.
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
// the cache is closed, or when nobody wants it any more. What load wrote may be read only if it returned nil. runs, if not nil, is
// where a load that was given up ends.
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
	var end *time.Timer
	var due <-chan time.Time
	if at := heirs.next(); !at.IsZero() {
		end = time.NewTimer(time.Until(at))
		defer end.Stop()
		due = end.C
	}
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
			if at := heirs.next(); !at.IsZero() {
				end.Reset(time.Until(at))
			}
		}
	}
}

// because adds to the error of a load why its context had ended, if it had.
func because(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	return err
}
