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
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// Options adjust a cache. The zero value of every field is a default that works.
type Options struct {
	// Override gives routes a Cache-Control that their handlers do not send: the key is a pattern of [http.ServeMux], the value
	// is used, and sent to the client, if a success has no Cache-Control, no Expires and no targeted field. It applies to the
	// path as it is, not cleaned, and never to a request with Authorization.
	//
	//	Override: map[string]string{"/assets/": "public, max-age=31536000, immutable", "GET /feed": "s-maxage=60"}
	Override map[string]string

	// OverrideOn are statuses to which Override applies besides successes: any of 301, 308, 404 and 410, which are properties of a URL rather than
	// of a moment. Nil is none.
	OverrideOn []int

	// Targeted are the fields of RFC 9213 that speak to this cache, such as "CDN-Cache-Control", the most specific first.
	// The first one present in a response replaces its Cache-Control and Expires completely.
	Targeted []string

	// NoVarySearch lets answers say by No-Vary-Search (draft-ietf-httpbis-no-vary-search) which parameters of the query do not count, so that
	// they also serve requests that differ in these: No-Vary-Search: key-order, params=("utm_source"). Without it the field is passed on, and
	// any difference counts. It costs a lookup of the path's rule: free with a local tier, one more round trip without.
	NoVarySearch bool

	// NoHeuristic turns guessing off: by default a response without freshness of its own counts as fresh for a tenth of the
	// time since its Last-Modified, if its status allows that.
	NoHeuristic bool

	// StoreSetCookie stores responses that set cookies, as RFC 9111 allows. Everybody then gets the cookies.
	StoreSetCookie bool

	// Report lets the cache decide, store and report, but serve nothing: the handler answers each request, and the cache compares that answer
	// with what it would have served. [Cache.Report] counts by route; an answer that would have been a hit says so by a second
	// element of Cache-Status, and one that differs is an Event of the kind Warning. It is for a day before the cache is turned on.
	Report bool

	// Key says which requests are the same.
	Key Key

	// MaxBody is the size of the largest body that is stored; larger ones are passed through. Zero is 8 MiB.
	MaxBody int64

	// MaxInFlight is how many bytes of bodies are held in memory at once: while handlers write them, until they are stored, which takes a
	// copy, and until clients have read them. A body without room goes to its client as the handler writes it, at the
	// client's pace, and is not stored. Bodies of up to 64 KiB are not counted, and a body with many readers counts once. In addition each
	// connection to Redis may be reading one body. Zero is 256 MiB, or four times MaxBody if that is more.
	MaxInFlight int64

	// MaxVariants is how many answers are kept of one URL that Vary tells apart; the one stored first is dropped. Zero is 64.
	MaxVariants int

	// RedisTimeout is how long one request may wait for Redis, whatever the client's own timeouts are, as in cacheaside.Options. Zero is 150 ms.
	RedisTimeout time.Duration

	// Unremoved bounds the keys whose removal failed, by a request that has changed them or by [Cache.Purge]. They are remembered, and removed when
	// Redis is back, which is tried twice a second and once more by Close; until then this process does not serve them. A tag is one key, and
	// a URL or a group that was purged is four, under both schemes, with and without the other's port; prefixes have as much room of their own.
	// What there is no room for is not remembered: Purge's error says so, and so does an Event, a Removal that was dropped. A process
	// that ends forgets all of it. Zero is 1024.
	Unremoved int

	Stale  Stale
	Shared Shared
	Load   Load

	// Renew, if set, is the outermost handler of the site, which gets the renewals of stale-while-revalidate: in the background,
	// as separate requests, so that routers and middlewares around the cache treat them like requests of clients. Middlewares
	// recognize them by [Cache.Renews]. A renewal that does not arrive at the cache as the same request is not stored. By default
	// a renewal runs on the request that found the response stale: see [Stale].Background.
	Renew http.Handler

	// TagFields are the response fields that name the tags by which a response may be purged, each a list separated by
	// spaces or commas. Nil is Surrogate-Key and Cache-Tag; empty is none, and then Cache-Groups (RFC 9875) is ignored too.
	TagFields []string

	// Server is what the cache calls itself in Cache-Status. Empty is "mayfly".
	Server string
}

