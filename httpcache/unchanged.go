package httpcache

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// A response confirmed as unchanged, by a 304 or by the header of an answer to HEAD, is kept with a new header.

// refresh answers with the stored response that the handler confirmed as unchanged, and stores its new header.
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

// renewed is the stored response with a new header, of which own is new. Its body is as old as it was: a purge of its tags since then voids it, also
// one that came before the handler said that it is unchanged.
func (a *attempt) renewed(header http.Header, own said, now time.Time) (*response, rfc9111.Reason) {
	stored, as := a.s.response, *a.r
	added := addedOf(stored.header)
	for name := range rfc9111.Canonical(own.header) {
		added[name] = own.added[name]
	}
	as.Method = http.MethodGet // whichever method confirmed it
	answered := rfc9111.Exchange{Request: &as, Status: stored.status, Header: header, Sent: a.sent, Received: now}
	r, reason := a.cache.newResponse(answered, &a.says, a.exchange.s.index, said{header, added}, min(a.epoch, stored.epoch))
	if r != nil {
		r.body, r.trailer = stored.body, stored.trailer
	}
	return r, reason
}

// head learns from the 200 that a HEAD got: it renews the stored response as a 304 would, or says that there is another now
// (RFC 9111, section 4.3.5).
func (a *attempt) head(header http.Header) {
	x, c, stored, now := a.exchange, a.cache, a.exchange.s.response, time.Now()
	old, own := headerOf(stored.header), saidIn(header, a.outer)
	same, known := rfc9111.Freshens(old, own.header, strconv.Itoa(len(stored.body)))
	if !known {
		return
	}
	if same {
		if r, reason := a.renewed(rfc9111.Update(old, own.header), own, now); reason == rfc9111.Storable {
			c.keepAnswer(x.r.Context(), x.s, filling{over: true}, r, x.held, a.spent)()
			return
		}
	}
	if err := c.remove(x.r.Context(), x.s.slot); err != nil {
		c.tell.Backend(x.r.Context(), x.s.slot, err)
	}
}
