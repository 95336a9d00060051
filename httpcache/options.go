package httpcache

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// Options adjust a cache. Each field's zero value is a default that works.
//
// Two requests are the same request if their URLs are the same: scheme, host, path, and the unchanged query, as the client sent them. AnyHost,
// Scheme, SortQuery, DropQuery and AnyLanguageOrder alter that. If a handler around the cache changes the URL that the handler sees, as
// [http.StripPrefix] does, the changed URL counts too: it selects a variant of the client's.
type Options struct {
	// Override gives routes a Cache-Control that their handlers do not send. The key is a pattern of [http.ServeMux]. The value
	// is used, and sent to the client, if a success has no Cache-Control, no Expires and no targeted field. Override applies to the
	// path as it is, not cleaned, and never to a request with Authorization.
	//
	//	Override: map[string]string{"/assets/": "public, max-age=31536000, immutable", "GET /feed": "s-maxage=60"}
	Override map[string]string

	// OverrideOn lists statuses to which Override applies besides successes: any of 301, 308, 404 and 410, which are properties of a URL rather than
	// of a moment. Nil is none.
	OverrideOn []int

	// Targeted lists the fields of RFC 9213 that are meant for this cache, such as "CDN-Cache-Control", the most specific first.
	// The first one present in a response replaces its Cache-Control and Expires completely.
	Targeted []string

	// NoVarySearch lets answers say by No-Vary-Search (draft-ietf-httpbis-no-vary-search) which parameters of the query do not matter, so that
	// the answers also serve requests that differ in these: No-Vary-Search: key-order, params=("utm_source"). Without it the field is passed on, and
	// any difference matters. It costs a lookup of the path's rule, which is free with a local tier and one more round trip without.
	NoVarySearch bool

	// NoHeuristic turns guessing off. By default a response without freshness of its own counts as fresh for a tenth of the
	// time since its Last-Modified, if its status allows that.
	NoHeuristic bool

	// StoreSetCookie stores responses that set cookies, as RFC 9111 allows. Every client then gets the cookies.
	StoreSetCookie bool

	// Report makes the cache decide, store and report, but serve nothing. The handler answers each request, and the cache compares that answer
	// with the one it would have served. [Cache.Report] counts by route. A second element of Cache-Status marks an answer that would have been a
	// hit, and an Event of the kind Warning reports one that differs. Use it for a day before you turn the cache on.
	Report bool

	// AnyHost leaves the host out of the URL: the handler answers the same for all hosts.
	AnyHost bool

	// Scheme is "http" or "https". Set it if a proxy in front of the server ends TLS. Empty means the connection's scheme.
	Scheme string

	// SortQuery ignores the order of different query parameters, except in a query with a bare ";" or "%".
	SortQuery bool

	// DropQuery lists query parameters that do not matter. A * at the end matches any rest, as in "utm_*".
	DropQuery []string

	// AnyLanguageOrder ignores the order of languages of equal weight if an answer varies by Accept-Language. RFC 9110 gives
	// that order no meaning, but many handlers take the first.
	AnyLanguageOrder bool

	// MaxBody is the size of the largest body that is stored. Larger ones are passed through. Zero is 8 MiB.
	MaxBody int64

	// MaxInFlight bounds the bytes of bodies held in memory at once: while handlers write them, until they are stored, which takes a
	// copy, and until clients have read them. A body without room goes to its client while the handler writes it, at the
	// client's pace, and is not stored. Bodies of up to 64 KiB do not count, and a body with many readers counts once. In addition each
	// connection to Redis may be reading one body. Zero is 256 MiB, or four times MaxBody if that is more.
	MaxInFlight int64

	// MaxVariants is how many answers are kept for one URL with Vary. If there are more, the one stored first is dropped. Zero is 64.
	MaxVariants int

	// RedisTimeout is how long one request may wait for Redis, whatever the client's own timeouts, as in cacheaside.Options. Zero is 150 ms.
	RedisTimeout time.Duration

	// Unremoved bounds the keys that the cache remembers because their removal failed, after a request that changed them or after [Cache.Purge].
	// It removes them when Redis is back, which it tries twice a second and once more in Close. Until then this Cache does not serve them. A tag is
	// one key. A URL, prefix or group that was purged is four: both schemes, with and without the other's port. Prefixes have the same room again.
	// Keys without room are not remembered, nor are keys whose removal Redis refuses permanently: Purge's error says so, and so does an Event, a
	// Removal
	// that was dropped. A process that ends forgets all of them, and Close returns an error. Zero is 1024.
	Unremoved int

	// StaleKeep is how long past its freshness a response with a validator is kept, so that the handler can confirm it as unchanged.
	// Zero is an hour; negative keeps none.
	StaleKeep time.Duration

	// StaleIfError is how long past its freshness a response without stale-if-error stands in for a failing handler, unless it
	// forbids that (must-revalidate, proxy-revalidate, no-cache, s-maxage). Zero is 10 minutes; negative is not at all. A response's own
	// stale-while-revalidate and stale-if-error always apply.
	StaleIfError time.Duration

	// StaleOn lists the statuses that count as failure, besides a panic or an abort of the handler. Nil is 502 and 504, by which a proxy
	// says that it cannot reach the origin. For a response with stale-if-error 500 and 503 count as well.
	StaleOn []int

	// SharedWait is how long a request waits for the answer to an equal request before it calls the handler itself. Zero is 10 s.
	SharedWait time.Duration

	// SharedTimeout is how long a handler may continue for others after its own client has left, and how long a background renewal
	// may take. Zero is 30 s.
	SharedTimeout time.Duration

	// SharedPass is how long the cache remembers that an answer could not be shared. During that time requests for it do not wait
	// for each other. Zero is 10 s.
	SharedPass time.Duration

	// LoadLimit bounds how many requests call the handler at once in this process, among those whose answers may be shared. The others wait
	// in a queue (docs/overload.md). Zero: as many as the handler can work on, a number that the cache finds while they run. Negative: no bound. A
	// request that gets no turn within LoadTimeout is answered with a stale response, if that may stand in for a failing handler, or else with a 503.
	// Some requests never wait: methods other than GET, ranges, upgrades, event streams, and paths whose recent answers were for one client alone.
	LoadLimit int

	// LoadTimeout is how long a request waits for its turn, and how long a handler keeps its turn. A slower handler continues without a turn and
	// counts as a sign of overload. On a path that has never had a shareable answer the handler keeps its turn for a quarter of that. Zero is 10 s.
	LoadTimeout time.Duration

	// Origin is shared by all caches, of pages or values, that use the same database: one limit for all of them. The Origin's limit then
	// applies, and LoadLimit must be zero. A cache of values that the handler calls with its request's context takes no second
	// turn. Nil is an origin of the cache's own. Cache.Origin has the figures.
	Origin *mayfly.Origin

	// RenewLimit is how many renewals run in the background at once. The others wait for a later request. Zero is 16.
	RenewLimit int

	// RenewThrottle is how long no process tries again after a failed renewal. Zero is 1 s.
	RenewThrottle time.Duration

	// RenewBackground makes stale-while-revalidate renew in a goroutine of its own, with a request that lacks the original one's
	// context values. It is for a cache around a whole site, whose mux is inside it. By default the renewal runs on the request
	// that found the response stale, after the cache has answered it: routers and middlewares around the cache have put what the handler
	// needs into its context, and reuse it when the request is over. The client has its answer by then, unless a middleware such as
	// http.TimeoutHandler holds it back until the handler returns.
	RenewBackground bool

	// Renew, if set, is the outermost handler of the site. It gets the renewals of stale-while-revalidate in the background,
	// as separate requests, so that routers and middlewares around the cache treat them like requests of clients. Middlewares
	// recognize them by [Cache.Renews]. A renewal that does not arrive at the cache as the same request is not stored. By default
	// a renewal runs on the request that found the response stale: see RenewBackground.
	Renew http.Handler

	// TagFields lists the response fields that name the tags by which a response may be purged, each a list separated by
	// spaces or commas. Nil is Surrogate-Key and Cache-Tag. An empty list is none, and then Cache-Groups (RFC 9875) is ignored too.
	TagFields []string

	// Server is the cache's name in Cache-Status. Empty is "mayfly".
	Server string
}

