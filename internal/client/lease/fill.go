package lease

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Fill stores value for ttl unless what the claim was for has been deleted or replaced meanwhile, and reports whether it stored it. The
// claim ends. The lock of a renewal is left to expire, so that a process that still holds the older value cannot renew it a second time.
func (c *Claim) Fill(ctx context.Context, value []byte, ttl time.Duration) (stored bool, err error) {
	return c.guard.nodes.Run1(ctx, Fill{Claim: c, Value: value, TTL: ttl}.call(ctx))
}

// FillMany stores values as [Claim.Fill] does, in one trip per server.
func (g *Guard) FillMany(ctx context.Context, fills []Fill) []Filled {
	calls := make([]nodes.Call, len(fills))
	for i, f := range fills {
		calls[i] = f.call(ctx)
	}
	filled := make([]Filled, len(fills))
	did, errs := g.nodes.Run(ctx, calls...)
	for i := range filled {
		filled[i] = Filled{did[i], errs[i]}
	}
	return filled
}

// Filled is the result of a Fill. With an Err it is unknown whether the value was stored.
type Filled struct {
	Stored bool
	Err    error
}

// Fill is one value to be stored.
type Fill struct {
	Claim *Claim
	Value []byte
	TTL   time.Duration

	// Ends makes Redis write the time at which the value ends into Value, which must be the record of a value.
	Ends bool
}

func (f Fill) call(ctx context.Context) nodes.Call {
	c := f.Claim
	switch {
	case c.guard.plain:
		was, lock := []byte{'-'}, c
		switch {
		case c.beside != nil: // the value being renewed may have expired
			was, lock = append([]byte{'?'}, c.seen.Raw...), c.beside
		case c.seen.State == Present:
			was = append([]byte{'+'}, c.seen.Raw...)
		}
		return fillPlain.Call([]string{lock.lock, c.key}, c.token, was, f.Value, millis(f.TTL))
	case c.renew:
		return f.over(ctx, c.seen.head(), len(c.seen.Raw))
	}
	return f.over(ctx, c.token, len(c.token))
}

// over returns the call that replaces a value with this head and length.
func (f Fill) over(ctx context.Context, head []byte, length int) nodes.Call {
	if !f.Ends {
		return swapCall(f.Claim.key, head, length, f.Value, f.TTL)
	}
	tells := 0 // a user without permission for TIME would be refused each time, and Redis would log it
	if node, err := f.Claim.guard.nodes.Of(ctx, f.Claim.key); err == nil && node.TellsTime() {
		tells = 1
	}
	return fill.Call([]string{f.Claim.key}, head, length, f.Value[:record.EndsFrom], f.Value[record.EndsTo:], millis(f.TTL), tells)
}
