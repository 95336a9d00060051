package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// ManyError is the error of a call about several keys of which some failed. errors.Is and As find any of its errors.
type ManyError[K comparable] struct {
	Errs map[K]error // never empty
}

// Error tells how many failed, and why one did.
func (e *ManyError[K]) Error() string {
	for key, err := range e.Errs {
		if len(e.Errs) == 1 {
			return fmt.Sprintf("cacheaside: key %v failed: %v", key, err)
		}
		return fmt.Sprintf("cacheaside: %d keys failed, such as %v: %v", len(e.Errs), key, err)
	}
	return "cacheaside: no key failed"
}

// Unwrap returns the errors of the keys.
func (e *ManyError[K]) Unwrap() []error {
	errs := make([]error, 0, len(e.Errs))
	for _, err := range e.Errs {
		errs = append(errs, err)
	}
	return errs
}

// flying is a pending key and the flight that brings it.
type flying[K comparable, V any] struct {
	pending[K, V]
	sight  sight[V]
	flight *flight.Flight[outcome[V]]
}

// GetMany returns the values of keys: those stored, read in one trip per server, and the others as loaded, by one call of a
// batch loader. A key that the origin does not have is not in the map, and that is no error. What is in the map is
// right also if there is an error, which is then a [*ManyError] that tells which keys failed.
func (c *Cache[K, V]) GetMany(ctx context.Context, keys []K) (map[K]V, error) {
	values, failed := make(map[K]V, len(keys)), make(map[K]error)
	keep := func(key K, e Entry[V], err error) {
		switch {
		case err == nil:
			values[key] = e.Value
		case !errors.Is(err, mayfly.ErrNotFound):
			failed[key] = err
		}
	}
	begun := time.Now()
	if c.near != nil {
		keys = c.notAtHand(ctx, keys, keep)
	}
	var waiting, lead []flying[K, V]
	for _, p := range c.lookMany(ctx, keys, failed) {
		if p.sight.standing == fresh || p.sight.standing == stale {
			e, err := c.serve(ctx, p.pending, p.sight, begun)
			keep(p.key, e, err)
			continue
		}
		var first bool
		if p.flight, first = c.flights.Join(p.full); first {
			lead = append(lead, p)
		} else {
			c.tell(ctx, mayfly.Event{Kind: mayfly.Join, Outcome: mayfly.OK, Key: p.full})
		}
		waiting = append(waiting, p)
	}
	if len(lead) > 0 && !c.works.Start(func() { c.flyMany(ctx, lead) }) {
		for _, p := range lead {
			p.flight.Land(outcome[V]{}, mayfly.ErrClosed)
		}
	}
	since := time.Now()
	for _, p := range waiting {
		e, err, again := c.await(ctx, p.flight, p.pending, p.sight, since)
		if again {
			e, err = c.get(ctx, p.key, c.one)
		} else if err == nil {
			c.tellRead(ctx, p.pending, p.sight, e.Source, begun)
		}
		keep(p.key, e, err)
	}
	if len(failed) > 0 {
		return values, &ManyError[K]{failed}
	}
	return values, nil
}

// notAtHand hands out what the local tier has of keys, and returns the others.
func (c *Cache[K, V]) notAtHand(ctx context.Context, keys []K, keep func(key K, e Entry[V], err error)) (others []K) {
	for _, key := range keys {
		v, negative, ok := c.hit(ctx, key, c.one)
		switch {
		case !ok:
			others = append(others, key)
		case !negative:
			keep(key, Entry[V]{Value: v}, nil)
		}
	}
	return others
}

