package httpcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// handler is one handler behind the cache.
type handler struct {
	cache *Cache
	next  http.Handler
}

// ServeHTTP answers from the cache if it may, and otherwise from the handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.cache.opt.Renew != nil {
		if m := renewalOf(r); m != nil && m.cache == h.cache {
			h.renewMarked(w, r, m)
			return
		}
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.pass(w, r, rfc9111.FwdMethod)
		return
	}
	if to := r.Header["Upgrade"]; len(to) > 0 && to[0] != "" && !strings.EqualFold(to[0], "h2c") { // another protocol: the handler needs the original writer
		h.next.ServeHTTP(w, r)
		return
	}
	c := h.cache
	var room [256]byte
	key, inner, ok := c.keys.AppendKey(append(room[:0], c.prefix...), r)
	if ok = ok && len(key) <= rfc9111.MaxURL; !ok { // also if the prefix alone makes it too long
		c.tellTarget(r)
	}
	if !ok || past(r) {
		h.pass(w, r, rfc9111.FwdBypass)
		return
	}
	q := rfc9111.ParseCacheControl(r.Header)
	says := c.selectors(r, key, inner)
	if c.local != nil && !c.opt.Report && h.hit(w, r, key, &says, q) {
		return
	}
	if c.asked(r.Context(), key) {
		h.next.ServeHTTP(w, r)
		return
	}
	if q.NoStore || c.works.Err() != nil {
		h.pass(w, r, rfc9111.FwdBypass)
		return
	}
	arrived := exchange{handler: h, w: w, r: r, q: q, says: says, key: string(key), begun: time.Now(), began: c.flights.Now()}
	if !c.opt.Report && arrived.hit() {
		return
	}
	x := new(exchange) // only what is not a plain hit needs one in the heap
	*x = arrived
	defer func() { x.held.done(); x.turn.end(admission.NoSample) }()
	if c.opt.Report {
		x.report()
		return
	}
	x.run()
}

// tellTarget reports a request for whose URL there is no key.
func (c *Cache) tellTarget(r *http.Request) {
	if c.ns.Observer != nil {
		err := fmt.Errorf("no URL to be cached: %.100q of host %.100q", r.RequestURI, r.Host)
		c.tell(r.Context(), mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeBypass, Err: err})
	}
}

// past reports whether a request bypasses the cache: its conditions are meant for the origin, it has a body, which may matter to the
// handler, or it wants an event stream.
func past(r *http.Request) bool {
	accept := r.Header["Accept"]
	return rfc9111.ForOrigin(r.Header) || r.ContentLength != 0 || len(accept) > 0 && accept[0] == "text/event-stream"
}

// hit answers from this process's memory. This path must be fast.
func (h *handler) hit(w http.ResponseWriter, r *http.Request, key []byte, says *rfc9111.Selectors, q rfc9111.Directives) bool {
	c := h.cache
	it := c.atHand(key, says)
	if it == nil || it.response == nil {
		return false
	}
	now := time.Now()
	if it.response.policy.Decide(q, now) != rfc9111.Serve || c.isTooOld(it.response, now) || !c.isAllRemoved() {
		return false
	}
	if void, missing := c.barriersAtHand(it.response); void || len(missing) > 0 {
		return false
	}
	c.stats.local.Add(1)
	if len(it.response.body) > uncounted {
		copied := *it
		held, _ := c.bodies.hold(&copied, true)
		defer held.done()
	}
	c.answer(w, r, it.response, now, rfc9111.CacheStatus{Hit: true, Key: string(key[len(c.prefix):])})
	return true
}

// exchange is one request that was not answered from memory.
type exchange struct {
	*handler
	w      http.ResponseWriter
	r      *http.Request
	q      rfc9111.Directives
	says   rfc9111.Selectors // selects the variant
	key    string
	begun  time.Time
	began  flight.Moment
	asked  time.Time // when the last look first asked Redis
	s      sight
	status rfc9111.CacheStatus
	failed error // why the stored response was not renewed
	held   *held // the body of the response that was found
	turn   *turn // the right to call the handler
	unled  bool  // the rule of its path led to an answer that was not for x's query: x uses the key of its own URL
	lone   bool  // the answer x waited for is for another client alone, or waits for x: x's answer is for x only
}

