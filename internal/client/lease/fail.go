package lease

import (
	"context"
	"errors"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Note is how long the note of a failed load can be read: longer than the pause between two polls of a waiter.
const Note = TTL

// Outlast keeps claims whose load has overrun its time but goes on, and tells the waiters why they need not wait any longer. Repeat it like
// [Guard.KeepMany], until [Claim.Failed].
func (g *Guard) Outlast(ctx context.Context, claims []*Claim, why string) {
	var calls []nodes.Call
	for _, c := range claims {
		if c.beside != nil {
			calls = c.beside.keep(calls)
		}
		if c.outlasts {
			calls = append(calls, keep.Call([]string{c.lock}, c.token, millis(TTL)))
		} else {
			calls = append(calls, swapCall(c.lock, c.token, len(c.token), c.outlasting(why), TTL))
		}
	}
	did, errs := g.nodes.Run(ctx, calls...)
	n := 0
	for _, c := range claims {
		if c.beside != nil {
			n++
		}
		if !c.outlasts && did[n] && errs[n] == nil {
			c.outlasts, c.why = true, why
			c.token = c.outlasting(why)
		}
		n++
	}
}

// outlasting returns the token of a claim whose load has overrun its time. For a renewal it is a tombstone: nobody needs to wait for it,
// and nobody should try again.
func (c *Claim) outlasting(why string) []byte {
	if c.renew {
		return record.AppendTombstone(nil, c.id)
	}
	return overrun(c.id, why)
}

// overrun returns the lease of a load that has overrun its time, which says why its waiters need not wait any longer.
func overrun(id record.ID, why string) []byte {
	return record.AppendLeaseAfter(nil, id, record.Failed{ID: id, Text: why})
}

// overFailures claims the keys that are blocked only by the note of a failed load: these callers came after the failure. If another caller
// was faster, the claim is that caller's.
func (g *Guard) overFailures(ctx context.Context, wants []Want, answers []Claimed) {
	var of []int
	var claims []*Claim
	var locks []string
	for i, a := range answers {
		if a.Claim == nil && a.Err == nil && a.State == Failed && !wants[i].Renew {
			c := g.newClaim(wants[i])
			c.token = leaseAfter(c.id, a.Failure)
			of, claims, locks = append(of, i), append(claims, c), append(locks, c.lock)
		}
	}
	g.nodes.Each(ctx, locks, func(node *nodes.Node, mine []int) {
		calls := make([]nodes.Call, len(mine))
		for n, j := range mine {
			calls[n] = answers[of[j]].swap(claims[j].lock, claims[j].token, TTL)
		}
		did, errs := node.RunOnce(ctx, calls...)
		for n, j := range mine {
			a := &answers[of[j]]
			switch err := errs[n]; {
			case err != nil && !nodes.Answered(err) && !errors.Is(err, nodes.ErrOpen):
				*a = Claimed{Claim: claims[j], Err: err}
			case err != nil:
				*a = Claimed{Err: err}
			case did[n]:
				*a = Claimed{Claim: claims[j]}
			default:
				*a = Claimed{Found: Found{State: Loading, Failure: a.Failure}}
			}
		}
	}, func(j int, err error) { answers[of[j]].Err = err })
}
