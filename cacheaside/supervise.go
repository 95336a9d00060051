package cacheaside

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
)

// watch is what has to be seen to while a load runs.
type watch struct {
	abandoned <-chan struct{} // nobody wants it any more
	claims    []*lease.Claim  // to be kept
	ends      time.Time       // when the value ends that is being renewed, or zero
}

// endMargin is how long before the end of a value its renewal takes its place: Redis must have the lease by then.
const endMargin = 20 * time.Millisecond

// supervise runs load in a goroutine of its own, keeps claims alive meanwhile, and gives up on it after Load.Timeout, when
// the cache is closed, or when nobody wants it any more. What load wrote may be read only if it returned nil. runs, if not nil, is
// where a load that was given up ends.
func (c *Cache[K, V]) supervise(ctx context.Context, w watch, load func(ctx context.Context) error) (cost time.Duration, runs <-chan flight.Result[struct{}], err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.opt.Load.Timeout, ErrLoadTimeout)
	defer cancel()
	begun := time.Now()
	c.works.More()
	ended := flight.Go(func() (struct{}, error) {
		defer c.works.Done()
		return struct{}{}, load(ctx)
	})
	beat := time.NewTicker(lease.Beat)
	defer beat.Stop()
	var end <-chan time.Time
	if !w.ends.IsZero() {
		timer := time.NewTimer(time.Until(w.ends) - endMargin)
		defer timer.Stop()
		end = timer.C
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
		case <-end:
			for _, claim := range w.claims {
				claim.Inherit(ctx) // if not, somebody may load beside us, and one of the two is refused
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
