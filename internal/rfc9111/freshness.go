package rfc9111

import "time"

// Policy is all that the rules need to know about a stored response: plain values that are stored with it, so that a hit
// parses nothing.
type Policy struct {
	Received   time.Time     // when it arrived, or was last found valid
	InitialAge time.Duration // corrected_initial_age: how old it was at Received
	Lifetime   time.Duration // freshness_lifetime; 0: stale at once

	// Periods after the end of freshness, 0 if the response forbids that use.
	StaleWhileRevalidate time.Duration // serve and renew in the background
	StaleIfError         time.Duration // serve if the origin fails
	Validate             time.Duration // keep for a revalidation

	Flags Flags
}

// Flags are the yes-or-no properties of a Policy.
type Flags uint8

const (
	NoCache   Flags = 1 << iota // never without revalidation
	Strict                      // never stale: must-revalidate, proxy-revalidate or s-maxage
	Immutable                   // a reload is served from the cache while it is fresh
)

// Age is the current_age of RFC 9111, section 4.2.3.
// It is at most 2^31 s.
func (p Policy) Age(now time.Time) time.Duration {
	return min(p.InitialAge+max(0, now.Sub(p.Received)), maxDelta*time.Second)
}

// Left is how long the response will stay fresh, or, negative, how long it has been stale. Cache-Status calls it ttl.
func (p Policy) Left(now time.Time) time.Duration { return p.Lifetime - p.Age(now) }

// Keep is how long from now the response is of any use: its remaining freshness plus the longest of the periods above.
func (p Policy) Keep(now time.Time) time.Duration {
	return p.Left(now) + max(p.StaleWhileRevalidate, p.StaleIfError, p.Validate)
}

// Reusable reports whether the response may ever answer another request without asking the origin: it was fresh on arrival, or
// says that it may be served stale. Only such a response may go to the waiters of a collapsed request (RFC 9111, section 4).
func (p Policy) Reusable() bool {
	return p.Flags&NoCache == 0 && (p.Lifetime > p.InitialAge || p.StaleWhileRevalidate > 0)
}

// Verdict says what to do with a stored response that matches a request.
type Verdict uint8

const (
	Revalidate Verdict = iota // ask the origin first
	Serve                     // fresh enough for this request
	ServeStale                // past its freshness, which the client's max-stale allows
	Renew                     // serve it stale, and renew it in the background (stale-while-revalidate)
)

// Decide says whether the stored response may answer a request with the directives q at now (RFC 9111, sections 4.2 and
// 5.2.1).
func (p Policy) Decide(q Directives, now time.Time) Verdict {
	if p.Flags&NoCache != 0 || q.NoCache || q.NoStore {
		return Revalidate
	}
	age := p.Age(now)
	left := p.Lifetime - age
	if q.MaxAge.Given && (age > q.MaxAge.Duration() || q.MaxAge.Seconds == 0) {
		// A plain reload sends max-age=0: an immutable response still answers it. Only a forced reload, no-cache, gets a new one (RFC 8246).
		if p.Flags&Immutable == 0 || left <= 0 {
			return Revalidate
		}
	}
	switch {
	case q.MinFresh.Given && left < q.MinFresh.Duration():
		return Revalidate
	case left > 0:
		return Serve
	case p.Flags&Strict != 0:
		return Revalidate
	case -left < p.StaleWhileRevalidate:
		return Renew
	case q.MaxStale.Given && p.Lifetime > 0 && -left <= q.MaxStale.Duration():
		return ServeStale
	}
	return Revalidate
}

// OnError reports whether the response may answer a request with the directives q at now in place of a failed origin (RFC 9111,
// section 4.2.4; RFC 5861, section 4). A max-age of the request is a wish, no-cache and min-fresh are demands.
func (p Policy) OnError(q Directives, now time.Time) bool {
	left := p.Left(now)
	switch {
	case p.Flags&NoCache != 0 || q.NoCache || q.NoStore:
		return false
	case q.MinFresh.Given && left < q.MinFresh.Duration():
		return false
	case left > 0:
		return true
	case p.Flags&Strict != 0:
		return false
	case p.Lifetime == 0: // it was never fresh: only its own stale-if-error counts
		return -left < max(p.StaleIfError, p.StaleWhileRevalidate)
	}
	return -left < max(p.StaleIfError, p.StaleWhileRevalidate, q.StaleIfError.Duration())
}