func (o Options) rules() rfc9111.Keys {
	return rfc9111.Keys{AnyHost: o.AnyHost, Scheme: o.Scheme, SortQuery: o.SortQuery, DropQuery: o.DropQuery, SearchApart: o.NoVarySearch}
}

// validate expects withDefaults to have run.
func (o Options) validate(ns mayfly.Namespace[string, []byte]) error {
	c := check.In("Options.")
	c.Add(ns.Validate())
	c.Refuse(ns.Key != nil || ns.Codec != nil || ns.Clone != nil || ns.Cost != nil || ns.Plain || !ns.Jitter.IsZero(),
		"Namespace has a Key, Codec, Clone, Cost, Plain or Jitter: they have no meaning for responses, leave them zero")
	c.Refuse(ns.MaxTTL != 0, "Namespace.MaxTTL is %v, and Namespace.TTL is what bounds the lifetimes that responses name: set that to the longest, and leave MaxTTL zero", ns.MaxTTL)
	c.TTL("StaleKeep", max(o.StaleKeep, 0))
	c.TTL("StaleIfError", max(o.StaleIfError, 0))
	c.TTL("RenewThrottle", o.RenewThrottle)
	c.TTL("SharedWait", o.SharedWait)
	c.TTL("SharedTimeout", o.SharedTimeout)
	c.TTL("SharedPass", o.SharedPass)
	c.TTL("LoadTimeout", o.LoadTimeout)
	c.Refuse(o.Origin != nil && o.LoadLimit != 0, "LoadLimit is %d, and Origin has a limit of its own: give that to mayfly.NewOrigin", o.LoadLimit)
	c.Refuse(o.Origin != nil && admission.Of(o.Origin) == nil, "Origin was not made: use mayfly.NewOrigin")
	if o.Origin == nil {
		_, err := mayfly.NewOrigin(mayfly.OriginOptions{Limit: o.LoadLimit})
		c.Refuse(err != nil, "LoadLimit must be at most 1000000, got %d: a negative one is no limit", o.LoadLimit)
	}
	c.TTL("RedisTimeout", o.RedisTimeout)
	c.Refuse(o.RenewLimit < 0, "RenewLimit must not be negative, got %d", o.RenewLimit)
	c.Refuse(o.Unremoved < 0, "Unremoved must not be negative, got %d", o.Unremoved)
	c.Refuse(o.MaxBody < 0 || o.MaxBody > maxMaxBody, "MaxBody must be 0 to %d, got %d: Redis takes values of 512 MB", maxMaxBody, o.MaxBody)
	c.Refuse(o.MaxInFlight < 2*o.MaxBody, "MaxInFlight must be at least twice MaxBody (%d), for a body and the record that is stored of it, got %d", o.MaxBody, o.MaxInFlight)
	c.Refuse(o.Renew != nil && o.RenewBackground, "Renew and RenewBackground are two ways to renew: set one of them")
	c.Refuse(o.MaxVariants < 0 || o.MaxVariants > 10_000, "MaxVariants must be 0 to 10000, got %d", o.MaxVariants)
	for _, status := range o.StaleOn {
		c.Refuse(status < 500 || status > 599, "StaleOn must hold statuses of 500 to 599, got %d", status)
	}
	c.Refuse(o.Scheme != "" && o.Scheme != "http" && o.Scheme != "https", "Scheme must be empty, \"http\" or \"https\", got %q", o.Scheme)
	for _, name := range o.DropQuery {
		c.Refuse(name == "", "DropQuery holds an empty name")
		c.Refuse(strings.Contains(strings.TrimSuffix(name, "*"), "*"), "DropQuery: a * stands for a rest, at the end of a name, got %q", name)
	}
	tokens := func(field string, names ...string) {
		for i, name := range names {
			c.Refuse(!fieldName.MatchString(name), "%s must be a token as field names are, got %q", field, name)
			c.Refuse(slices.ContainsFunc(names[:i], func(n string) bool { return strings.EqualFold(n, name) }), "%s names %q twice", field, name)
			c.Refuse(field == "Targeted" && strings.EqualFold(name, "Cache-Control"), "Targeted are fields beside Cache-Control, which every cache reads: leave it out")
		}
	}
	tokens("Targeted", o.Targeted...)
	tokens("TagFields", o.TagFields...)
	tokens("Server", o.Server)
	_, err := newRoutes(o.Override, o.OverrideOn)
	c.Refuse(err != nil, "Override: %w", err)
	for _, status := range o.OverrideOn {
		c.Refuse(!slices.Contains(overridable, status), "OverrideOn must hold any of 301, 308, 404 and 410, got %d", status)
	}
	c.Refuse(len(o.OverrideOn) > 0 && len(o.Override) == 0, "OverrideOn is set, and Override names no routes: set both, or neither")
	return c.Err()
}

