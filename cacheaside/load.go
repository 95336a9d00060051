package cacheaside

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// pending is one key on its way from a miss to a value.
type pending[K comparable, V any] struct {
	key   K
	full  string
	load  loader[K, V]
	found lease.Found // what the key held

	known    bool     // entry is what was found
	entry    Entry[V] // for the loader to compare with, and
	fallback bool     // to be served if the load fails

	unseen bool      // nothing was found: what is to be renewed is a local copy,
	fill   record.ID // of this fill

	ends      time.Time     // when what was found will be gone from Redis; zero if that is not known
	unguarded bool          // Redis cannot be asked: load, and do not store
	spent     time.Duration // of RedisTimeout
}

// previous is what the loader is shown.
func (p pending[K, V]) previous() *Entry[V] {
	if !p.known {
		return nil
	}
	return &p.entry
}

// outcome is what a flight brings beside its error.
type outcome[V any] struct {
	entry Entry[V]
	again bool // nothing: somebody else's value is there by now, or will be
}

// errResting says that a renewal failed lately, and that nobody tries again yet.
var errResting = errors.New("the load failed lately in another process")

// errBusy says that too many loads run without Redis to shield the origin.
var errBusy = errors.New("redis cannot be asked, and too many loads run already")

// fly brings one key's value and lands the flight with it. It is the whole protocol, once per key and process:
//
//	loading elsewhere   wait for it; if its holder dies the key is free within lease.TTL
//	absent, unusable    claim it; whoever was faster has the value, or loads it
//	stale               claim its renewal, as the stale value must stay
//	claimed             load, with a heart beat; fill
//	held, unguarded     load, and do not store
//
// Someone who deletes the key meanwhile takes the claim away, and the flight out of the group: the value goes to who
// waited already, and to nobody else.
func (c *Cache[K, V]) fly(caller context.Context, f *flight.Flight[outcome[V]], p pending[K, V]) {
	ctx, cancel := c.works.On(caller)
	defer cancel()
	wait, cancel := context.WithTimeoutCause(ctx, c.opt.Load.Timeout, ErrLoadTimeout)
	defer cancel()
	for {
		switch {
		case p.unguarded || p.found.State == lease.Held:
			c.loadAlone(ctx, f, p)
			return
		case p.found.State == lease.Loading:
			if !c.waitFor(wait, f, &p, func(now lease.Found) bool {
				return now.State != lease.Loading && !(now.Leased && c.see(now).standing == unusable)
			}) {
				return
			}
		default:
			claim, done := c.claim(ctx, wait, f, &p)
			if done {
				return
			}
			if claim != nil {
				c.loadAndFill(ctx, f, p, claim)
				return
			}
		}
	}
}

// claim asks for the right to load p. Without a claim p says what there is now, or done that the flight has landed.
func (c *Cache[K, V]) claim(ctx, wait context.Context, f *flight.Flight[outcome[V]], p *pending[K, V]) (claim *lease.Claim, done bool) {
	begun := time.Now()
	var a lease.Claimed
	if p.fallback {
		a = c.guard.Renew(ctx, p.full, p.found)
	} else {
		a = c.guard.Claim(ctx, p.full, p.found)
	}
	p.spent += time.Since(begun)
	switch {
	case a.Err != nil:
		c.unsure(ctx, p.full, a)
		p.unguarded = true
		return nil, false
	case a.Claim != nil:
		return a.Claim, false
	case p.fallback && a.State == lease.Held:
		f.Land(outcome[V]{}, errResting)
		return nil, true
	case p.fallback:
		return nil, !c.waitForRenewal(wait, f, p)
	}
	p.found = a.Found
	return nil, c.landIfServable(ctx, f, p)
}

// unsure tells of a claim whose outcome is unknown, and gives it up behind the callers' backs.
func (c *Cache[K, V]) unsure(ctx context.Context, key string, a lease.Claimed) {
	c.tellBackend(ctx, key, a.Err)
	if a.Claim != nil {
		c.works.More()
		go func() {
			defer c.works.Done()
			ctx, cancel := c.works.On(ctx)
			defer cancel()
			a.Claim.Release(ctx) // nothing is lost if this fails too: the lease ends by itself
		}()
	}
}

