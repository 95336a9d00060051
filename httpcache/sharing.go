package httpcache

import (
	"net/http"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// shareable reports whether the answer to this request may be the answer to others who wait for it.
func (x *exchange) shareable() bool {
	return x.r.Method == http.MethodGet && !x.s.pass && x.status.Fwd != rfc9111.FwdRequest &&
		(x.r.Header["Range"] == nil || x.s.response != nil)
}

// take answers with what another request has brought, if it fits this one.
func (x *exchange) take(r *response) bool {
	if rfc9111.Variant(r.fields, x.r.Header) != r.variant {
		return false
	}
	// The handler was asked after this request came, or while nothing usable was stored: its answer is for all.
	x.status.Collapsed = true
	x.cache.stats.collapsed.Add(1)
	x.cache.answer(x.w, x.r, r, time.Now(), x.status)
	return true
}
