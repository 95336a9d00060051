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
	// is what is taken, and sent to the client, where a success has no Cache-Control, no Expires and no targeted field. It
	// holds for the path as it is, not as it would be cleaned, and for no request with Authorization.
	//
	//	Override: map[string]string{"/assets/": "public, max-age=31536000, immutable", "GET /feed": "s-maxage=60"}
	Override map[string]string

	// OverrideOn are statuses for which Override holds beside the successes: any of 301, 308, 404 and 410, which are about a URL, not about
	// one moment of it. Nil is none.
	OverrideOn []int

	// Targeted are the fields of RFC 9213 that speak to this cache, such as "CDN-Cache-Control", the most specific first.
	// The first that a response has replaces its Cache-Control and Expires wholly.
	Targeted []string

	// NoVarySearch lets answers say by No-Vary-Search (draft-ietf-httpbis-no-vary-search) which parameters of the query do not count, so that
	// they are served to requests with other ones: No-Vary-Search: key-order, params=("utm_source"). Without it the field is passed on, and
	// any difference counts. It costs a look at what is known of the path: free with a local tier, one more trip without.
	NoVarySearch bool

	// NoHeuristic keeps the cache from guessing: by default a response without freshness of its own is taken as fresh for a
	// tenth of the time since its Last-Modified, if its status allows that.
	NoHeuristic bool

	// StoreSetCookie stores responses that set cookies, as the letter of RFC 9111 allows. Everybody gets the cookies then.
	StoreSetCookie bool

	// Report lets the cache decide, store and tell, but serve nothing: the handler answers each request, and what the cache would have
	// served is compared with that. [Cache.Report] counts by route; an answer that would have been a hit says so by a second
	// element of Cache-Status, and one that differs is an Event of the kind Warning. It is for a day before the cache is turned on.
	Report bool

	// Key says which requests are the same.
	Key Key

	// MaxBody is the size of the largest body that is stored; larger ones pass. Zero is 8 MiB.
	MaxBody int64

	// MaxInFlight is how many bytes of bodies are held in memory at once: while handlers write them, until they are stored, which takes a
	// copy, and until clients have read them. What has no room goes to its client as the handler writes it, at the client's
	// pace, and is not stored. Bodies of up to 64 KiB are not counted, and those of many readers once. Beside it each connection to
	// Redis may just be reading one body. Zero is 256 MiB, or four times MaxBody if that is more.
	MaxInFlight int64

	// MaxVariants is how many answers are kept of one URL that Vary tells apart; the one stored first leaves. Zero is 64.
	MaxVariants int

	// RedisTimeout is what one request may wait for Redis, whatever the client's own timeouts are, as in cacheaside.Options. Zero is 150 ms.
	RedisTimeout time.Duration

	// Unremoved is how many resources are remembered that could not be invalidated, to be removed when Redis is back. Until then
	// they are not served. Zero is 1024.
	Unremoved int

	Stale  Stale
	Shared Shared
	Load   Load

	// Renew, if set, is the outermost handler of the site, to which what stale-while-revalidate serves sends its renewals: in the
	// background, as a request of its own, so that routers and middlewares around the cache do for it what they do for
	// clients. The cache knows it again; middlewares do by [Cache.Renews]. What does not arrive at the cache as the same request is
	// not stored. By default renewals are on the request that found the response stale: see [Stale].Background.
	Renew http.Handler

	// TagFields are the response fields that name the tags by which a response may be purged, each a list with spaces or
	// commas between. Nil is Surrogate-Key and Cache-Tag; empty is none, and then Cache-Groups (RFC 9875) does not count either.
	TagFields []string

	// Server is what the cache calls itself in Cache-Status. Empty is "mayfly".
	Server string
}