// outcome is what the waiters of a flight get: a response, if it fits them, or the hint to look again. With neither, the answer
// cannot be shared, and each waiter calls the handler itself.
type outcome struct {
	response *response
	held     *held
	failed   bool // the response stands in for a handler that failed
	again    bool
	lone     bool // the answer was for its client alone
	refused  bool // the handler was not called: it is overloaded
}

// maxLooks bounds how often a request looks again because the answer that it waited for did not fit it, or did not come.
const maxLooks = 16

// run answers the request, depending on what is stored:
//
//	fresh enough                from the cache
//	stale, and may be served    from the cache, and renews it afterwards
//	stale, must be validated    asks the handler whether it is still good
//	nothing                     asks the handler
//
// Equal requests cause one call of the handler, and the others wait for its answer, unless a recent answer could not be
// shared.
func (x *exchange) run() {
	c, ctx := x.cache, x.r.Context()
	x.explain(time.Now())
	for looks := 1; ; looks++ {
		if looks > 1 {
			x.look(ctx)
		}
		if x.serve() {
			return
		}
		if x.q.OnlyIfCached {
			x.refuse()
			return
		}
		if !x.shareable() || looks > maxLooks {
			x.alone()
			return
		}
		f, lead := x.join()
		if lead {
			if x.lead(f) {
				return
			}
			continue
		}
		if f == nil {
			x.alone()
			return
		}
		leave, circle := nested.enter(inside(ctx), f)
		patience := c.opt.SharedWait - time.Since(x.begun)
		if circle {
			patience = 0
		}
		wait, cancel := context.WithTimeout(ctx, patience)
		out, again, err := f.Wait(wait, x.began)
		cancel()
		leave()
		switch {
		case ctx.Err() != nil:
			x.turnedAway(ctx.Err())
			return
		case err != nil && circle:
			x.lone = true // and must not queue: a request that holds a turn may be waiting for x
			x.alone()
			return
		case err != nil:
			c.tell(ctx, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeTimedOut, Key: x.s.slot, Took: time.Since(x.begun)})
			x.alone()
			return
		case out.refused:
			x.turnedAway(mayfly.ErrOverloaded)
			return
		case out.response != nil && x.take(out):
			return
		case !again && !out.again && (out.response == nil || !out.response.policy.Reusable()):
			x.lone = out.lone
			x.alone()
			return
		}
	}
}

// hit looks, for the first time, and answers if Redis has a response that is fresh enough, as most often. It keeps x out of the heap: nothing may
// hold x after it.
func (x *exchange) hit() bool {
	x.find(x.r.Context(), x.begun)
	if x.s.response == nil || x.held != nil {
		return false
	}
	now := time.Now()
	if x.s.response.policy.Decide(x.q, now) != rfc9111.Serve {
		return false
	}
	x.cache.stats.hits.Add(1)
	if x.send(mayfly.OutcomeHitRedis, now) { // nobody else has the response, and nothing follows
		x.s.found.GiveBack()
		x.s.item = item{}
	}
	return true
}

// look looks up what is stored for the request.
func (x *exchange) look(ctx context.Context) {
	x.find(ctx, time.Now())
	x.explain(time.Now())
}

// find finds what is stored for the request, beginning at now.
func (x *exchange) find(ctx context.Context, now time.Time) {
	c := x.cache
	x.asked = now
	x.findWithRoom(ctx)
	if x.s.response != nil && c.isTooOld(x.s.response, now) {
		x.s.response = nil
	}
	if r := x.s.response; r != nil && len(r.tags) > 0 && x.s.unasked == nil {
		within, cancel := c.within(ctx, now)
		purged, err := c.purged(within, r)
		cancel()
		if x.s.unasked = err; purged || err != nil {
			x.s.response = nil
		}
	}
	if err := x.s.unasked; err != nil && ctx.Err() == nil && !errors.Is(err, errUnremoved) && !errors.Is(err, errNoRoom) {
		c.tell.Backend(ctx, x.s.slot, err)
	}
	x.status = rfc9111.CacheStatus{Key: strings.TrimPrefix(x.key, c.prefix)}
}

// explain says, for Cache-Status, why what was found will not do, in case it turns out that it does not.
func (x *exchange) explain(now time.Time) {
	switch x.status.Fwd = rfc9111.FwdMiss; {
	case x.s.response != nil && x.s.response.policy.Left(now) > 0:
		x.status.Fwd = rfc9111.FwdRequest
	case x.s.response != nil:
		x.status.Fwd = rfc9111.FwdStale
	case x.s.unlisted:
		x.status.Fwd = rfc9111.FwdVaryMiss
	case x.s.index == nil:
		x.status.Fwd = rfc9111.FwdURIMiss
	}
}

