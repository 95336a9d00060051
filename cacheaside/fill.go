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
	var unstored lease.Ending // nobody is to wait for a lease that is not filled
	defer func() {
		for i, l := range ls {
			if l.land(&got[i], kept[i]); !ready { // the codec has called runtime.Goexit
				unstored = append(unstored, claims[i].Released()...)
			}
		}
		c.end(ctx, unstored)
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
	s := c.sortOut(ctx, ls, got, claims, encoded, wrong)
	begun := time.Now()
	filled := c.guard.FillMany(ctx, s.fills) // values first: they serve everybody
	c.forgetValues(ctx, s.gone)
	c.end(ctx, s.ends)
	c.failedSome(ctx, ls, got, claims, s.running)
	c.fillAgain(ctx, s.fills, filled)
	for n, f := range filled {
		fill := s.fills[n]
		key := fill.Claim.Key()
		kept[s.of[n]] = f.Stored && f.Err == nil
		c.local.Changed(ctx, key)
		e := mayfly.Event{Kind: mayfly.KindFill, Key: key, N: len(fill.Value), Err: f.Err}
		if f.Err == nil && !f.Stored {
			e.Outcome = mayfly.OutcomeRefused
		}
		c.tell.Done(ctx, e, begun)
		if f.Err != nil {
			unstored = append(unstored, fill.Claim.Released()...)
		}
	}
}

// sorted is what becomes of loads: each kind is sent in one trip per server.
type sorted struct {
	fills   []lease.Fill
	of      []int        // the loads of fills
	gone    []string     // what is stored, but has gone from the origin or must not be kept
	ends    lease.Ending // of claims that are not filled
	running []int        // loads that failed, but still run
}

func (c *Cache[K, V]) sortOut(ctx context.Context, ls []*loading[K, V], got []loaded[V], claims []*lease.Claim, encoded []lease.Fill, wrong []error) (s sorted) {
	for i, l := range ls {
		err := got[i].err
		none := err == nil || errors.Is(err, mayfly.ErrNotFound)
		switch {
		case wrong[i] != nil:
			c.tell(ctx, mayfly.Event{Kind: mayfly.KindFill, Outcome: mayfly.OutcomeFailed, Key: l.full, Err: wrong[i]})
			s.ends = append(s.ends, claims[i].Released()...)
		case encoded[i].Value != nil:
			l.flight.Stores()
			s.fills, s.of = append(s.fills, encoded[i]), append(s.of, i)
		case none && l.comparable():
			s.gone = append(s.gone, l.full)
		case none:
			s.ends = append(s.ends, claims[i].Released()...)
		case got[i].runs == nil:
			s.ends = append(s.ends, c.ending(claims[i], err)...)
		default:
			s.running = append(s.running, i)
		}
	}
	return s
}

// fillAgain repeats fills that got no answer while their claims live: Redis may stall for a moment, and otherwise the next caller would load
// again what is already here.
func (c *Cache[K, V]) fillAgain(ctx context.Context, fills []lease.Fill, filled []lease.Filled) {
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
			return
		}
		for n, f := range c.guard.FillMany(ctx, again) {
			filled[of[n]] = f
		}
	}
}

// fillPause is the time between two attempts to store.
const fillPause = lease.TTL / 10

// failedSome deals with loads that failed but still run, in groups with the same error, as a query usually fails for all its keys.
func (c *Cache[K, V]) failedSome(ctx context.Context, ls []*loading[K, V], got []loaded[V], claims []*lease.Claim, bad []int) {
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

// forgetValues removes stored values that the origin no longer has, or that must not be kept.
func (c *Cache[K, V]) forgetValues(ctx context.Context, fulls []string) {
	if len(fulls) == 0 {
		return
	}
	c.local.Forget(fulls...)
	errs := c.guard.Delete(ctx, fulls)
	c.local.Changed(ctx, fulls...)
	for i, err := range errs {
		if err != nil {
			c.deleteLater(ctx, err, fulls[i])
		}
	}
}
