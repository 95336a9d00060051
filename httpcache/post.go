package httpcache

import (
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// poster stores the answer to a POST that says that it is what a GET of the same URL gets, and for how long (RFC 9110,
// section 9.3.3). Nobody waits for it, and no POST is ever answered from the cache.
type poster struct {
	cache  *Cache
	r      *http.Request
	outer  http.Header
	sent   time.Time
	answer *response // nil: it is no such answer
}

// answersGets reports whether the answer is to be stored.
func (p *poster) answersGets(status int, header http.Header) bool {
	c, now := p.cache, time.Now()
	if p.r.Method != http.MethodPost || !c.keys.Self(p.r, header) {
		return false
	}
	policy, reason := c.rules.Judge(rfc9111.Exchange{Request: p.r, Status: status, Header: header, Sent: p.sent, Received: now, Self: true})
	if reason != rfc9111.Storable {
		return false
	}
	// Which purges it could have missed is not known.
	p.answer, reason = c.newResponse(p.r, status, header, ownHeader(header, p.outer), policy, unknown)
	return reason == rfc9111.Storable
}

// store stores it, if it is whole, where a GET would find it.
func (p *poster) store(out *capture) {
	c := p.cache
	key, ok := c.keys.Key(p.r)
	if p.answer == nil || !ok || out.mode != storing || out.flaw() != nil {
		return
	}
	key = c.prefix + key
	begun := time.Now()
	a := c.guard.Claim(p.r.Context(), key, lease.Found{})
	if a.Claim == nil || a.Err != nil {
		c.release(p.r.Context(), a.Claim)
		return
	}
	p.answer.complete(out)
	c.keepAnswer(p.r.Context(), sight{key: key, slot: key}, filling{claim: a.Claim, land: nobody}, p.answer, time.Since(begun))()
}
