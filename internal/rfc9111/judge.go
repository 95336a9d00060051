// Package rfc9111 holds the rules of a shared HTTP cache: RFC 9111 and what it leans on, conditionals and ranges of
// RFC 9110, 5861 (stale while revalidating, stale on error), 8246 (immutable), 9211 (Cache-Status) and 9213 (targeted
// cache control).
//
// It decides and does nothing: no store, no clock, no goroutine, no handler. A cache asks it in this order:
//
//	key := keys.Key(r)                          // whose answer this is
//	q := rfc9111.ParseRequest(r.Header)         // what the client wants
//	fields, ok := rfc9111.ParseVary(stored)     // which of several answers
//	verdict := policy.Decide(q, now)            // may the stored one be used
//	policy, reason := rules.Judge(exchange)     // may the origin's answer be stored
//
// Nothing in a header makes it panic or allocate beyond the header's own size, and where a header is broken the answer is
// the careful one: stale, not stored, not a match.
package rfc9111

import (
	"net/http"
	"time"
)

// Rules are the choices that the RFCs leave to a cache. The zero value is a careful shared cache.
type Rules struct {
	// Targeted are the fields of RFC 9213 that speak to this cache, the most specific first ("CDN-Cache-Control"). The
	// first that is present and well formed replaces Cache-Control and Expires wholly.
	Targeted []string

	// NoHeuristic refuses to guess a lifetime from Last-Modified.
	NoHeuristic bool

	// StoreSetCookie stores responses that set a cookie, as the letter of the RFC allows. Everybody then gets it.
	StoreSetCookie bool

	// Validate is how long a response with a validator is kept past its freshness, so that it can be revalidated.
	Validate time.Duration

	// StaleIfError is for how long past its freshness a response may stand in for an origin that fails, if the response
	// itself neither says (RFC 5861) nor forbids.
	StaleIfError time.Duration
}

// Exchange is a request and the final response to it, as they crossed the wire.
type Exchange struct {
	Request  *http.Request // only the method and the header are looked at
	Status   int
	Header   http.Header // of the response
	Sent     time.Time   // when the request went to the origin
	Received time.Time   // when the response's header came

	// Assumed is the lifetime of a response that says nothing about its own. 0: a guess from Last-Modified, or none.
	Assumed time.Duration
}

// Judge says whether a shared cache may store the response, with everything that it will have to know to reuse it; the
// reason is Storable or says why not.
func (r Rules) Judge(x Exchange) (Policy, Reason) {
	return Policy{}, NoFreshness
}
