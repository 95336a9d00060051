package lease

import (
	"context"
	"errors"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Note is how long it can be read that a load failed: longer than the pause between two looks of those who wait.
const Note = TTL

// Fail ends claims whose load failed with why, in one trip per server, and leaves a note for those who wait. Renewals rest for a time
// instead: the value that they would have replaced is good.
func (g *Guard) Fail(ctx context.Context, claims []*Claim, why string, rest time.Duration) {
	var calls []nodes.Call
	for _, c := range claims {
		if c.renew {
			c.Rest(ctx, rest)
			continue
		}
		note := record.AppendFailure(nil, record.Failed{ID: c.id, Text: why})
		calls = append(calls, swapCall(c.lock, c.token, len(c.token), note, Note))
		if c.beside != nil {
			c.beside.Release(ctx)
		}
	}
	g.nodes.Run(ctx, calls...) // what fails ends by itself
}

// Outlast keeps claims whose load is over its time and goes on all the same, and tells those who wait why they need not any more. It is
// to be repeated like [Guard.KeepMany], until [Guard.Fail].
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
			c.outlasts = true
			c.token = c.outlasting(why)
		}
		n++
	}
}

// outlasting is the token of a claim whose load is over its time. For a renewal nobody needs to wait, and nobody is to try.
func (c *Claim) outlasting(why string) []byte {
	if c.renew {
		return record.AppendTombstone(nil, c.id)
	}
	return record.AppendLeaseAfter(nil, c.id, record.Failed{ID: c.id, Text: why})
}

// overFailures claims what only the note of a failed load keeps from being claimed: who asks came after that. Where somebody else was
// faster, it is his.
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
