// Package httpcache decorates an [http.Handler] with a shared cache that keeps to RFC 9111: responses are kept in Redis, for
// all processes, for as long as they say, and copied into this process where a local tier is given.
//
//	cache, err := httpcache.NewCache(httpcache.Options{
//		Namespace: mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: "http:", TTL: 24 * time.Hour},
//	})
//	...
//	http.ListenAndServe(":8080", cache.Handler(site))
//	...
//	err = cache.Purge(ctx, httpcache.Tag("product-7"))
//
// What it promises:
//
//   - Nothing is stored that does not say so: by its freshness, a validator, or [Options.Override]. What sets a cookie, is
//     private, or answers a request with Authorization (unless it says that it is for all) is never stored.
//   - Requests that miss together, in any process, are one to the handler; those who share it never wait for what turns out not
//     to be for them. With stale-while-revalidate nobody waits.
//   - A client gets a response while the handler writes it. One that is slow or leaves neither holds up nor ends what others
//     wait for. What was cut short is never stored.
//   - After Purge returned nil, nothing that was loaded before is served by any process that can hear Redis, and nothing
//     stored.
//   - Redis holds a copy. One that is slow or gone costs a request at most [Faults].RedisTimeout, and soon nothing.
//
// What it did is told to clients in Cache-Status (RFC 9211), and to the namespace's Observer. docs/http.md has the rest.
package httpcache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/background"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/redelete"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// Cache is a shared cache of responses. It is safe for concurrent use. Close it to end its background work.
type Cache struct {
	opt    Options // with the defaults filled in
	ns     mayfly.Namespace[string, []byte]
	rules  rfc9111.Rules
	keys   rfc9111.Keys
	routes routes
	prefix string // of the keys in Redis

	guard      *lease.Guard
	near       *near // nil: no local tier
	flights    flight.Group[outcome]
	works      *background.Group
	renewing   chan struct{} // holds one element per renewal that runs
	epochs     epochs
	doubts     *redelete.Doubts
	quiet      recent // renewals that others do, or that failed
	passes     recent // variants whose answers were not for others
	floods     floods
	selections selections
	stats      *counters // by itself: who counts local hits keeps nothing else of a closed cache
}

// New returns a decorator of handlers, for programs that neither purge nor close: see [NewCache].
func New(o Options) (func(http.Handler) http.Handler, error) {
	c, err := NewCache(o)
	if err != nil {
		return nil, err
	}
	return c.Handler, nil
}

// NewCache returns a cache. It does no I/O.
func NewCache(o Options) (*Cache, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("httpcache: %w", err)
	}
	c := &Cache{
		opt: o, ns: o.Namespace, keys: rfc9111.Keys(o.Key), prefix: o.Namespace.Prefix,
		rules: rfc9111.Rules{
			Targeted: o.Targeted, NoHeuristic: o.NoHeuristic, StoreSetCookie: o.StoreSetCookie,
			Validate: max(o.Stale.Keep, 0), StaleIfError: max(o.Stale.IfError, 0),
		},
		renewing: make(chan struct{}, o.Shared.Renewals), stats: new(counters),
	}
	c.routes, _ = newRoutes(o.Override) // its error was one of validate's
	c.works = background.New(mayfly.ErrClosed)
	c.doubts = redelete.New(redelete.Options{Limit: o.Faults.Queue, Works: c.works, Again: c.purgeAgain, Dropped: c.tellDropped})
	lo := lease.Options{Redis: c.ns.Redis, Timeout: o.Faults.RedisTimeout, Breaker: c.breakerChanged}
	if c.near = newNear(c.ns, c.stats.local.Load); c.near != nil {
		lo.Pushes, lo.Moved = c.near.tier.Watch, c.near.tier.Moved
	}
	c.guard = lease.New(lo)
	for _, w := range lease.Warnings(c.ns.Redis) {
		c.tell(c.works.Context(), mayfly.Event{Kind: mayfly.Warning, Outcome: mayfly.OK, Err: errors.New(w)})
	}
	return c, nil
}

// Handler returns next behind the cache. Several handlers may share a cache, where their hosts and paths differ.
func (c *Cache) Handler(next http.Handler) http.Handler { return &handler{c, next} }

// Close waits for what runs in the background, cancels it when ctx ends, and then returns its error. Requests that come
// later go to their handlers. Closing again is fine. The Redis client stays open: it is the caller's.
func (c *Cache) Close(ctx context.Context) error {
	err := c.works.Close(ctx)
	if c.near != nil {
		c.near.view.Clear()
	}
	if err != nil {
		return fmt.Errorf("httpcache: close: %w", err)
	}
	return nil
}

func (c *Cache) breakerChanged(server string, open bool) {
	e := mayfly.Event{Kind: mayfly.Breaker, Outcome: mayfly.OK}
	if open {
		e.Outcome, e.Err = mayfly.Failed, fmt.Errorf("%s is not asked for a while", server)
	}
	c.tell(c.works.Context(), e)
}

// tell hands e to the observer, if there is one.
func (c *Cache) tell(ctx context.Context, e mayfly.Event) {
	if c.ns.Observer != nil {
		e.Namespace = c.ns.Name
		c.ns.Observer.Observe(ctx, e)
	}
}

// tellDone tells what has taken until now, and whether e's Err made it fail, unless e has another outcome.
func (c *Cache) tellDone(ctx context.Context, e mayfly.Event, begun time.Time) {
	if e.Outcome == "" && e.Err != nil {
		e.Outcome = mayfly.Failed
	}
	e.Took, e.Outcome = time.Since(begun), cmp.Or(e.Outcome, mayfly.OK)
	c.tell(ctx, e)
}

// tellBackend tells that Redis could not be asked, or not as it should be.
func (c *Cache) tellBackend(ctx context.Context, key string, err error) {
	e := mayfly.Event{Kind: mayfly.Backend, Outcome: mayfly.Failed, Key: key, Err: err}
	if errors.Is(err, lease.ErrSlow) {
		e.Outcome = mayfly.TimedOut
	}
	c.tell(ctx, e)
}
