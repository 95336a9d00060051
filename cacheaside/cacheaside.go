// Package cacheaside caches the answers of a slow origin, such as a database, in Redis. Get returns the stored value, or
// loads it, once for all callers in all processes, and stores it for the namespace's TTL.
//
//	cache, err := cacheaside.New(users, db.QueryUser, cacheaside.Options{})
//	...
//	u, err := cache.Get(ctx, 1001)
//	err = cache.Delete(ctx, 1001) // after the database commit
//
// With the zero Options it promises:
//
//   - One caller at a time loads a key, across all processes, and also when it is renewed (docs/overload.md lists the exceptions).
//     If a caller's context ends, the load goes on for the others and for the cache. If the loader panics, all waiters get an error,
//     and the key can be loaded again. A load that fails fails only its own waiters; those in other processes get
//     [mayfly.ErrFailedElsewhere].
//   - After Delete returned nil, no value loaded before is stored, and no call that begins later returns one, in any
//     process, except local copies until Redis announces the change. There are two exceptions, both bounded by the TTL: a
//     Redis failover that loses the deletion, and a loader that reads a lagging database replica ([Options.Hold] helps unless Redis evicts).
//     However often a key is deleted, a call waits for at most the load that runs in its own process and one more, and for loads of
//     other live processes [Options].LoadTimeout, and up to half a second until it knows that they are alive.
//   - A Set or Delete that returned nil leaves nothing behind that could still take effect. One that returned an error may
//     still take effect once, whenever the network delivers it: docs/redis-keys.md says what that can do.
//   - Readers of a busy key do not wait when it expires: it is renewed in the background before that ([Options.Early]).
//   - A Redis that is slow, full, read-only or gone costs a call at most [Options].RedisTimeout, and soon nothing, since it is
//     not asked again until a probe is answered. Meanwhile the loader answers. Get never returns a Redis error; Set, Delete, Clear and Lookup do.
//   - The origin never gets more loads at once than it can work on ([Options].LoadLimit), however many keys are missing, even when
//     Redis is empty or gone. The other loads wait, for at most LoadTimeout.
//   - Callers that outnumber the connections wait for one another. That does not count as a failure of Redis, and their reads travel together.
//
// An error of the loader is returned by Get, wrapped with the key. A loader returns [mayfly.ErrNotFound] for what the origin
// does not have; that is remembered for [Options.MissTTL].
//
// With a [mayfly.Local] in the namespace, values are also copied in this process, and a Get of one costs no trip to Redis;
// docs/coherence.md says how old it may be. The namespace's Observer receives a [mayfly.Event] for everything that happens.
// docs/caching.md is the guide.
package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/background"
	"github.com/mayflycache/mayfly/internal/client/events"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/keyspace"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localview"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/recently"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/client/redelete"
)

// Cache is a read-through cache of one namespace. It is safe for concurrent use. Close it to end its background work.
type Cache[K comparable, V any] struct {
	ns     keyspace.Room[K, V]
	opt    Options // with the defaults filled in
	format uint32  // of the codec, as records carry it
	askTTL bool    // whether a read needs to know the time left
	glance bool    // whether it may reckon it, and asks only if something is to be done because of it

	one      loader[K, V]
	many     batch[K, V] // nil: one loads keys one by one
	compares bool        // they are shown what they may compare with

	guard     *lease.Guard
	flights   flight.Group[outcome[V]]
	works     *background.Group
	origin    *mayfly.Origin  // admits loads
	overdue   overdue         // loads that were given up and go on
	renewing  chan struct{}   // holds one element per renewal that runs
	quiet     *recently.Keys  // renewals that others do, or that failed
	unremoved *redelete.Queue // whose removal failed
	local     *localview.View[K, held[V]]
	tell      events.Teller
	counts    *counts // by what is told
}

// New returns a cache whose loader loads one key. The key alone must determine the value, because all callers share it. The
// loader's context ends after [Options].LoadTimeout, or when the cache is closed. It carries the values of the first caller's
// context, but does not end with it.
func New[K comparable, V any](ns mayfly.Namespace[K, V], load func(ctx context.Context, key K) (V, error), o Options) (*Cache[K, V], error) {
	return build(ns, o, load == nil, false, func(ctx context.Context, key K, _ *Entry[V]) (Loaded[V], error) {
		v, err := load(ctx, key)
		return Loaded[V]{Value: v}, err
	})
}

// NewBatch returns a cache whose loader loads several keys at once. The loader gets missing keys that nobody else is loading, each
// once. A key that is not in the returned map does not exist in the origin. If the loader also returns an error, the values in the
// map are used and the other keys fail with that error.
func NewBatch[K comparable, V any](ns mayfly.Namespace[K, V], load func(ctx context.Context, keys []K) (map[K]V, error), o Options) (*Cache[K, V], error) {
	return buildBatch(ns, o, load == nil, false, func(ctx context.Context, keys []K, _ map[K]Entry[V]) (func(K) (Loaded[V], bool), error) {
		found, err := load(ctx, keys)
		return func(key K) (Loaded[V], bool) { v, ok := found[key]; return Loaded[V]{Value: v}, ok }, err
	})
}