// lookMany looks for each of keys once. Those that cannot be looked for go to failed.
func (c *Cache[K, V]) lookMany(ctx context.Context, keys []K, failed map[K]error) []flying[K, V] {
	ps := make([]flying[K, V], 0, len(keys))
	fulls := make([]string, 0, len(keys))
	seen := make(map[K]bool, len(keys))
	var asked []int
	var tickets []localsync.Ticket
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		full, err := c.begin(key)
		if err != nil {
			failed[key] = err
			continue
		}
		p := flying[K, V]{pending: pending[K, V]{key: key, full: full, load: c.one}}
		ticket := c.near.begin(full)
		if p.unguarded = c.doubts.Has(full); !p.unguarded {
			tickets = append(tickets, ticket)
			asked = append(asked, len(ps))
			fulls = append(fulls, full)
		}
		ps = append(ps, p)
	}
	if len(asked) == 0 {
		return ps
	}
	begun := time.Now()
	answers := c.guard.LookMany(ctx, fulls, c.askTTL)
	for n, a := range answers {
		p := &ps[asked[n]]
		p.spent = time.Since(begun)
		switch {
		case a.Err != nil && ctx.Err() != nil:
			failed[p.key] = ctx.Err() // says nothing of Redis, and nobody is here to load for
			continue
		case a.Err != nil:
			c.tellBackend(ctx, p.full, a.Err)
			p.unguarded = true
			continue
		}
		p.found = a.Found
		p.sight = c.judge(ctx, &p.pending, begun)
		c.near.insert(p.full, tickets[n], p.found, p.sight)
	}
	return slices.DeleteFunc(ps, func(p flying[K, V]) bool { return failed[p.key] != nil })
}

// atOnce is how many keys a loader of single keys is asked for at once, by one call about many.
const atOnce = 32

// flyMany brings many keys, as fly does one: those that are free are claimed together, loaded together and stored
// together. Nothing that was claimed waits for what somebody else loads, so that two calls about overlapping keys never
// wait for each other.
func (c *Cache[K, V]) flyMany(caller context.Context, ps []flying[K, V]) {
	ctx, cancel := c.works.On(caller)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	var free, alone []flying[K, V]
	for _, p := range ps {
		switch {
		case p.unguarded && c.many != nil:
			alone = append(alone, p)
		case p.unguarded || p.found.State == lease.Loading || p.found.State == lease.Held:
			group.Go(func() { c.fly(ctx, p.flight, p.pending) })
		default:
			free = append(free, p)
		}
	}
	for len(free) > 0 {
		some := free
		if c.many == nil {
			some = free[:min(atOnce, len(free))]
		}
		free = free[len(some):]
		claimed, claims, lost := c.claimMany(ctx, some, &group)
		alone = append(alone, lost...)
		if c.many != nil {
			c.loadGroup(ctx, claimed, claims)
			continue
		}
		var loads sync.WaitGroup
		for i, p := range claimed {
			loads.Go(func() { c.loadAndFill(ctx, p.flight, p.pending, claims[i]) })
		}
		loads.Wait()
	}
	switch {
	case len(alone) == 0:
	case c.many == nil:
		for _, p := range alone {
			group.Go(func() { c.fly(ctx, p.flight, p.pending) })
		}
	default:
		if err := c.enterUnguarded(ctx); err != nil {
			for _, p := range alone {
				p.flight.Land(outcome[V]{}, err)
			}
			return
		}
		defer func() { <-c.unguarded }()
		c.loadGroup(ctx, alone, nil)
	}
}

// claimMany claims what is free. What somebody else has claimed meanwhile goes its own way, in group; what could not be
// claimed is to be loaded without.
func (c *Cache[K, V]) claimMany(ctx context.Context, ps []flying[K, V], group *sync.WaitGroup) (claimed []flying[K, V], claims []*lease.Claim, lost []flying[K, V]) {
	begun := time.Now()
	answers := c.askMany(ctx, ps)
	spent := time.Since(begun)
	for i, a := range answers {
		p := ps[i]
		p.spent += spent
		switch {
		case a.Err != nil:
			c.unsure(ctx, p.full, a)
			p.unguarded = true
			lost = append(lost, p)
		case a.Claim != nil:
			claimed, claims = append(claimed, p), append(claims, a.Claim)
		case p.fallback && a.State == lease.Held:
			p.flight.Land(outcome[V]{}, errResting)
		case p.fallback:
			group.Go(func() { c.fly(ctx, p.flight, p.pending) })
		default:
			if p.found = a.Found; !c.landIfServable(ctx, p.flight, &p.pending) {
				group.Go(func() { c.fly(ctx, p.flight, p.pending) })
			}
		}
	}
	return claimed, claims, lost
}

