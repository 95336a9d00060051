// Package rfc9111 holds the rules of a shared HTTP cache: RFC 9111 and what it builds on: conditions and ranges of
// RFC 9110, 5861 (stale while revalidating, stale on error), 8246 (immutable), 9211 (Cache-Status) and 9213 (targeted
// cache control).
//
// It only decides: it has no store, clock, goroutine or handler. A cache calls it in this order:
//
//	key := keys.Key(r)                          // whose answer this is
//	q := rfc9111.ParseCacheControl(r.Header)         // what the client wants
//	fields, ok := rfc9111.ParseVary(stored)     // which of several answers
//	verdict := policy.Decide(q, now)            // may the stored one be used
//	policy, reason := rules.Judge(exchange)     // may the origin's answer be stored
//
// Nothing in a header makes it panic or allocate beyond the header's own size, and a malformed header gets the
// careful answer: stale, not stored, not a match.
package rfc9111

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Rules are the choices that the RFCs leave to a cache. The zero value is a careful shared cache.
type Rules struct {
	// Targeted are the fields of RFC 9213 that speak to this cache, the most specific first ("CDN-Cache-Control"). The
	// first that is present and well formed replaces Cache-Control and Expires completely.
	Targeted []string

	// NoHeuristic refuses to guess a lifetime from Last-Modified.
	NoHeuristic bool

	// StoreSetCookie stores responses that set a cookie, as the letter of the RFC allows. Everybody then gets it.
	StoreSetCookie bool

	// Validate is how long a response with a validator is kept past its freshness, so that it can be revalidated.
	Validate time.Duration

	// StaleIfError is how long past its freshness a response may stand in for a failing origin if the response itself
	// neither sets that time (RFC 5861) nor forbids it. It does not apply to a response that was never fresh.
	StaleIfError time.Duration
}

// Exchange is a request and the final response to it, as they crossed the wire.
type Exchange struct {
	Request  *http.Request // only the method and the header are looked at
	Status   int
	Header   http.Header // of the response
	Sent     time.Time   // when the request went to the origin
	Received time.Time   // when the response's header came

	// Self says that the Content-Location of the answer to a POST is the request's own URL: with explicit freshness, that
	// answers later GETs (RFC 9110, section 9.3.3). See [Keys.Self].
	Self bool
}

// Reason says why a response is not stored, in words short enough for the detail of a Cache-Status.
type Reason string

const (
	Storable       Reason = ""
	Method         Reason = "method"   // only GET is stored
	Interim        Reason = "interim"  // 1xx
	Partial        Reason = "partial"  // 206 and 304 are parts of something, a transfer coding is not the content
	NoStore        Reason = "no-store" // of the response
	RequestNoStore Reason = "request-no-store"
	Private        Reason = "private"
	Authorization  Reason = "authorization" // and no public, must-revalidate or s-maxage
	SetCookie      Reason = "set-cookie"
	VaryAny        Reason = "vary"            // "*", or more fields than this cache tells apart
	NotUnderstood  Reason = "must-understand" // with a status that this cache does not understand
	NoFreshness    Reason = "no-freshness"    // no explicit freshness, nothing to guess it from, and no validator
	Expired        Reason = "expired"         // stale on arrival, no validator, no stale window
)

// Judge decides whether a shared cache may store the response (RFC 9111, section 3), and returns the policy for reusing it.
// The reason is Storable, or says why not.
func (r Rules) Judge(x Exchange) (Policy, Reason) {
	h := Canonical(x.Header)
	d, targeted := r.directives(h)
	life, explicit := lifetime(d, h, !targeted, x.Received)
	if reason := r.forbids(x, d, h, explicit); reason != Storable {
		return Policy{}, reason
	}

	p := Policy{Received: x.Received, InitialAge: initialAge(x, h), Lifetime: life}
	if !explicit && !r.NoHeuristic {
		p.Lifetime = guess(h, x.Received)
	}
	if d.Immutable {
		p.Flags |= Immutable
	}
	_, modified := lastModified(h, x.Received)
	validator := modified || etag(h) != ""
	if validator {
		p.Validate = r.Validate
	}
	promised := p.windows(r, x, d)

	switch {
	case p.Lifetime == 0 && !validator && !explicit:
		return Policy{}, NoFreshness
	case p.Lifetime == 0 && !validator && !promised, p.Keep(x.Received) <= 0:
		return Policy{}, Expired
	}
	return p, Storable
}

// windows sets how long the response is useful after its freshness, and reports whether the response itself said so.
func (p *Policy) windows(r Rules, x Exchange, d Directives) (promised bool) {
	if d.NoCache { // never without revalidation, however fresh
		p.Flags |= NoCache
		p.Lifetime = 0
		return false
	}
	// s-maxage says what proxy-revalidate does: section 5.2.2.10.
	if d.MustRevalidate || d.ProxyRevalidate || d.SMaxAge.Given {
		p.Flags |= Strict
		return false
	}
	p.StaleWhileRevalidate = d.StaleWhileRevalidate.Duration()
	if x.Status < 500 { // an error does not stand in for another error
		if p.Lifetime > 0 { // else only its own stale-if-error counts
			p.StaleIfError = r.StaleIfError
		}
		if d.StaleIfError.Given {
			p.StaleIfError = d.StaleIfError.Duration()
		}
	}
	return p.StaleWhileRevalidate > 0 || d.StaleIfError.Seconds > 0
}

// forbids returns the reason against storing, freshness aside.
func (r Rules) forbids(x Exchange, d Directives, h http.Header, explicit bool) Reason {
	asked := Canonical(x.Request.Header)
	switch method := x.Request.Method; {
	case x.Status < 200:
		return Interim
	case method != http.MethodGet && !(method == http.MethodPost && x.Self && explicit):
		return Method
	case coded(h): // a hit would not send the Transfer-Encoding
		return Partial
	case x.Status == 206, x.Status == 304, x.Status == 412, x.Status == 416: // they depend on more than the URL
		return Partial
	case ParseCacheControl(asked).NoStore:
		return RequestNoStore
	case d.MustUnderstand && http.StatusText(x.Status) == "":
		return NotUnderstood
	case d.NoStore && !d.MustUnderstand: // section 5.2.2.3: a cache that understands the status ignores no-store
		return NoStore
	case d.Private:
		return Private
	case asked["Authorization"] != nil && !(d.Public || d.MustRevalidate || d.SMaxAge.Given): // section 3.5
		return Authorization
	case h["Set-Cookie"] != nil && !r.StoreSetCookie && !slices.Contains(d.Fields, "Set-Cookie"):
		return SetCookie
	case !explicit && !d.Public && !slices.Contains(heuristic, x.Status):
		return NoFreshness
	}
	if _, ok := ParseVary(h); !ok {
		return VaryAny
	}
	return Storable
}

// coded reports whether a handler applied a transfer coding itself: the bytes written are then not the content.
func coded(h http.Header) bool {
	for coding := range elements(h["Transfer-Encoding"]) {
		if !strings.EqualFold(coding, "chunked") && !strings.EqualFold(coding, "identity") {
			return true
		}
	}
	return false
}
