package httpcache

import (
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// The answer to a POST is stored if it says that it is also the answer to a GET of the same URL, and for how long (RFC 9110, section
// 9.3.3). Nobody waits for it, and no POST is ever answered from the cache.

// answersGets returns what to store of the answer to a POST, or nil if the answer is not for GETs.
func (c *Cache) answersGets(x rfc9111.Exchange, outer http.Header) *response {
	if x.Request.Method != http.MethodPost || !c.keys.Self(x.Request, x.Header) {
		return nil
	}
	x.Self = true
	key, inner, _ := c.keys.AppendKey([]byte(c.prefix), x.Request)
	says := c.selectors(x.Request, key, inner)
	answer, _ := c.newResponse(x, &says, nil, saidIn(x.Header, outer), unknown) // it is not known which purges the answer may have missed
	return answer
}

// storePost stores the answer to a POST where a GET would find it, if the answer is whole.
func (c *Cache) storePost(r *http.Request, answer *response, out *capture) {
	key, ok := c.keys.Key(r)
	if !ok || out.mode != storing || out.flaw() != nil {
		return
	}
	key = c.prefix + key
	begun := time.Now()
	s := sight{own: key, key: key, slot: key}
	if c.opt.NoVarySearch {
		if c.follow(r.Context(), &s, &rfc9111.Selectors{Query: answer.search.query}); s.unasked != nil {
			return
		}
	}
	a := c.guard.Claim(r.Context(), s.key, lease.Found{})
	if a.Claim == nil || a.Err != nil {
		c.release(r.Context(), a.Claim)
		return
	}
	answer.complete(out, c.rules)
	c.keepAnswer(r.Context(), s, filling{claim: a.Claim}, answer, out.held, time.Since(begun))()
}
