package lease

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Ending ends claims that were not filled. Append the endings of several claims to send them at once.
type Ending []nodes.Call

// End ends claims in one trip per server. A claim that could not be ended expires.
func (g *Guard) End(ctx context.Context, e Ending) error {
	_, errs := g.nodes.Run(ctx, e...)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Released gives up the claim, so that the next caller need not wait for it to expire.
func (c *Claim) Released() Ending {
	return c.andBeside(drop.Call([]string{c.lock}, c.token))
}

// GivenUp gives up the claim as Rested does, and leaves a note for the waiters, so that they do not take the missing lease for a Delete.
func (c *Claim) GivenUp(rest time.Duration) Ending {
	if c.renew {
		return c.Rested(rest)
	}
	return c.noted(record.Failed{ID: c.id, GivenUp: true})
}

// Failed ends the claim of a load that failed with why, and leaves a note for the waiters. A renewal rests instead: the value that it would
// have replaced is still good.
func (c *Claim) Failed(why string, rest time.Duration) Ending {
	if c.renew {
		return c.Rested(rest)
	}
	return c.noted(record.Failed{ID: c.id, Text: why})
}

// Rested gives up a renewal and keeps others from trying for d.
func (c *Claim) Rested(d time.Duration) Ending {
	if !c.renew || d <= 0 {
		return c.Released()
	}
	return c.andBeside(swapCall(c.lock, c.token, len(c.token), record.AppendTombstone(nil, c.id), d))
}

func (c *Claim) noted(f record.Failed) Ending {
	return c.andBeside(swapCall(c.lock, c.token, len(c.token), record.AppendFailure(nil, f), Note))
}

func (c *Claim) andBeside(own nodes.Call) Ending {
	if c.beside == nil {
		return Ending{own}
	}
	return append(Ending{own}, c.beside.Released()...)
}

// Release sends what Released returns.
func (c *Claim) Release(ctx context.Context) error { return c.guard.End(ctx, c.Released()) }

// GiveUp sends what GivenUp returns.
func (c *Claim) GiveUp(ctx context.Context, rest time.Duration) error {
	return c.guard.End(ctx, c.GivenUp(rest))
}

// Rest sends what Rested returns.
func (c *Claim) Rest(ctx context.Context, d time.Duration) error {
	return c.guard.End(ctx, c.Rested(d))
}