const maxMaxBody = 500 << 20

var fieldName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

func (o Options) withDefaults() Options {
	o.MaxBody = cmp.Or(o.MaxBody, 8<<20)
	o.MaxInFlight = cmp.Or(o.MaxInFlight, max(256<<20, 4*o.MaxBody))
	o.MaxVariants = cmp.Or(o.MaxVariants, 64)
	o.StaleKeep = cmp.Or(o.StaleKeep, time.Hour)
	o.StaleIfError = cmp.Or(o.StaleIfError, 10*time.Minute)
	o.RenewThrottle = cmp.Or(o.RenewThrottle, time.Second)
	o.SharedWait = cmp.Or(o.SharedWait, 10*time.Second)
	o.SharedTimeout = cmp.Or(o.SharedTimeout, 30*time.Second)
	o.SharedPass = cmp.Or(o.SharedPass, 10*time.Second)
	o.RenewLimit = cmp.Or(o.RenewLimit, 16)
	o.LoadTimeout = cmp.Or(o.LoadTimeout, 10*time.Second)
	o.RedisTimeout = cmp.Or(o.RedisTimeout, nodes.Timeout)
	o.Unremoved = cmp.Or(o.Unremoved, 1024)
	o.Server = cmp.Or(o.Server, "mayfly")
	if o.StaleOn == nil {
		o.StaleOn = []int{http.StatusBadGateway, http.StatusGatewayTimeout}
	}
	if o.TagFields == nil {
		o.TagFields = []string{"Surrogate-Key", "Cache-Tag"}
	}
	return o
}
