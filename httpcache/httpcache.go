// Package httpcache decorates an [http.Handler] with a shared cache that keeps to RFC 9111: responses are kept in Redis, for
// all processes, for as long as they say, and copied into this process where a local tier is given.
//
//	pages := mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: "http:", TTL: 24 * time.Hour}
//	cache, err := httpcache.New(pages, httpcache.Options{})
//	...
//	http.ListenAndServe(":8080", cache.Handler(site))
//	...
//	err = cache.Purge(ctx, httpcache.Target{Tag: "product-7"})
//
// What it promises:
//
//   - Nothing is stored that does not say so: by its freshness, a validator, or [Options.Override]. What sets a cookie, is
//     private, or answers a request with Authorization (unless it says that it is for all) is never stored.
//   - Requests that miss together, in any process, are one to the handler; those who share it never wait for what turns out not
//     to be for them. With stale-while-revalidate nobody waits.
//   - Handlers are asked for no more at once than they can work on ([Load].Limit), however much is missing. What is for one client only does
//     not queue.
//   - A client gets a response while the handler writes it. One that is slow or leaves neither holds up nor ends what others
//     wait for. What was cut short is never stored.
//   - After Purge returned nil, nothing that the handler was asked for before is stored, nor served to a request that comes later,
//     by any process that can hear Redis.
//   - Redis holds a copy. One that is slow or gone costs a request at most [Options].RedisTimeout, and soon nothing.
//
// What it did is told to clients in Cache-Status (RFC 9211), and to the namespace's Observer. docs/http.md has the rest.
package httpcache

import (
	"context"
	"fmt"
	"net/http"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/background"
	"github.com/mayflycache/mayfly/internal/client/events"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/keyform"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localview"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/recently"
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
	origin     *mayfly.Origin // admits requests that ask the handler
	audiences  *audiences
	local      *localview.View[string, item]
	flights    flight.Group[outcome]
	works      *background.Group
	beats      beats
	renewing   chan struct{} // holds one element per renewal that runs
	epochs     epochs
	unremoved  *redelete.Queue
	quiet      *recently.Keys // renewals that others do, or that failed
	passes     *recently.Keys // slots whose answers were not for others, where Redis does not say so
	crowded    *recently.Keys // resources that lately had no room to be read
	bodies     bodies
	reports    reports
	left       *recently.Keys // how many variants of a resource left lately
	selections selections
	tell       events.Teller
	stats      *counters // by itself: who counts local hits keeps nothing else of a closed cache
}

// New returns a cache of responses, whose method [Cache.Handler] is the middleware. It does no I/O.
//
// ns says where responses are kept; its TTL bounds for how long, whatever a response says of itself. Local and Observer are used if set. Key,
// Codec, Clone, Cost, Plain and Jitter have no meaning here and must be zero, and so must MaxTTL: what it would bound, TTL does.
func New(ns mayfly.Namespace[string, []byte], o Options) (*Cache, error) {
	o = o.withDefaults()
	if err := o.validate(ns); err != nil {
		return nil, fmt.Errorf("httpcache: %w", err)
	}
	ns.Name, ns.Prefix = keyform.Names(ns.Name, ns.Prefix)
	c := &Cache{
		opt: o, ns: ns, keys: o.rules(), prefix: ns.Prefix,
		rules: rfc9111.Rules{
			Targeted: o.Targeted, NoHeuristic: o.NoHeuristic, StoreSetCookie: o.StoreSetCookie,
			Validate: max(o.Stale.Keep, 0), StaleIfError: max(o.Stale.IfError, 0),
		},
		renewing: make(chan struct{}, o.Shared.Renewals), stats: new(counters), tell: events.To(ns.Observer, ns.Name),
		quiet: recently.New(1024), passes: recently.New(1024), left: recently.New(256), crowded: recently.New(1024),
		bodies: bodies{most: o.MaxInFlight}, audiences: newAudiences(),
	}
	if c.origin = o.Load.Origin; c.origin == nil {
		var err error
		if c.origin, err = mayfly.NewOrigin(mayfly.OriginOptions{Limit: o.Load.Limit, Timeout: o.Load.Timeout}); err != nil {
			return nil, fmt.Errorf("httpcache: %w", err)
		}
	}
	c.routes, _ = newRoutes(o.Override, o.OverrideOn) // its error was one of validate's
	c.works = background.New(mayfly.ErrClosed)
	c.works.Grace = handBackFor
	c.unremoved = redelete.New(redelete.Options{Limit: o.Unremoved, Works: c.works, Again: c.purgeAgain, Dropped: c.tell.Dropped})
	lo := lease.Options{Redis: c.ns.Redis, Timeout: o.RedisTimeout, Breaker: c.tell.Breaker, Start: c.works.Start, Closing: c.works.Closing(), Waited: c.tell.Waited}
	// To the tier itself, what is answered from a copy is two or three reads.
	if c.local = localview.Of[item](c.ns, c.stats.local.Load); c.local != nil {
		lo.Pushes, lo.Moved = c.local.Watch, c.local.Moved
	}
	c.guard = lease.New(lo)
	c.tell.Warnings(nodes.Warnings(c.ns.Redis))
	return c, nil
}

// Handler returns next behind the cache. Several handlers may share a cache, where their hosts and paths differ. It panics if next is
// nil, as [http.ServeMux.Handle] does: at the start of a program, not at its first request.
func (c *Cache) Handler(next http.Handler) http.Handler {
	if f, ok := next.(http.HandlerFunc); next == nil || ok && f == nil {
		panic("httpcache: Handler got a nil handler: give it the one whose answers are to be cached")
	}
	return &handler{c, next}
}

// Close waits for what runs in the background, cancels it when ctx ends, and then returns its error. Handlers that run go on, and their
// clients get what they answer, which is not stored: other processes need not wait for it any more. Requests that come
// later go to their handlers. Closing again is fine. The Redis client stays open: it is the caller's.
func (c *Cache) Close(ctx context.Context) error {
	c.abandon()
	err := c.works.Close(ctx)
	c.local.Clear()
	if err != nil {
		return fmt.Errorf("httpcache: close: %w", err)
	}
	return nil
}
