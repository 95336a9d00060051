package httpcache

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// renew has the response that x found renewed in the background, if nobody does so already and there is room. It never
// waits. The handler is called with a request that is a copy: this one's ends with it.
func (x *exchange) renew() {
	c := x.cache
	if c.quiet.Has(x.s.slot) {
		return
	}
	select {
	case c.renewing <- struct{}{}:
	default:
		c.tell(x.r.Context(), mayfly.Event{Kind: mayfly.Refresh, Outcome: mayfly.Dropped, Key: x.s.slot})
		return
	}
	f, ok := c.flights.Lead(x.s.slot)
	if !ok {
		<-c.renewing
		return
	}
	end := func() {
		f.Land(outcome{again: true}, nil) // unless it has landed
		<-c.renewing
	}
	started := false
	defer func() { // also when Options.Background panics
		if !started {
			end()
		}
	}()
	behind := x.copy()
	started = c.works.Start(func() {
		defer end()
		behind.renewNow(f)
	})
}

// copy returns an exchange of the same, whose request lives on when x has been answered, and that nobody listens to.
func (x *exchange) copy() *exchange {
	r := x.r.Clone(x.background())
	r.Method, r.Body, r.ContentLength, r.TransferEncoding, r.Trailer = http.MethodGet, http.NoBody, 0, nil, nil
	for _, name := range []string{"Range", "If-Range", "If-None-Match", "If-Modified-Since", "Cache-Control", "Pragma"} {
		delete(r.Header, name)
	}
	status := rfc9111.CacheStatus{Key: x.status.Key, Fwd: rfc9111.FwdStale}
	return &exchange{handler: x.handler, w: &sink{header: make(http.Header)}, r: r, key: x.key, begun: x.begun, s: x.s, status: status}
}

// background is the context of a request in the background, but for its end.
func (x *exchange) background() context.Context {
	if x.cache.opt.Background != nil {
		return context.WithoutCancel(x.cache.opt.Background(x.r))
	}
	ctx := context.Background()
	for _, key := range []any{http.ServerContextKey, http.LocalAddrContextKey} {
		if v := x.r.Context().Value(key); v != nil {
			ctx = context.WithValue(ctx, key, v)
		}
	}
	return ctx
}

// renewNow renews, if this process gets to do it.
func (x *exchange) renewNow(f *flight.Flight[outcome]) {
	c := x.cache
	ctx, cancel := c.works.On(x.r.Context())
	defer cancel()
	ctx, cancelRun := context.WithTimeout(ctx, c.opt.Shared.Timeout)
	defer cancelRun()
	x.r = x.r.WithContext(ctx)
	begun := time.Now()
	x.asked = begun.Add(c.opt.Faults.RedisTimeout) // nobody waits: each trip may take its time
	e := mayfly.Event{Kind: mayfly.Refresh, Outcome: mayfly.OK, Key: x.s.slot}
	ended := false
	defer func() {
		if p := recover(); p != nil {
			e.Outcome, e.Err = mayfly.Failed, fmt.Errorf("the handler panicked: %v", p)
		} else if !ended {
			e.Outcome, e.Err = mayfly.Failed, errAborted
		}
		if e.Outcome != mayfly.OK {
			c.quiet.Add(x.s.slot, quietFor)
		}
		e.Took = time.Since(begun)
		c.tell(ctx, e)
	}()
	a := c.guard.Renew(ctx, x.s.slot, x.s.found)
	switch {
	case a.Err != nil:
		c.tell.Backend(ctx, x.s.slot, a.Err)
		c.release(ctx, a.Claim)
		e.Outcome, e.Err = mayfly.Failed, a.Err
	case a.Claim == nil: // another process does it, did it, or failed lately
		e.Outcome = mayfly.Refused
	default:
		x.forward(filling{claim: a.Claim, flight: f})
		if x.failed != nil {
			e.Outcome, e.Err = mayfly.Failed, x.failed
		}
	}
	ended = true
}

// quietFor is for how long a process that lost a renewal does not ask for it again.
const quietFor = lease.TTL / 4

// sink is the client of a renewal: nobody.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) Write(b []byte) (int, error) { return len(b), nil }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Flush()                      {}
