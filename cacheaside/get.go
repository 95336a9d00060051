package cacheaside

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/localview"
)

// Get returns the stored value of key, or else loads and stores it. It returns when ctx ends; the load goes on. The error is
// the loader's, [mayfly.ErrNotFound], or ctx's, never Redis's.
func (c *Cache[K, V]) Get(ctx context.Context, key K) (V, error) {
	return c.find(ctx, key, c.one)
}

// Fetch is Get with a loader for this call. The key alone must still determine the value: all callers that ask for a key at the
// same time, in any process, get what the first caller's loader returned.
func (c *Cache[K, V]) Fetch(ctx context.Context, key K, load func(ctx context.Context) (V, error)) (V, error) {
	if load == nil {
		return *new(V), c.ns.Fail("fetch", c.ns.Name, errNoLoader)
	}
	return c.find(ctx, key, func(ctx context.Context, _ K, _ *Entry[V]) (Loaded[V], error) {
		v, err := load(ctx)
		return Loaded[V]{Value: v}, err
	})
}

// find returns the local copy of key's value, or what Redis has, or what load loads.
func (c *Cache[K, V]) find(ctx context.Context, key K, load loader[K, V]) (V, error) {
	if c.local != nil {
		switch v, negative, ok := c.hit(ctx, key, load); {
		case negative:
			full, _ := c.ns.FullKey(key)
			return v, c.ns.Fail("get", full, mayfly.ErrNotFound)
		case ok:
			return v, nil
		}
	}
	e, err := c.get(ctx, key, load)
	return e.Value, err
}

// Lookup returns what is stored under key, with its age and TTL, and neither loads nor renews it. ok is false if nothing usable
// is stored. The error is [mayfly.ErrNotFound] for a remembered miss; any other says that Redis could not be asked.
func (c *Cache[K, V]) Lookup(ctx context.Context, key K) (e Entry[V], ok bool, err error) {
	full, err := c.begin(key)
	if err != nil {
		return e, false, err
	}
	if c.local != nil {
		switch h, now := c.atHand(key); {
		case h == nil:
		case h.negative:
			return e, false, c.ns.Fail("lookup", full, mayfly.ErrNotFound)
		default:
			e = h.entry(now)
			e.Value = localview.Cloned(c.ns.Clone, e.Value)
			return e, true, nil
		}
	}
	if c.unremoved.Has(full) {
		return e, false, nil
	}
	f, err := c.guard.Look(ctx, full, true)
	if err != nil {
		return e, false, c.ns.Fail("lookup", full, err)
	}
	s := c.see(f, 0, false)
	if s.negative {
		return e, false, c.ns.Fail("lookup", full, mayfly.ErrNotFound)
	}
	return s.entry, s.standing != unusable, nil
}

// begin does the checks that every call needs.
func (c *Cache[K, V]) begin(key K) (full string, err error) {
	if err := c.works.Err(); err != nil {
		return "", c.ns.Fail("cache", c.ns.Name, err)
	}
	if full, err = c.ns.FullKey(key); err != nil {
		return "", c.ns.Fail("key in namespace", c.ns.Name, err)
	}
	return full, nil
}

// loader is how one key is loaded.
type loader[K comparable, V any] func(ctx context.Context, key K, previous *Entry[V]) (Loaded[V], error)

func (c *Cache[K, V]) get(ctx context.Context, key K, load loader[K, V]) (Entry[V], error) {
	begun, began := time.Now(), c.flights.Now()
	full, err := c.begin(key)
	if err != nil {
		c.tellFailed(ctx, full, begun, err)
		return Entry[V]{}, err
	}
	for {
		l, err := c.look(ctx, key, full)
		if err != nil {
			c.tellFailed(ctx, full, begun, err)
			return Entry[V]{}, c.ns.Fail("get", full, err)
		}
		l.loader, l.began = load, began
		if l.seen.servable() {
			return c.serve(ctx, l, begun)
		}
		e, err, again := l.await(ctx, c.join(ctx, l), time.Now())
		if again {
			continue
		}
		l.tellEnd(ctx, e.Outcome, begun, err)
		if err != nil { // without boxing the key
			err = c.ns.Fail("get", full, err)
		}
		return e, err
	}
}

// join returns the flight of l's key, and begins one if there is none.
func (c *Cache[K, V]) join(ctx context.Context, l loading[K, V]) *flight.Flight[outcome[V]] {
	if c.lead(ctx, &l, 1) && !c.works.Start(func() { l.fly(ctx) }) {
		l.fail(mayfly.ErrClosed)
	}
	return l.flight
}