// NewBatchEntry is NewBatch with a loader that decides for each value, like the loader of [NewEntry], how long it lives, whether it
// is kept, and whether the previous one is still right. previous holds the values that the loader can compare with.
func NewBatchEntry[K comparable, V any](ns mayfly.Namespace[K, V], load func(ctx context.Context, keys []K, previous map[K]Entry[V]) (map[K]Loaded[V], error), o Options) (*Cache[K, V], error) {
	return buildBatch(ns, o, load == nil, true, func(ctx context.Context, keys []K, previous map[K]Entry[V]) (func(K) (Loaded[V], bool), error) {
		found, err := load(ctx, keys, previous)
		return func(key K) (Loaded[V], bool) { answer, ok := found[key]; return answer, ok }, err
	})
}

// batch loads several keys and returns a function that finds their values.
type batch[K comparable, V any] func(ctx context.Context, keys []K, previous map[K]Entry[V]) (func(K) (Loaded[V], bool), error)

func buildBatch[K comparable, V any](ns mayfly.Namespace[K, V], o Options, noLoader, compares bool, many batch[K, V]) (*Cache[K, V], error) {
	c, err := build(ns, o, noLoader, compares, func(ctx context.Context, key K, previous *Entry[V]) (Loaded[V], error) {
		var shown map[K]Entry[V]
		if previous != nil {
			shown = map[K]Entry[V]{key: *previous}
		}
		found, err := many(ctx, []K{key}, shown)
		answer, ok := found(key)
		switch {
		case ok:
			return answer, nil
		case err == nil:
			err = mayfly.ErrNotFound
		}
		return Loaded[V]{}, err
	})
	if err != nil {
		return nil, err
	}
	c.many = many
	return c, nil
}

// NewEntry returns a cache whose loader decides for each value how long it lives and whether it is kept. The loader also sees the
// value that is being renewed, so it can ask the origin whether that has changed; previous is nil if there is nothing to compare
// with. GetMany calls the loader once per key, up to 32 at once; [NewBatchEntry] loads several keys with one call.
func NewEntry[K comparable, V any](ns mayfly.Namespace[K, V], load func(ctx context.Context, key K, previous *Entry[V]) (Loaded[V], error), o Options) (*Cache[K, V], error) {
	return build(ns, o, load == nil, true, load)
}

var errNoLoader = errors.New("the loader is nil: give it a function that asks the origin")

func build[K comparable, V any](ns mayfly.Namespace[K, V], o Options, noLoader, compares bool, one loader[K, V]) (*Cache[K, V], error) {
	room, wrong := keyspace.Of("cacheaside", ns)
	wrong.Wrap(o.validate(ns.Plain))
	wrong.Wrap(lease.CanGuard(ns.Redis, ns.Plain))
	if noLoader {
		wrong.Wrap(errNoLoader)
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	ns = room.Namespace
	o = o.withDefaults(ns.Plain)
	c := &Cache[K, V]{
		ns: room, opt: o, one: one, compares: compares,
		askTTL:   o.Early != earlyrefresh.Never || o.window() > 0 || ns.Local != nil,
		renewing: make(chan struct{}, o.RenewLimit),
	}
	if c.origin = o.Origin; c.origin == nil {
		var err error
		if c.origin, err = mayfly.NewOrigin(mayfly.OriginOptions{Limit: o.LoadLimit, Timeout: o.LoadTimeout}); err != nil {
			return nil, fmt.Errorf("cacheaside: %w", err)
		}
	}
	c.glance = c.askTTL && o.window() == 0 && ns.Local == nil && !ns.Plain
	c.format = record.FormatOf(room.Codec.Format())
	c.flights.Abandon = o.LoadAbandon
	c.works = background.New(mayfly.ErrClosed)
	c.works.Grace = handBack
	c.quiet = recently.New(256)
	c.counts = new(counts)
	c.tell = c.counts.counted(events.To(ns.Observer, ns.Name))
	c.unremoved = redelete.New(redelete.Options{Limit: o.Unremoved, Works: c.works, Again: c.deleteAgain, Dropped: c.tell.Dropped})
	lo := lease.Options{Redis: ns.Redis, Timeout: o.RedisTimeout, Plain: ns.Plain, Hold: o.Hold, Breaker: c.tell.Breaker, Start: c.works.Start, Closing: c.works.Closing(),
		Wait: o.LoadTimeout, Waited: c.tell.Waited}
	if c.local = localview.Of[held[V]](ns, nil); c.local != nil {
		lo.Pushes, lo.Moved = c.local.Watch, c.local.Moved
	}
	c.guard = lease.New(lo)
	c.tell.Warnings(nodes.Warnings(ns.Redis, o.RedisTimeout))
	return c, nil
}

// handBack is how long Close waits while leases are handed back.
const handBack = 250 * time.Millisecond

// Close ends the cache's background work. It waits for running loads and renewals, cancels them when ctx ends, and then returns
// ctx's error. Cancelled loads hand their leases back, so that other processes can load at once. That takes a round trip, or at most a
// quarter of a second if Redis does not answer or a loader ignores its context. Later calls, and calls whose load was cancelled,
// get [mayfly.ErrClosed]. Close tries failed Deletes once more; if they fail again, the error says how many. Closing again is fine.
// The Redis client belongs to the caller and stays open.
func (c *Cache[K, V]) Close(ctx context.Context) error {
	err := c.works.Close(ctx)
	c.local.Clear()
	if err != nil {
		return fmt.Errorf("cacheaside: close: %w", err)
	}
	if n := c.unremoved.Len(); n > 0 {
		return fmt.Errorf("cacheaside: close: %d removals that had failed were not done, and are forgotten: other processes may serve those values until they expire", n)
	}
	return nil
}