// waitFor waits until something else is there than what another process is about to replace. It reports false if the
// flight landed.
func (c *Cache[K, V]) waitFor(ctx context.Context, f *flight.Flight[outcome[V]], p *pending[K, V], until func(lease.Found) bool) bool {
	begun := time.Now()
	found, err := c.guard.Await(ctx, p.full, c.askTTL, until)
	e := mayfly.Event{Kind: mayfly.Wait, Outcome: mayfly.OK, Key: p.full, Took: time.Since(begun)}
	if err == nil {
		c.tell(ctx, e)
		p.found = found
		return !c.landIfServable(ctx, f, p)
	}
	if cause := context.Cause(ctx); cause != nil {
		e.Outcome, e.Err = mayfly.TimedOut, cause
		c.tell(ctx, e)
		if errors.Is(cause, mayfly.ErrClosed) {
			f.Land(outcome[V]{}, cause)
			return false
		}
		p.unguarded = true // who loads it takes longer than a load may take: so do we
		return true
	}
	c.tellBackend(ctx, p.full, err)
	p.unguarded = true
	return true
}

// waitForRenewal waits for the renewal that another process has claimed, and comes back every while to see whether that
// one still lives. It returns as waitFor does.
func (c *Cache[K, V]) waitForRenewal(ctx context.Context, f *flight.Flight[outcome[V]], p *pending[K, V]) bool {
	seen := string(p.found.Raw)
	while, cancel := context.WithTimeout(ctx, lease.TTL)
	defer cancel()
	found, err := c.guard.Await(while, p.full, c.askTTL, func(now lease.Found) bool {
		return now.State != lease.Present || string(now.Raw) != seen
	})
	switch {
	case err == nil:
		p.found = found
		return !c.landIfServable(ctx, f, p)
	case ctx.Err() != nil:
		f.Land(outcome[V]{}, context.Cause(ctx))
		return false
	case while.Err() == nil:
		c.tellBackend(ctx, p.full, err)
		p.unguarded = true
	}
	return true
}

// landIfServable lands the flight if what was found meanwhile is good.
func (c *Cache[K, V]) landIfServable(ctx context.Context, f *flight.Flight[outcome[V]], p *pending[K, V]) bool {
	s := c.judge(ctx, p, time.Now())
	switch {
	case s.negative:
		f.Land(outcome[V]{}, mayfly.ErrNotFound)
	case s.standing == fresh || s.standing == stale:
		f.Land(outcome[V]{entry: s.entry}, nil)
	default:
		return false
	}
	return true
}

// loadAlone loads what cannot be stored. Where that is so because Redis is gone, the number of such loads is bounded.
func (c *Cache[K, V]) loadAlone(ctx context.Context, f *flight.Flight[outcome[V]], p pending[K, V]) {
	if p.unguarded {
		if err := c.enterUnguarded(ctx); err != nil {
			f.Land(outcome[V]{}, err)
			return
		}
		defer func() { <-c.unguarded }()
	}
	l := c.runLoad(ctx, f, p, nil)
	if l.err == nil && l.NotModified {
		l.Value = p.entry.Value
	}
	f.Land(outcome[V]{entry: Entry[V]{Value: l.Value, Source: SourceOrigin}}, l.err)
}

