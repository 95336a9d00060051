package httpcache

import (
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// A waiter gets only a response that it would also get from the store when the answer arrives; the same function decides both. An answer that
// must be validated for each request is only for the client that asked. Its stored form says so, and the next requests do not wait.

// shareable reports whether the answer to this request may also answer its waiters, as far as that is known before the answer arrives.
func (x *exchange) shareable() bool {
	stored := x.s.response
	return x.r.Method == http.MethodGet && !x.s.pass && x.status.Fwd != rfc9111.FwdRequest &&
		(stored == nil || stored.policy.Reusable()) && (x.r.Header["Range"] == nil || stored != nil)
}

// reload reports whether the client insists on an answer that the handler gives to this request, not to an earlier one.
func (x *exchange) reload() bool { return x.q.NoCache || x.q.MaxAge.Given && x.q.MaxAge.Seconds == 0 }

// join makes x wait for the answer to an equal request, or makes x the request that brings the answer. A reload never waits.
func (x *exchange) join() (f *flight.Flight[outcome], lead bool) {
	if x.reload() {
		return x.cache.flights.Lead(x.s.slot)
	}
	f, lead = x.cache.flights.Join(x.s.slot, x.began)
	ctx := x.r.Context()
	until, _ := ctx.Deadline()
	f.Wanted(until, !lead && admission.Of(x.cache.origin).Inside(ctx))
	return f, lead
}

// takes reports whether another request's outcome may answer this one.
func (x *exchange) takes(o outcome) bool {
	r := o.response
	if !r.fits(rfc9111.Variant(r.fields, x.says), &x.says) {
		return false
	}
	if o.failed && !x.cache.isAllRemoved() { // the response was found before its removal was requested
		if void, _ := x.cache.barriersAtHand(r); void || x.cache.isUnremoved(x.key) {
			return false
		}
	}
	return r.policy.Decide(x.q, r.policy.Received) != rfc9111.Revalidate || o.failed && r.policy.OnError(x.q, time.Now())
}

// take answers with another request's outcome, if that is allowed.
func (x *exchange) take(o outcome) bool {
	if !x.takes(o) {
		x.unled = x.unled || !o.response.search.fits(x.says.Query)
		return false
	}
	r, now := o.response, time.Now()
	o.held.use()
	defer o.held.done()
	x.status.Collapsed = true
	x.cache.stats.collapsed.Add(1)
	x.cache.answer(x.w, x.r, r, now, x.status)
	return true
}
