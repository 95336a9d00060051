package httpcache

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// renewAfter renews the response that x found, after x has answered the client. It does nothing if another renewal runs or too many do. The
// handler is called with x's request, which routers and middlewares still own.
func (x *exchange) renewAfter() {
	f, end := x.leadRenewal()
	if f == nil {
		return
	}
	defer end()
	http.NewResponseController(x.w).Flush() // if that fails, the answer is sent when this returns
	x.copy(x.r.Context()).renewNow(f)
}

// renewBehind renews the response in the background, and never waits. The handler is called with a copy of the request, since the
// original ends with its own handler.
func (x *exchange) renewBehind() {
	f, end := x.leadRenewal()
	if f == nil {
		return
	}
	behind := x.copy(x.background())
	x.held.use()
	done := func() { x.held.done(); end() }
	if !x.cache.works.Start(func() {
		defer done()
		behind.renewNow(f)
	}) {
		done()
	}
}

// leadRenewal returns the flight of a renewal that x should make, and the function that ends it. It returns nil if another request makes the
// renewal, or if too many run.
func (x *exchange) leadRenewal() (f *flight.Flight[outcome], end func()) {
	c := x.cache
	if c.quiet.Has(x.s.slot) {
		return nil, nil
	}
	select {
	case c.renewing <- struct{}{}:
	default:
		c.tell(x.r.Context(), mayfly.Event{Kind: mayfly.KindRefresh, Outcome: mayfly.OutcomeDropped, Key: x.s.slot})
		return nil, nil
	}
	f, ok := c.flights.Lead(x.s.slot)
	if !ok {
		<-c.renewing
		return nil, nil
	}
	return f, func() {
		f.Land(outcome{again: true}, nil) // has no effect if it has landed
		<-c.renewing
	}
}

// copy returns the same exchange with another context. Its answer is discarded.
func (x *exchange) copy(ctx context.Context) *exchange {
	c, r := x.cache, x.r.Clone(ctx)
	r.Method, r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = http.MethodGet, http.NoBody, 0, nil, nil
	withoutConditions(r.Header)
	status := rfc9111.CacheStatus{Key: x.status.Key, Fwd: rfc9111.FwdStale}
	return &exchange{handler: x.handler, w: &sink{header: make(http.Header)}, r: r, says: c.selectors(r, []byte(x.key), x.says.Inner), key: x.key, begun: x.begun, s: x.s, status: status}
}

// withoutConditions removes the header fields that make an answer partial or conditional.
func withoutConditions(h http.Header) {
	for _, name := range []string{"Range", "If-Range", "If-None-Match", "If-Modified-Since", "Cache-Control", "Pragma"} {
		delete(h, name)
	}
}

// background returns a context for a request in the background. It has the values that net/http itself put there, and does not end.
func (x *exchange) background() context.Context {
	ctx := context.Background()
	for _, key := range []any{http.ServerContextKey, http.LocalAddrContextKey} {
		if v := x.r.Context().Value(key); v != nil {
			ctx = context.WithValue(ctx, key, v)
		}
	}
	return ctx
}

// renewNow renews the response, if this process gets the claim.
func (x *exchange) renewNow(f *flight.Flight[outcome]) {
	c := x.cache
	ctx, cancel := c.works.On(x.r.Context())
	defer cancel()
	ctx, cancelRun := context.WithTimeout(ctx, c.opt.SharedTimeout)
	defer cancelRun()
	x.r = x.r.WithContext(ctx)
	begun := time.Now()
	x.asked = begun.Add(c.opt.RedisTimeout) // nobody waits: each round trip gets the full timeout
	e := mayfly.Event{Kind: mayfly.KindRefresh, Outcome: mayfly.OutcomeOK, Key: x.s.slot}
	ended := false
	defer func() {
		if p := recover(); p != nil {
			e.Outcome, e.Err = mayfly.OutcomeFailed, fmt.Errorf("the handler panicked: %v", p)
		} else if !ended {
			e.Outcome, e.Err = mayfly.OutcomeFailed, errAborted
		}
		if e.Outcome != mayfly.OutcomeOK && e.Outcome != mayfly.OutcomeDropped {
			c.quiet.Add(x.s.slot, quietFor)
		}
		e.Took = time.Since(begun)
		c.tell(ctx, e)
	}()
	if !x.tryTurn(ctx) { // the handler is busy with requests that clients wait for
		e.Outcome, ended = mayfly.OutcomeDropped, true
		return
	}
	defer func() { x.turn.end(admission.NoSample) }()
	a := c.guard.Renew(ctx, x.s.slot, x.s.found)
	switch {
	case a.Err != nil:
		c.tell.Backend(ctx, x.s.slot, a.Err)
		c.release(ctx, a.Claim)
		e.Outcome, e.Err = mayfly.OutcomeFailed, a.Err
	case a.Claim == nil: // another process renews it, has renewed it, or failed recently
		e.Outcome = mayfly.OutcomeRefused
	default:
		x.forward(filling{claim: a.Claim, flight: f})
		if x.failed != nil {
			e.Outcome, e.Err = mayfly.OutcomeFailed, x.failed
		}
	}
	ended = true
}

// quietFor is how long a process that did not get a renewal does not ask for it again.
const quietFor = lease.TTL / 4

// sink discards the answer of a renewal.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}