// Key says which requests ask for the same. By default scheme, host, path and the query as it is tell them apart: of the URL that the
// client asked for. Where a handler around the cache gives the handler another one to see, as [http.StripPrefix] does, that is told
// apart too, as a variant of the client's.
type Key struct {
	AnyHost   bool     // the host does not count: the handler answers all alike
	Scheme    string   // "http" or "https", where a proxy in front ends TLS. Empty is what the connection says
	SortQuery bool     // the order of different query parameters does not count; not in a query with a bare ";" or "%"
	DropQuery []string // query parameters that do not count; a last * matches any rest, as in "utm_*"

	// AnyLanguageOrder makes the order of languages of one weight not count, where an answer varies by Accept-Language. RFC 9110
	// says that it means nothing; but many handlers take the first.
	AnyLanguageOrder bool
}

func (o Options) rules() rfc9111.Keys {
	k := o.Key
	return rfc9111.Keys{AnyHost: k.AnyHost, Scheme: k.Scheme, SortQuery: k.SortQuery, DropQuery: k.DropQuery, SearchApart: o.NoVarySearch}
}

// Stale says what happens past the end of freshness, beside what responses say of themselves by stale-while-revalidate and
// stale-if-error.
type Stale struct {
	// Keep is for how long past its freshness a response with a validator is kept, to be found unchanged by the origin.
	// Zero is an hour; negative keeps none.
	Keep time.Duration

	// IfError is for how long past its freshness a response that does not say stands in for a handler that fails. None does
	// that forbids it (must-revalidate, proxy-revalidate, no-cache, s-maxage). Zero is 10 minutes; negative is not at all.
	IfError time.Duration

	// On are the statuses that count as failure, beside a handler that panics or aborts. Nil is 502 and 504, by which a proxy
	// says that it cannot reach the origin. For a response with stale-if-error 500 and 503 count as well.
	On []int

	// Throttle is for how long, after a renewal failed, no process tries again. Zero is 1 s.
	Throttle time.Duration

	// Background lets stale-while-revalidate renew in a goroutine of its own, by a request without the values of this one's
	// context. It is for a cache around a whole site, whose mux is inside it. By default the renewal is on the request that
	// found the response stale, when that has been answered: routers and middlewares around the cache have put into its
	// context what the handler needs, and take it back when the request is over. The client has its answer by then, but for
	// one whose answers a middleware holds back until the handler returns, such as http.TimeoutHandler.
	Background bool
}

// Shared says how requests that miss together share one answer.
type Shared struct {
	// Wait is how long a request waits for another's answer before it asks the handler itself. Zero is 10 s.
	Wait time.Duration

	// Timeout is how long a handler may go on for others when the client it answers has left, and how long a renewal in the
	// background may take. Zero is 30 s.
	Timeout time.Duration

	// Pass is for how long it is remembered that an answer was not fit for others: meanwhile requests for it do not wait for
	// each other. Zero is 10 s.
	Pass time.Duration

	// Renewals is how many run in the background at once; what is due beyond that waits for a later request. Zero is 16.
	Renewals int
}

// Load says how many requests ask the handler at once, of those whose answers may be for others: docs/overload.md. All others never
// wait: other methods than GET, ranges, upgrades, event streams, and paths whose answers lately were for their client.
type Load struct {
	// Limit is how many do in this process; the others wait in a queue. Zero: as many as the handler can work on, which is found while
	// they run. Negative: any number. One that gets no turn within Timeout is answered with what is stale, where that may stand in for a handler
	// that fails, or with a 503.
	Limit int

	// Origin is what this cache shares with others, of pages or of values, that ask the same database: one limit for all of them. Its own
	// limit holds then, and Limit must be zero. A cache of values that the handler asks with its request's context takes no second
	// place. Nil is an origin of its own. Cache.Origin has the figures.
	Origin *mayfly.Origin

	// Timeout is how long a request waits for its turn, and how long a handler keeps one: what takes longer goes on without, and
	// counts as a sign of overload. On a path that has never brought an answer for others it keeps it for a quarter of that. Zero is 10 s.
	Timeout time.Duration
}

// validate is asked after withDefaults.
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
