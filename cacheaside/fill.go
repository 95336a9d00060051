package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// store stores what was loaded under claims and lands the flights. A Redis that is slow to store does not keep callers waiting
// beyond RedisTimeout in all.
func (c *Cache[K, V]) store(ctx context.Context, ls []*loading[K, V], got []loaded[V], claims []*lease.Claim) {
	encoded, wrong := make([]lease.Fill, len(ls)), make([]error, len(ls))
	kept := make([]bool, len(ls))
	ready := false
	defer func() {
		for i, l := range ls {
			if l.land(&got[i], kept[i]); !ready { // the codec has called runtime.Goexit
				claims[i].Release(ctx)
			}
		}
	}()
	for i, l := range ls {
		encoded[i], wrong[i] = l.toStore(ctx, &got[i], claims[i])
	}
	ready = true
	land := func() {
		for i, l := range ls {
			l.land(&got[i], false)
		}
	}
	patience := time.AfterFunc(max(c.opt.RedisTimeout-ls[0].spent, 0), land)
	defer patience.Stop()
	var fills []lease.Fill
	var of []int // ls
	var bad []int
	for i, l := range ls {
		switch {
		case wrong[i] != nil:
			c.tell(ctx, mayfly.Event{Kind: mayfly.KindFill, Outcome: mayfly.OutcomeFailed, Key: l.full, Err: wrong[i]})
			claims[i].Release(ctx)
		case encoded[i].Value != nil:
			l.flight.Stores()
			fills, of = append(fills, encoded[i]), append(of, i)
		case got[i].err == nil || errors.Is(got[i].err, mayfly.ErrNotFound):
			l.forgetValue(ctx, claims[i])
		default:
			bad = append(bad, i)
		}
	}
	c.giveUpSome(ctx, ls, got, claims, bad)
	begun := time.Now()
	for i, filled := range c.fill(ctx, fills) {
		key := fills[i].Claim.Key()
		kept[of[i]] = filled.Stored && filled.Err == nil
		c.local.Changed(ctx, key)
		e := mayfly.Event{Kind: mayfly.KindFill, Key: key, N: len(fills[i].Value), Err: filled.Err}
		if filled.Err == nil && !filled.Stored {
			e.Outcome = mayfly.OutcomeRefused
		}
		c.tell.Done(ctx, e, begun)
		if filled.Err != nil { // whatever became of it, nobody is to wait for our lease
			last, cancel := c.works.Last(ctx)
			fills[i].Claim.Release(last)
			cancel()
		}
	}
}

// fill stores fills. If Redis stalls for a moment, it tries again while the claims live; otherwise the next caller would load again
// what is already here.
func (c *Cache[K, V]) fill(ctx context.Context, fills []lease.Fill) []lease.Filled {
	filled := c.guard.FillMany(ctx, fills)
	for begun := time.Now(); time.Since(begun) < lease.TTL; {
		var again []lease.Fill
		var of []int
		for i, f := range filled {
			if f.Err != nil && !nodes.Answered(f.Err) {
				again, of = append(again, fills[i]), append(of, i)
			}
		}
		if len(again) == 0 {
			break
		}
		select {
		case <-time.After(fillPause):
		case <-c.works.Closing():
			return filled
		}
		for n, f := range c.guard.FillMany(ctx, again) {
			filled[of[n]] = f
		}
	}
	return filled
}

// fillPause is the time between two attempts to store.
const fillPause = lease.TTL / 10

// giveUpSome ends the claims of failed loads, in groups with the same error, as a query usually fails for all its keys.
func (c *Cache[K, V]) giveUpSome(ctx context.Context, ls []*loading[K, V], got []loaded[V], claims []*lease.Claim, bad []int) {
	for len(bad) > 0 {
		first, others := &got[bad[0]], []int(nil)
		var failed []*loading[K, V]
		var theirs []*lease.Claim
		for _, i := range bad {
			if got[i].err.Error() != first.err.Error() {
				others = append(others, i)
				continue
			}
			failed, theirs = append(failed, ls[i]), append(theirs, claims[i])
		}
		c.failed(ctx, failed, theirs, first.runs, first.err)
		bad = others
	}
}

// toStore says what to store of a load, and for how long. Without a Value there is nothing to store.
func (l *loading[K, V]) toStore(ctx context.Context, got *loaded[V], claim *lease.Claim) (lease.Fill, error) {
	c := l.c
	if got.err != nil {
		if !errors.Is(got.err, mayfly.ErrNotFound) || c.opt.MissTTL == 0 {
			return lease.Fill{}, nil
		}
		share := c.ns.Jitter
		share.Floor, share.Ceiling = 0, 0 // which are about values
		ttl := share.TTL(c.opt.MissTTL)
		return lease.Fill{Claim: claim, Value: c.encodeMiss(claim.ID(), ttl, got.cost), TTL: ttl, Ends: true}, nil
	}
	if got.NoStore {
		return lease.Fill{}, nil
	}
	ttl := got.TTL
	switch most := c.ns.Longest(); {
	case ttl == 0:
		ttl = c.ns.Jitter.TTL(c.ns.TTL)
	case ttl > most: // without the key and its length, so that a log has it once
		ttl = most
		c.tell(ctx, mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeOK, Key: l.full, Err: fmt.Errorf(
			"cacheaside: Loaded.TTL is longer than Namespace.MaxTTL allows, %v (zero allows TTL): such values are stored for that; set MaxTTL to the longest that a value may have", most)})
	}
	value, err := c.encode(got.Value, claim.ID(), ttl, got.cost)
	return lease.Fill{Claim: claim, Value: value, TTL: ttl + c.opt.window(), Ends: !c.ns.Plain}, err
}

// forgetValue ends the claim for a value that is not kept, or must not be.
func (l *loading[K, V]) forgetValue(ctx context.Context, claim *lease.Claim) {
	if !l.comparable() {
		claim.Release(ctx)
		return
	}
	c := l.c
	c.local.Forget(l.full)
	err := c.guard.Delete(ctx, []string{l.full})[0]
	c.local.Changed(ctx, l.full)
	if err != nil { // the origin no longer has it: nor have we
		c.deleteLater(ctx, err, l.full)
	}
}
