package httpcache

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// renewal marks the request of a renewal on its way from Options.Renew to the cache.
type renewal struct {
	cache  *Cache
	of     *exchange // the exchange that found the response stale
	flight *flight.Flight[outcome]
	same   atomic.Bool // the request arrived at the cache as the same request
}

type renewalKey struct{}

func renewalOf(r *http.Request) *renewal {
	m, _ := r.Context().Value(renewalKey{}).(*renewal)
	return m
}

// Renews reports whether r is a renewal that the cache has sent to its [Options].Renew. Its header is that of a request that the cache
// was allowed to answer, so a middleware around the cache may treat it as one that it has admitted already: it need not ask
// for credentials, count it against a client's limit or record a visit.
func (c *Cache) Renews(r *http.Request) bool {
	m := renewalOf(r)
	return m != nil && m.cache == c
}

var errNotArrived = errors.New("the renewal did not arrive from Options.Renew at the cache as the request that was to be renewed")

// renewThrough renews the response that x found, by a request through Options.Renew, and never waits.
func (x *exchange) renewThrough() {
	f, end := x.leadRenewal()
	if f == nil {
		return
	}
	c := x.cache
	m := &renewal{cache: c, of: x, flight: f}
	r := x.outermost(context.WithValue(x.background(), renewalKey{}, m))
	x.held.use()
	done := func() { x.held.done(); end() }
	if r == nil || !c.works.Start(func() {
		defer done()
		begun := time.Now()
		defer func() {
			p := recover() // from a handler around the cache: renewNow handles panics inside it
			if m.same.Load() && p == nil {
				return
			}
			c.quiet.Add(x.s.slot, c.opt.RenewThrottle)
			c.tell.Done(r.Context(), mayfly.Event{Kind: mayfly.KindRefresh, Key: x.s.slot, Err: errNotArrived}, begun)
		}()
		ctx, cancel := c.works.On(r.Context())
		defer cancel()
		c.opt.Renew.ServeHTTP(&sink{header: make(http.Header)}, r.WithContext(ctx))
	}) {
		done()
	}
}

// outermost returns x's request as its client sent it, without conditions, or nil if that is not known.
func (x *exchange) outermost(ctx context.Context) *http.Request {
	u := rfc9111.ClientURL(x.r)
	if u == nil {
		return nil
	}
	r := &http.Request{
		Method: http.MethodGet, URL: u, Proto: x.r.Proto, ProtoMajor: x.r.ProtoMajor, ProtoMinor: x.r.ProtoMinor,
		Header: x.r.Header.Clone(), Body: http.NoBody, Host: x.r.Host, RemoteAddr: x.r.RemoteAddr, RequestURI: x.r.RequestURI, TLS: x.r.TLS,
	}
	withoutConditions(r.Header)
	return r.WithContext(ctx)
}

// renewMarked renews on the request that came through Options.Renew, if it is still the same request.
func (h *handler) renewMarked(w http.ResponseWriter, r *http.Request, m *renewal) {
	x, c := m.of, h.cache
	key, inner, ok := c.keys.AppendKey([]byte(c.prefix), r)
	if ok && c.asked(r.Context(), key) {
		h.next.ServeHTTP(w, r)
		return
	}
	says := c.selectors(r, key, inner)
	stored := x.s.response
	if !ok || string(key) != x.key || r.Method != http.MethodGet || !stored.fits(rfc9111.Variant(stored.fields, says), &says) {
		http.Error(w, errNotArrived.Error(), http.StatusMisdirectedRequest) // the client is a sink
		return
	}
	m.same.Store(true)
	status := rfc9111.CacheStatus{Key: x.status.Key, Fwd: rfc9111.FwdStale}
	again := &exchange{handler: h, w: w, r: r, says: says, key: x.key, begun: x.begun, s: x.s, status: status}
	again.renewNow(m.flight)
}
