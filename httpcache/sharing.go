package httpcache

import (
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// shareable reports whether the answer to this request may be the answer to others who wait for it.
func (x *exchange) shareable() bool {
	return x.r.Method == http.MethodGet && !x.s.pass && x.status.Fwd != rfc9111.FwdRequest &&
		(x.r.Header["Range"] == nil || x.s.response != nil)
}

// reload reports whether the client wants an answer that the handler gives to this request, not to one before it.
func (x *exchange) reload() bool { return x.q.NoCache || x.q.MaxAge.Given && x.q.MaxAge.Seconds == 0 }

// join makes x one of those who wait for the answer to the same request, or the one who brings it. A reload waits for nobody.
func (x *exchange) join() (f *flight.Flight[outcome], lead bool) {
	if x.reload() {
		return x.cache.flights.Lead(x.s.slot)
	}
	return x.cache.flights.Join(x.s.slot, x.began)
}

// take answers with what another request has brought, if it fits this one.
func (x *exchange) take(r *response) bool {
	if rfc9111.Variant(r.fields, x.r.Header) != r.variant {
		return false
	}
	x.status.Collapsed = true
	x.cache.stats.collapsed.Add(1)
	x.cache.answer(x.w, x.r, r, time.Now(), x.status)
	return true
}