// serve answers from what was found, if it is good enough.
func (x *exchange) serve() bool {
	if x.s.response == nil {
		return false
	}
	c, now, due, outcome := x.cache, time.Now(), false, mayfly.OutcomeHitRedis
	switch x.s.response.policy.Decide(x.q, now) {
	case rfc9111.Serve:
		c.stats.hits.Add(1)
	case rfc9111.Renew:
		switch {
		case c.opt.Renew != nil:
			x.renewThrough()
		case c.opt.RenewBackground:
			x.renewBehind()
		default:
			due = true
		}
		fallthrough
	case rfc9111.ServeStale:
		outcome = mayfly.OutcomeStale
		c.stats.stale.Add(1)
	default:
		return false
	}
	x.send(outcome, now)
	if due {
		x.renewAfter()
	}
	return true
}

// send answers with the response that was found, and reports whether the writer is done with its body.
func (x *exchange) send(how mayfly.Outcome, now time.Time) (done bool) {
	c := x.cache
	if c.ns.Observer != nil && !x.s.local {
		c.tell(x.r.Context(), mayfly.Event{Kind: mayfly.KindRead, Outcome: how, Key: x.s.slot, Took: time.Since(x.begun)})
	}
	return c.answer(x.w, x.r, x.s.response, now, rfc9111.CacheStatus{Hit: true, Key: x.status.Key})
}

// serveStale answers with the stored response, in place of a handler that failed.
func (x *exchange) serveStale(why error) {
	x.serveInstead(why, "stale-if-error")
}

// serveInstead answers with the stored response, and gives the client the reason in one word.
func (x *exchange) serveInstead(why error, detail string) {
	c, now := x.cache, time.Now()
	c.stats.stale.Add(1)
	c.tell(x.r.Context(), mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeStale, Key: x.s.slot, Took: time.Since(x.begun), Err: why})
	x.status.Detail, x.failed = detail, why
	c.answer(x.w, x.r, x.s.response, now, x.status)
}

// refuse answers an only-if-cached request for which nothing is stored.
func (x *exchange) refuse() {
	x.status.Fwd = ""
	x.status.Detail = "only-if-cached"
	x.w.Header()["Cache-Status"] = []string{x.cache.say(x.status)}
	http.Error(x.w, http.StatusText(http.StatusGatewayTimeout), http.StatusGatewayTimeout)
}

// say formats the value of Cache-Status.
func (c *Cache) say(s rfc9111.CacheStatus) string {
	var room [256]byte
	s.Cache = c.opt.Server
	return string(s.Append(room[:0]))
}

// pass sends a request that the cache cannot answer to the handler. If the request changes something, the stored responses for it are voided.
func (h *handler) pass(w http.ResponseWriter, r *http.Request, why rfc9111.Forward) {
	c := h.cache
	c.stats.passed.Add(1)
	var answer *response // to store for later GETs; nil: none
	outer, sent := w.Header().Clone(), time.Now()
	p := c.newCapture(w, r, r.Context())
	p.drop = func(error) {}
	p.decide = func(status int, header http.Header) (mode, int) {
		do, s := through, rfc9111.CacheStatus{Fwd: why}
		if rfc9111.Canonical(header)["Cache-Group-Invalidation"] != nil {
			key, _ := c.keys.Key(r)
			c.invalidateGroups(r.Context(), rfc9111.InvalidatedGroups(key, r.Method, header))
		}
		if keys := c.keys.Invalidated(r, status, header); len(keys) > 0 {
			c.invalidate(r.Context(), keys)
			x := rfc9111.Exchange{Request: r, Status: status, Header: header, Sent: sent, Received: time.Now()}
			if answer = c.answersGets(x, outer); answer != nil {
				do, s.Stored = storing, true
			}
		}
		header["Cache-Status"] = append(header["Cache-Status"], c.say(s))
		return do, status
	}
	p.leave = func(header http.Header) { p.decide(http.StatusOK, header); answer = nil } // the request may have changed something
	defer func() { p.deliver(); p.held.done() }()                                        // also before a panic continues
	theirs := own(r, r.Context())
	defer handBack(r, theirs)
	h.next.ServeHTTP(p, theirs)
	p.returned()
	p.finish()
	if answer != nil {
		c.storePost(r, answer, p)
	}
}
