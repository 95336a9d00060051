package httpcache

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// A response that a 304, or the header of an answer to HEAD, confirms as unchanged is kept with a new header.

// refresh answers with the stored response, which the handler has confirmed as unchanged, and stores its new header.
func (a *attempt) refresh() {
	x, c, now := a.exchange, a.cache, time.Now()
	x.status.FwdStatus = http.StatusNotModified
	own := saidIn(a.out.header, a.outer)
	header := rfc9111.Update(headerOf(a.asked.header), own.header)
	c.routes.apply(x.r, a.asked.status, header, c.opt.Targeted)
	r, reason := a.renewed(header, own, now)
	if reason != rfc9111.Storable {
		a.give(false, string(reason))
		r = &response{status: a.asked.status, policy: rfc9111.Policy{Received: now}, header: fieldsOf(c.rules.Stored(header, now), addedOf(a.asked.header)), body: a.asked.body}
		c.answer(x.w, x.r, r, now, x.status)
		return
	}
	x.status.Stored = a.fill.stores()
	stored := c.keepAnswer(x.r.Context(), x.s, a.fill, r, x.held, a.spent)
	c.answer(x.w, x.r, r, now, x.status)
	stored()
}

// renewed returns the stored response with a new header, in which the fields of own are new. Its body is as old as before: a purge of its tags
// since then voids it, even one from before the handler confirmed it as unchanged.
func (a *attempt) renewed(header http.Header, own said, now time.Time) (*response, rfc9111.Reason) {
	stored, as := a.s.response, *a.r
	added := addedOf(stored.header)
	for name := range rfc9111.Canonical(own.header) {
		added[name] = own.added[name]
	}
	as.Method = http.MethodGet // whichever method confirmed it
	answered := rfc9111.Exchange{Request: &as, Status: stored.status, Header: header, Sent: a.sent, Received: now}
	r, reason := a.cache.newResponse(answered, &a.says, a.exchange.s.index, said{header, added}, min(a.epoch, stored.epoch))
	if r == nil {
		return nil, reason
	}
	r.body, r.trailer = stored.body, stored.trailer
	r.tags = append(r.tags, stored.tags...) // of the body: their purges still void it, whatever tags it has now
	slices.Sort(r.tags)
	if r.tags = slices.Compact(r.tags); len(r.tags) > maxTags {
		return nil, tooManyTags
	}
	return r, reason
}

// head learns from the 200 that a HEAD got. It renews the stored response as a 304 would, or voids it because there is another response now
// (RFC 9111, section 4.3.5). It never renews a response that is for its own client, since the HEAD may be another client's.
func (a *attempt) head(header http.Header) {
	x, c, stored, now := a.exchange, a.cache, a.exchange.s.response, time.Now()
	old, own := headerOf(stored.header), saidIn(header, a.outer)
	same, other := rfc9111.Freshens(old, own.header, strconv.Itoa(len(stored.body)))
	if same && stored.policy.Reusable() {
		if r, reason := a.renewed(rfc9111.Update(old, own.header), own, now); reason == rfc9111.Storable {
			c.keepAnswer(x.r.Context(), x.s, filling{over: true}, r, x.held, a.spent)()
			return
		}
	}
	if !same && !other {
		return
	}
	if err := c.remove(x.r.Context(), x.s.slot); err != nil {
		c.tell.Backend(x.r.Context(), x.s.slot, err)
	}
}