// lead joins l, one of that many keys that a call waits for, to the flight of its key, and reports whether l leads it.
func (c *Cache[K, V]) lead(ctx context.Context, l *loading[K, V], of int) (lead bool) {
	under := l.full
	if l.apart {
		under = apart(l.full)
	}
	l.flight, lead = c.flights.Join(under, l.began)
	until, _ := ctx.Deadline()
	l.flight.Wanted(until, !lead && admission.Of(c.origin).Inside(ctx))
	if !lead {
		l.flight.Among(of)
		c.tell(ctx, mayfly.Event{Kind: mayfly.KindJoin, Outcome: mayfly.OutcomeOK, Key: l.full})
	}
	return lead
}

// apart names the flights of calls that began after a removal of the key had failed. No key begins as it does.
func apart(full string) string { return string([]byte{^full[0]}) + full }

// look reads Redis. It returns what a load needs to know, and what can be served without a load. Its only error is ctx's: if Redis
// does not answer, the caller goes on without it.
func (c *Cache[K, V]) look(ctx context.Context, key K, full string) (l loading[K, V], err error) {
	l = loading[K, V]{c: c, key: key, full: full}
	ticket := c.local.Begin(full) // before the unremoved: what is added to them from now on cannot be inserted
	if c.unremoved.Has(full) {
		l.alone, l.apart = true, true
		return l, nil
	}
	begun := time.Now()
	l.draw = rand.Float64()
	if c.glance {
		l.found, err = c.guard.Glance(ctx, full)
	} else {
		l.found, err = c.guard.Look(ctx, full, c.askTTL)
	}
	if err == nil && c.doubts(l.found, l.draw) {
		l.found, err = c.ascertain(ctx, full, l.found)
	}
	l.spent = l.found.Spent
	if err != nil {
		if ctx.Err() != nil {
			return l, ctx.Err()
		}
		c.tell.Backend(ctx, full, err)
		l.alone = true
	} else {
		l.judge(ctx, begun)
		c.keepCopy(full, ticket, l.found, &l.seen)
	}
	return l, nil
}

// serve returns what was found, and starts a renewal if one is due.
func (c *Cache[K, V]) serve(ctx context.Context, l loading[K, V], begun time.Time) (Entry[V], error) {
	if l.seen.due || l.seen.standing == stale {
		c.renew(ctx, l)
	}
	if l.seen.negative {
		c.tell(ctx, mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeNegative, Key: l.full, Took: time.Since(begun)})
		return Entry[V]{}, c.ns.Fail("get", l.full, mayfly.ErrNotFound)
	}
	l.tellRead(ctx, l.seen.entry.Outcome, begun)
	return l.seen.entry, nil
}

// await waits for a flight. If there is a stale value to fall back on, it waits no longer than LoadSoftTimeout after since. again is
// true if the flight brought nothing and the caller must look again.
func (l *loading[K, V]) await(ctx context.Context, f *flight.Flight[outcome[V]], since time.Time) (e Entry[V], err error, again bool) {
	patient, cancel := ctx, context.CancelFunc(func() {})
	if l.fallback() && l.c.opt.LoadSoftTimeout > 0 {
		patient, cancel = context.WithDeadline(ctx, since.Add(l.c.opt.LoadSoftTimeout))
	}
	defer cancel()
	out, again, err := f.Wait(patient, l.began)
	switch {
	case again || err == nil && out.again:
		return e, nil, true
	case err == nil && f.Shared():
		out.entry.Value = localview.Cloned(l.c.ns.Clone, out.entry.Value)
		return out.entry, nil, false
	case err == nil:
		return out.entry, nil, false
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return e, ctx.Err(), false
	case l.fallback() && !errors.Is(err, mayfly.ErrNotFound) && !errors.Is(err, mayfly.ErrClosed):
		return l.seen.entry, nil, false
	}
	return e, err, false
}

// tellEnd reports and counts a read that has waited for a load.
func (l *loading[K, V]) tellEnd(ctx context.Context, how mayfly.Outcome, begun time.Time, err error) {
	switch {
	case err == nil:
		l.tellRead(ctx, how, begun)
	case errors.Is(err, mayfly.ErrNotFound):
		l.c.tell(ctx, mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeMiss, Key: l.full, Took: time.Since(begun)})
	default:
		l.c.tellFailed(ctx, l.full, begun, err)
	}
}

// tellFailed reports and counts a read that failed.
func (c *Cache[K, V]) tellFailed(ctx context.Context, full string, begun time.Time, err error) {
	c.tell(ctx, mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeFailed, Key: full, Took: time.Since(begun), Err: err})
}

// tellRead reports and counts a successful read.
func (l *loading[K, V]) tellRead(ctx context.Context, how mayfly.Outcome, begun time.Time) {
	if how != mayfly.OutcomeStale && how != mayfly.OutcomeHitRedis {
		how = mayfly.OutcomeMiss
		if l.alone {
			how = mayfly.OutcomeBypass
		}
	}
	if l.c.ns.Observer == nil { // without asking the clock
		l.c.counts.read(how)
		return
	}
	l.c.tell(ctx, mayfly.Event{Kind: mayfly.KindRead, Outcome: how, Key: l.full, Took: time.Since(begun)})
}
