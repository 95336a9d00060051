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
//   - A response is stored only if its freshness or a validator allows it, or if [Options.Override] does. By default a response is never stored
//     if it sets a cookie, is private, or answers a request with Authorization (unless it says that it is for all).
//   - Requests that miss at the same time, in any process, cause one call of the handler. They stop waiting as soon as its answer turns out
//     not to be for others. With stale-while-revalidate nobody waits.
//   - Handlers get no more requests at once than they can work on ([Options].LoadLimit), however many responses are missing. Requests whose
//     answers are for one client only do not queue.
//   - A client gets a response while the handler writes it. A client that is slow or leaves neither delays nor ends what others
//     wait for. A response that was cut short is never stored.
//   - After Purge returned nil, no answer that was requested from the handler earlier is stored, or served to a later request,
//     by any process that can hear Redis.
//   - Redis holds a copy. A slow or unreachable Redis costs a request at most [Options].RedisTimeout, and soon nothing.
//
// Cache-Status (RFC 9211) and the namespace's Observer report what it did. docs/http.md has the rest.
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
	origin     *mayfly.Origin // admits the requests that call the handler
	audiences  *audiences
	local      *localview.View[string, item]
	flights    flight.Group[outcome]
	works      *background.Group
	beats      beats
	renewing   chan struct{} // holds one element per running renewal
	epochs     epochs
	unremoved  *redelete.Queue // resources and tags
	unswept    *redelete.Queue // common beginnings of keys
	quiet      *recently.Keys  // renewals that another process makes, or that failed
	passes     *recently.Keys  // slots whose answers were for one client alone, as far as Redis does not say so
	crowded    *recently.Keys  // resources for which there was no room recently
	bodies     bodies
	reports    reports
	left       *recently.Keys // how many variants of a resource were dropped recently
	selections selections
	familiar   *familiar
	tell       events.Teller
	stats      *counters // separate, so that an observer of local hits keeps nothing else of a closed cache alive
}

// New returns a cache of responses, whose method [Cache.Handler] is the middleware. It does no I/O.
//
// ns says where responses are kept. Its TTL bounds for how long, whatever lifetime a response names, and for how long this process serves a
// response that another process stored for longer. Local and Observer are used if set. Key, Codec, Clone, Cost, Plain and Jitter have no meaning
// here and must be zero. MaxTTL must be zero too, since TTL is the bound already.
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
			Validate: max(o.StaleKeep, 0), StaleIfError: max(o.StaleIfError, 0),
		},
		renewing: make(chan struct{}, o.RenewLimit), stats: new(counters), tell: events.To(ns.Observer, ns.Name),
		quiet: recently.New(1024), passes: recently.New(1024), left: recently.New(256), crowded: recently.New(1024),
		bodies: bodies{most: o.MaxInFlight}, audiences: newAudiences(), familiar: newFamiliar(),
	}
	if c.origin = o.Origin; c.origin == nil {
		var err error
		if c.origin, err = mayfly.NewOrigin(mayfly.OriginOptions{Limit: o.LoadLimit, Timeout: o.LoadTimeout}); err != nil {
			return nil, fmt.Errorf("httpcache: %w", err)
		}
	}
	c.routes, _ = newRoutes(o.Override, o.OverrideOn) // validate has reported its error already
	c.works = background.New(mayfly.ErrClosed)
	c.works.Grace = handBackFor
	c.unremoved = redelete.New(redelete.Options{Limit: o.Unremoved, Works: c.works, Again: c.removeAgain, Dropped: c.tell.Dropped})
	c.unswept = redelete.New(redelete.Options{Limit: o.Unremoved, Works: c.works, Again: c.sweepAgain, Dropped: c.tell.Dropped})
	lo := lease.Options{Redis: c.ns.Redis, Timeout: o.RedisTimeout, Breaker: c.tell.Breaker, Start: c.works.Start, Closing: c.works.Closing(), Waited: c.tell.Waited}
	// The tier itself would count two or three reads for one answer that is served from a copy.
	if c.local = localview.Of[item](c.ns, c.stats.local.Load); c.local != nil {
		lo.Pushes, lo.Moved = c.local.Watch, c.local.Moved
	}
	c.guard = lease.New(lo)
	c.tell.Warnings(nodes.Warnings(c.ns.Redis, o.RedisTimeout))
	return c, nil
}

// Handler returns next behind the cache. Several handlers may share a cache if their hosts or paths differ. It panics if next is
// nil, as [http.ServeMux.Handle] does: at the start of the program, not at its first request.
func (c *Cache) Handler(next http.Handler) http.Handler {
	if f, ok := next.(http.HandlerFunc); next == nil || ok && f == nil {
		panic("httpcache: Handler got a nil handler: give it the one whose answers are to be cached")
	}
	return &handler{c, next}
}

// Close waits for background work. When ctx ends it cancels the rest and returns ctx's error. It tries once more the removals that a failed
// [Cache.Purge] left, and if some of them fail again the error says how many. Running handlers continue. Their clients get the answers, which are
// not stored, and other processes stop waiting for them. Later requests go to their handlers. Closing again is fine. The Redis client stays open:
// it is the caller's.
func (c *Cache) Close(ctx context.Context) error {
	c.abandon()
	err := c.works.Close(ctx)
	c.local.Clear()
	if err != nil {
		return fmt.Errorf("httpcache: close: %w", err)
	}
	if n := c.unremoved.Len() + c.unswept.Len(); n > 0 {
		return fmt.Errorf("httpcache: close: %d removals that had failed were not done, and are forgotten: other processes may serve what they name until it expires", n)
	}
	return nil
}