// Key says which requests ask for the same. By default these are requests for the same URL: scheme, host, path, and the query as it is, as the
// client asked for it. If a handler around the cache changes the URL that the handler sees, as [http.StripPrefix] does, the
// changed one is told apart too, as a variant of the client's.
type Key struct {
	AnyHost   bool     // the host does not count: the handler answers the same for all hosts
	Scheme    string   // "http" or "https", if a proxy in front ends TLS. Empty is the connection's
	SortQuery bool     // the order of different query parameters does not count; not in a query with a bare ";" or "%"
	DropQuery []string // query parameters that do not count; a last * matches any rest, as in "utm_*"

	// AnyLanguageOrder ignores the order of languages of equal weight if an answer varies by Accept-Language. RFC 9110 gives
	// that order no meaning, but many handlers take the first.
	AnyLanguageOrder bool
}

func (o Options) rules() rfc9111.Keys {
	k := o.Key
	return rfc9111.Keys{AnyHost: k.AnyHost, Scheme: k.Scheme, SortQuery: k.SortQuery, DropQuery: k.DropQuery, SearchApart: o.NoVarySearch}
}

// Stale says what happens past the end of freshness, in addition to what responses themselves say by stale-while-revalidate
// and stale-if-error.
type Stale struct {
	// Keep is how long past its freshness a response with a validator is kept, so that the origin can confirm it as unchanged.
	// Zero is an hour; negative keeps none.
	Keep time.Duration

	// IfError is how long past its freshness a response without stale-if-error stands in for a failing handler, unless it
	// forbids that (must-revalidate, proxy-revalidate, no-cache, s-maxage). Zero is 10 minutes; negative is not at all.
	IfError time.Duration

	// On are the statuses that count as failure, besides a panic or an abort of the handler. Nil is 502 and 504, by which a proxy
	// says that it cannot reach the origin. For a response with stale-if-error 500 and 503 count as well.
	On []int

	// Throttle is how long no process tries again after a renewal failed. Zero is 1 s.
	Throttle time.Duration

	// Background lets stale-while-revalidate renew in a goroutine of its own, with a request that lacks the original one's
	// context values. It is for a cache around a whole site, whose mux is inside it. By default the renewal runs on the request
	// that found the response stale, after that was answered: routers and middlewares around the cache have put what the handler
	// needs into its context, and reuse it when the request is over. The client has its answer by then, unless a middleware such as
	// http.TimeoutHandler holds it back until the handler returns.
	Background bool
}

// Shared says how requests that miss at the same time share one answer.
type Shared struct {
	// Wait is how long a request waits for another's answer before it asks the handler itself. Zero is 10 s.
	Wait time.Duration

	// Timeout is how long a handler may continue for others after its own client has left, and how long a background renewal
	// may take. Zero is 30 s.
	Timeout time.Duration

	// Pass is how long the cache remembers that an answer could not be shared: during that time requests for it do not wait
	// for each other. Zero is 10 s.
	Pass time.Duration

	// Renewals bounds the background renewals that run at once; those beyond it wait for a later request. Zero is 16.
	Renewals int
}

// Load bounds how many requests call the handler at once, among those whose answers may be shared: docs/overload.md. All others never
// wait: other methods than GET, ranges, upgrades, event streams, and paths whose answers lately were for their client.
type Load struct {
	// Limit is the bound for this process; the others wait in a queue. Zero: as many as the handler can work on, which is found while
	// they run. Negative: no bound. A request that gets no turn within Timeout is answered with a stale response, if that may stand in for a
	// failing handler, or else with a 503.
	Limit int

	// Origin is shared by all caches, of pages or values, that use the same database: one limit for all of them. The Origin's limit then
	// applies, and Limit must be zero. A cache of values that the handler calls with its request's context takes no second
	// place. Nil is an origin of its own. Cache.Origin has the figures.
	Origin *mayfly.Origin

	// Timeout is how long a request waits for its turn, and how long a handler keeps it: a slower one continues without a turn and
	// counts as a sign of overload. On a path that has never had a shareable answer the handler keeps its turn for a quarter of that. Zero is 10 s.
	Timeout time.Duration
}