// askMany asks for the rights to load ps, or to renew those that must stay meanwhile.
func (c *Cache[K, V]) askMany(ctx context.Context, ps []flying[K, V]) []lease.Claimed {
	type question struct {
		ask    func(context.Context, []string, []lease.Found) []lease.Claimed
		of     []int
		fulls  []string
		founds []lease.Found
	}
	load, renew := question{ask: c.guard.ClaimMany}, question{ask: c.guard.RenewMany}
	for i, p := range ps {
		q := &load
		if p.fallback {
			q = &renew
		}
		q.of, q.fulls, q.founds = append(q.of, i), append(q.fulls, p.full), append(q.founds, p.found)
	}
	answers := make([]lease.Claimed, len(ps))
	for _, q := range []question{load, renew} {
		for n, a := range q.ask(ctx, q.fulls, q.founds) {
			answers[q.of[n]] = a
		}
	}
	return answers
}

// loadGroup loads ps by one call of the batch loader and stores what is claimed.
func (c *Cache[K, V]) loadGroup(ctx context.Context, ps []flying[K, V], claims []*lease.Claim) {
	if len(ps) == 0 {
		return
	}
	keys := make([]K, len(ps))
	for i, p := range ps {
		keys[i] = p.key
	}
	var got struct { // by the loader, which may still run if it was given up
		values map[K]V
		err    error
	}
	cost, err := c.supervise(ctx, watch{abandoned: c.allAbandoned(ctx, ps), claims: claims}, func(ctx context.Context) error {
		got.values, got.err = c.many(ctx, keys)
		got.err = because(ctx, got.err)
		return nil
	})
	var found map[K]V
	part := err
	if err == nil {
		found, part = got.values, got.err
	}
	part, _ = c.notFound(part)
	c.tellLoad(ctx, "", len(ps), part, cost)
	loads := make([]loaded[V], len(ps))
	for i, key := range keys {
		v, ok := found[key]
		loads[i] = loaded[V]{Loaded: Loaded[V]{Value: v}, cost: cost}
		switch {
		case ok:
		case part != nil:
			loads[i].err = part
		default:
			loads[i].err = mayfly.ErrNotFound
		}
	}
	c.landGroup(ctx, ps, loads, claims)
}

// landGroup stores what was loaded and lands the flights, at the latest when RedisTimeout is spent.
func (c *Cache[K, V]) landGroup(ctx context.Context, ps []flying[K, V], loads []loaded[V], claims []*lease.Claim) {
	var once sync.Once
	land := func() {
		once.Do(func() {
			for i, p := range ps {
				p.flight.Land(outcome[V]{entry: Entry[V]{Value: loads[i].Value, Source: SourceOrigin}}, loads[i].err)
			}
		})
	}
	defer land()
	if claims == nil {
		return
	}
	patience := time.AfterFunc(max(c.opt.Faults.RedisTimeout-ps[0].spent, 0), land)
	defer patience.Stop()
	var fills []lease.Fill
	for i, p := range ps {
		value, ttl, err := c.toStore(p.pending, &loads[i], claims[i])
		switch {
		case err != nil:
			c.tell(ctx, mayfly.Event{Kind: mayfly.Fill, Outcome: mayfly.Failed, Key: p.full, Err: err})
			claims[i].Release(ctx)
		case value != nil:
			fills = append(fills, lease.Fill{Claim: claims[i], Value: value, TTL: ttl})
		case loads[i].err == nil || errors.Is(loads[i].err, mayfly.ErrNotFound):
			c.forgetValue(ctx, p.pending, claims[i])
		default:
			claims[i].Rest(ctx, c.opt.Stale.Throttle)
		}
	}
	begun := time.Now()
	for i, filled := range c.guard.FillMany(ctx, fills) {
		c.tellFill(ctx, fills[i].Claim.Key(), begun, len(fills[i].Value), filled.Stored, filled.Err)
		c.near.changed(ctx, fills[i].Claim.Key())
		if filled.Err != nil {
			fills[i].Claim.Release(ctx)
		}
	}
}

// allAbandoned is closed when every flight is.
func (c *Cache[K, V]) allAbandoned(ctx context.Context, ps []flying[K, V]) <-chan struct{} {
	if !c.opt.Load.Abandon {
		return nil
	}
	all := make(chan struct{})
	c.works.More()
	go func() {
		defer c.works.Done()
		for _, p := range ps {
			select {
			case <-p.flight.Abandoned():
			case <-ctx.Done():
				return
			}
		}
		close(all)
	}()
	return all
}