// enterUnguarded waits for a turn among the loads that run without Redis.
func (c *Cache[K, V]) enterUnguarded(ctx context.Context) error {
	select {
	case c.unguarded <- struct{}{}:
		return nil
	default:
	}
	turn := time.NewTimer(c.opt.Load.Timeout)
	defer turn.Stop()
	select {
	case c.unguarded <- struct{}{}:
		return nil
	case <-turn.C:
		c.tell(ctx, mayfly.Event{Kind: mayfly.Load, Outcome: mayfly.Dropped, Err: errBusy})
		return errBusy
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// loaded is a load that has ended.
type loaded[V any] struct {
	Loaded[V]
	err  error
	cost time.Duration
}

// loadAndFill loads under a claim, stores, and lands. A Redis that is slow to store does not keep callers waiting beyond
// RedisTimeout in all.
func (c *Cache[K, V]) loadAndFill(ctx context.Context, f *flight.Flight[outcome[V]], p pending[K, V], claim *lease.Claim) loaded[V] {
	l := c.runLoad(ctx, f, p, []*lease.Claim{claim})
	value, ttl, err := c.toStore(p, &l, claim)
	out := outcome[V]{entry: Entry[V]{Value: l.Value, Source: SourceOrigin}}
	var once sync.Once
	land := func() { once.Do(func() { f.Land(out, l.err) }) }
	defer land()
	patience := time.AfterFunc(max(c.opt.Faults.RedisTimeout-p.spent, 0), land)
	defer patience.Stop()
	switch {
	case err != nil:
		c.tell(ctx, mayfly.Event{Kind: mayfly.Fill, Outcome: mayfly.Failed, Key: p.full, Err: err})
		claim.Release(ctx)
	case value != nil:
		begun := time.Now()
		stored, err := claim.Fill(ctx, value, ttl)
		c.near.changed(ctx, p.full)
		c.tellFill(ctx, p.full, begun, len(value), stored, err)
		if err != nil { // whatever became of it, nobody is to wait for our lease
			claim.Release(ctx)
		}
	case l.err == nil || errors.Is(l.err, mayfly.ErrNotFound):
		c.forgetValue(ctx, p, claim)
	default:
		claim.Rest(ctx, c.opt.Stale.Throttle)
	}
	return l
}

// forgetValue ends a claim for a value that is not, or must not be, kept.
func (c *Cache[K, V]) forgetValue(ctx context.Context, p pending[K, V], claim *lease.Claim) {
	if !p.known {
		claim.Release(ctx)
		return
	}
	c.near.forget(p.full)
	err := c.guard.Delete(ctx, []string{p.full})[0]
	c.near.changed(ctx, p.full)
	if err != nil { // the origin no longer has it: nor have we
		c.doubt(ctx, err, p.full)
	}
}

// toStore says what to store of a load, for how long; nil is nothing.
func (c *Cache[K, V]) toStore(p pending[K, V], l *loaded[V], claim *lease.Claim) (value []byte, ttl time.Duration, err error) {
	if l.err != nil {
		if errors.Is(l.err, mayfly.ErrNotFound) && c.opt.MissTTL > 0 {
			share := c.ns.Jitter
			share.Floor, share.Ceiling = 0, 0 // which are about values
			return c.encodeMiss(claim.ID(), l.cost), share.TTL(c.opt.MissTTL), nil
		}
		return nil, 0, nil
	}
	if l.NotModified {
		l.Value = p.entry.Value
	}
	if l.NoStore {
		return nil, 0, nil
	}
	if ttl = l.TTL; ttl == 0 {
		ttl = c.ns.Jitter.TTL(c.ns.TTL)
	}
	value, err = c.encode(l.Value, claim.ID(), ttl, l.cost)
	return value, ttl + c.opt.Stale.window(), err
}

func (c *Cache[K, V]) tellFill(ctx context.Context, key string, begun time.Time, n int, stored bool, err error) {
	e := mayfly.Event{Kind: mayfly.Fill, Outcome: mayfly.OK, Key: key, Took: time.Since(begun), N: n, Err: err}
	switch {
	case err != nil:
		e.Outcome = mayfly.Failed
	case !stored:
		e.Outcome = mayfly.Refused
	}
	c.tell(ctx, e)
}

// runLoad runs the loader of one key.
func (c *Cache[K, V]) runLoad(ctx context.Context, f *flight.Flight[outcome[V]], p pending[K, V], claims []*lease.Claim) loaded[V] {
	var got Loaded[V]
	cost, err := c.supervise(ctx, watch{f.Abandoned(), claims, p.ends}, func(ctx context.Context) (err error) {
		l, err := p.load(ctx, p.key, p.previous())
		if err == nil {
			got = l
		}
		return err
	})
	l := loaded[V]{err: err, cost: cost}
	if err == nil {
		l.Loaded = got
		l.err = c.check(p, got)
	}
	l.err, _ = c.notFound(l.err)
	c.tellLoad(ctx, p.full, 1, l.err, cost)
	return l
}

// check refuses what no loader may answer.
func (c *Cache[K, V]) check(p pending[K, V], l Loaded[V]) error {
	if l.NotModified && !p.known {
		return errors.New("the loader answered NotModified, and there was no previous value")
	}
	if l.TTL != 0 {
		return mayfly.CheckTTL("Loaded.TTL", l.TTL)
	}
	return nil
}

func (c *Cache[K, V]) tellLoad(ctx context.Context, key string, n int, err error, cost time.Duration) {
	e := mayfly.Event{Kind: mayfly.Load, Outcome: mayfly.OK, Key: key, N: n, Took: cost}
	switch {
	case errors.Is(err, mayfly.ErrNotFound):
		e.Outcome = mayfly.Negative
	case errors.Is(err, ErrLoadTimeout):
		e.Outcome, e.Err = mayfly.TimedOut, err
	case err != nil:
		e.Outcome, e.Err = mayfly.Failed, err
	}
	c.tell(ctx, e)
}