// validate expects withDefaults to have run.
func (o Options) validate(ns mayfly.Namespace[string, []byte]) error {
	c := check.In("Options.")
	c.Add(ns.Validate())
	c.Refuse(ns.Key != nil || ns.Codec != nil || ns.Clone != nil || ns.Cost != nil || ns.Plain || !ns.Jitter.IsZero(),
		"Namespace has a Key, Codec, Clone, Cost, Plain or Jitter: they have no meaning for responses, leave them zero")
	c.Refuse(ns.MaxTTL != 0, "Namespace.MaxTTL is %v, and Namespace.TTL is what bounds the lifetimes that responses name: set that to the longest, and leave MaxTTL zero", ns.MaxTTL)
	c.TTL("Stale.Keep", max(o.Stale.Keep, 0))
	c.TTL("Stale.IfError", max(o.Stale.IfError, 0))
	c.TTL("Stale.Throttle", o.Stale.Throttle)
	c.TTL("Shared.Wait", o.Shared.Wait)
	c.TTL("Shared.Timeout", o.Shared.Timeout)
	c.TTL("Shared.Pass", o.Shared.Pass)
	c.TTL("Load.Timeout", o.Load.Timeout)
	c.Refuse(o.Load.Origin != nil && o.Load.Limit != 0, "Load.Limit is %d, and Load.Origin has a limit of its own: give that to mayfly.NewOrigin", o.Load.Limit)
	c.Refuse(o.Load.Origin != nil && admission.Of(o.Load.Origin) == nil, "Load.Origin was not made: use mayfly.NewOrigin")
	if o.Load.Origin == nil {
		_, err := mayfly.NewOrigin(mayfly.OriginOptions{Limit: o.Load.Limit})
		c.Refuse(err != nil, "Load.Limit must be at most 1000000, got %d: a negative one is no limit", o.Load.Limit)
	}
	c.TTL("RedisTimeout", o.RedisTimeout)
	c.Refuse(o.Shared.Renewals < 0, "Shared.Renewals must not be negative, got %d", o.Shared.Renewals)
	c.Refuse(o.Unremoved < 0, "Unremoved must not be negative, got %d", o.Unremoved)
	c.Refuse(o.MaxBody < 0 || o.MaxBody > maxMaxBody, "MaxBody must be 0 to %d, got %d: Redis takes values of 512 MB", maxMaxBody, o.MaxBody)
	c.Refuse(o.MaxInFlight < 2*o.MaxBody, "MaxInFlight must be at least twice MaxBody (%d), for a body and the record that is stored of it, got %d", o.MaxBody, o.MaxInFlight)
	c.Refuse(o.Renew != nil && o.Stale.Background, "Renew and Stale.Background are two ways to renew: set one of them")
	c.Refuse(o.MaxVariants < 0 || o.MaxVariants > 10_000, "MaxVariants must be 0 to 10000, got %d", o.MaxVariants)
	for _, status := range o.Stale.On {
		c.Refuse(status < 500 || status > 599, "Stale.On must hold statuses of 500 to 599, got %d", status)
	}
	c.Refuse(o.Key.Scheme != "" && o.Key.Scheme != "http" && o.Key.Scheme != "https", "Key.Scheme must be empty, \"http\" or \"https\", got %q", o.Key.Scheme)
	for _, name := range o.Key.DropQuery {
		c.Refuse(name == "", "Key.DropQuery holds an empty name")
		c.Refuse(strings.Contains(strings.TrimSuffix(name, "*"), "*"), "Key.DropQuery: a * stands for a rest, at the end of a name, got %q", name)
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
	o.Stale.Keep = cmp.Or(o.Stale.Keep, time.Hour)
	o.Stale.IfError = cmp.Or(o.Stale.IfError, 10*time.Minute)
	o.Stale.Throttle = cmp.Or(o.Stale.Throttle, time.Second)
	o.Shared.Wait = cmp.Or(o.Shared.Wait, 10*time.Second)
	o.Shared.Timeout = cmp.Or(o.Shared.Timeout, 30*time.Second)
	o.Shared.Pass = cmp.Or(o.Shared.Pass, 10*time.Second)
	o.Shared.Renewals = cmp.Or(o.Shared.Renewals, 16)
	o.Load.Timeout = cmp.Or(o.Load.Timeout, 10*time.Second)
	o.RedisTimeout = cmp.Or(o.RedisTimeout, 150*time.Millisecond)
	o.Unremoved = cmp.Or(o.Unremoved, 1024)
	o.Server = cmp.Or(o.Server, "mayfly")
	if o.Stale.On == nil {
		o.Stale.On = []int{http.StatusBadGateway, http.StatusGatewayTimeout}
	}
	if o.TagFields == nil {
		o.TagFields = []string{"Surrogate-Key", "Cache-Tag"}
	}
	return o
}
