package httpcache

import (
	"context"
	"errors"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/recently"
)

// Only a request whose answer may be shared waits for its turn at the handler. A request whose answer is known to be for its client alone never
// queues. If the answer turns out to be for its client alone, the request gives its turn back at once. So a slow answer for one client, such as a
// long poll, delays nobody for long.

// Origin returns what admits requests to the handlers: Options.Origin, or the cache's own. Its Stats count the running and the waiting requests.
func (c *Cache) Origin() *mayfly.Origin { return c.origin }

// turn is the right to call the handler. It ends once: when the handler returns, when the answer cannot be shared, or when its time is
// up. A nil turn does nothing.
type turn struct {
	mu     sync.Mutex // guards permit: the timer ends it too
	permit admission.Permit
	timer  *time.Timer
}

func newTurn(p admission.Permit, most time.Duration, after admission.Outcome) *turn {
	t := &turn{permit: p}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(most, func() { t.end(after) })
	return t
}

// end gives the turn back, with a sample of the handler's load. Only the first call counts.
func (t *turn) end(how admission.Outcome) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.permit.Done(how, time.Now())
}

// inside returns the handler's context. Caches of the same origin that are called with it take no second permit.
func (t *turn) inside(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.permit.Inside(ctx)
}

// queues reports whether x has to wait for its turn. Requests under Options.Report do not, because they must change nothing for clients. Requests
// to a closed cache do not either.
func (x *exchange) queues() bool {
	c := x.cache
	return !x.lone && !c.opt.Report && c.works.Err() == nil && x.r.Header["Range"] == nil && x.shareable() && c.audiences.of(x.r) != one
}

// enter waits for x's turn, if x needs one and has none yet. f is the flight that x leads, or nil. If enter returns an error, the caller calls
// [exchange.turnedAway].
func (x *exchange) enter(f *flight.Flight[outcome]) error {
	if x.turn != nil || !x.queues() {
		return nil
	}
	c, ctx, begun := x.cache, x.r.Context(), time.Now()
	limiter := admission.Of(c.origin)
	wish := admission.Wish{Closing: c.works.Closing(), Patience: c.opt.LoadTimeout}
	wish.Until, _ = ctx.Deadline()
	if f != nil {
		wish.Place = limiter.Place()
		f.Queue(wish.Place.Joined)
		defer f.Turn()
	}
	p, err := limiter.Enter(ctx, wish)
	waited := time.Since(begun)
	x.asked = x.asked.Add(waited) // the wait for a turn does not use up RedisTimeout
	e := mayfly.Event{Kind: mayfly.KindAdmission, Outcome: mayfly.OutcomeOK, Key: x.s.slot, N: 1, Took: waited, Err: err}
	switch {
	case errors.Is(err, admission.ErrClosed): // later requests go to the handler too
		return nil
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		e.Outcome = mayfly.OutcomeTimedOut
		c.tell(ctx, e)
		return err
	case p.Queued() > 0:
		c.tell(ctx, e)
	}
	x.begins(p)
	return nil
}

// begins gives x its turn.
func (x *exchange) begins(p admission.Permit) {
	most, after := x.cache.opt.LoadTimeout, admission.TimedOut
	if at, _ := placeOf(x.r); !x.cache.audiences.paths.others.Has(at) {
		// It may be a long poll. An answer this slow is not a sample of the handler's load either: the limit aims for much shorter times.
		most, after = most/4, admission.NoSample
	}
	x.turn = newTurn(p, most, after)
}

// turnedAway answers a request that got no turn, or whose deadline passed while it waited for another request's answer. The answer is the stored
// response, if that may stand in for a failing handler, and otherwise a 503.
func (x *exchange) turnedAway(why error) {
	if errors.Is(x.r.Context().Err(), context.Canceled) {
		return // the client has left
	}
	detail, again := "overloaded", x.cache.opt.LoadTimeout
	if !errors.Is(why, mayfly.ErrOverloaded) {
		detail, again = "deadline", time.Second
	}
	if r := x.s.response; r != nil && r.policy.OnError(x.q, time.Now()) {
		x.serveInstead(why, detail)
		return
	}
	x.status.Fwd, x.status.Detail = "", detail
	h := x.w.Header()
	h["Cache-Status"] = []string{x.cache.say(x.status)}
	h.Set("Cache-Control", "no-store")
	h.Set("Retry-After", strconv.Itoa(int(math.Ceil(again.Seconds()))))
	http.Error(x.w, http.StatusText(http.StatusServiceUnavailable), http.StatusServiceUnavailable)
}

// yields gives x's turn back unused. x may enter again.
func (x *exchange) yields() {
	x.turn.end(admission.NoSample)
	x.turn = nil
}

// tryTurn takes a turn only if one is free. Renewals use it, because they do not queue.
func (x *exchange) tryTurn(ctx context.Context) bool {
	p, ok := admission.Of(x.cache.origin).Try(ctx)
	if ok {
		x.begins(p)
	}
	return ok
}

// ended returns what the end of an attempt says about the handler's load.
func (a *attempt) ended() admission.Outcome {
	if a.end == failure || a.out.status >= 500 {
		return admission.Failed
	}
	return admission.OK
}

// eventStream reports whether a header announces an event stream, which never ends.
func eventStream(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// notShared returns what an answer that is not shared says about the handler's load.
func notShared(failed bool) admission.Outcome {
	if failed {
		return admission.Failed
	}
	return admission.NoSample
}

// audience says whether the answers of a path or a route can be shared.
type audience uint8

const (
	unheard audience = iota // no answer yet
	others                  // some can be shared
	one                     // all recent ones were for the requesting client alone
)

// audiences remember the audience of paths and routes, so that requests whose answers are for one client alone need not queue. A path's own
// audience takes precedence over its route's.
type audiences struct {
	paths, routes struct{ others, one *recently.Keys }
}

func newAudiences() *audiences {
	a := new(audiences)
	for _, k := range []**recently.Keys{&a.paths.others, &a.paths.one, &a.routes.others, &a.routes.one} {
		*k = recently.New(1024)
	}
	return a
}

// How long an audience is remembered. Shareable answers are remembered longer, because hits do not refresh the memory. It is needed when the hits
// stop because Redis was emptied.
const (
	forOthers = 24 * time.Hour
	forOne    = 10 * time.Minute
)

// placeOf returns the keys under which r's audience is remembered. The query is left out, since a long poll has a new one each time.
func placeOf(r *http.Request) (at, route string) {
	return r.Host + r.URL.Path, r.Host + path.Dir(r.URL.Path)
}

func (a *audiences) of(r *http.Request) audience {
	at, route := placeOf(r)
	switch {
	case a.paths.others.Has(at):
		return others
	case a.paths.one.Has(at):
		return one
	case a.routes.others.Has(route):
		return others
	case a.routes.one.Has(route):
		return one
	}
	return unheard
}

// learn remembers the audience of the answer to r.
func (a *audiences) learn(r *http.Request, is audience) {
	at, route := placeOf(r)
	if is == others {
		a.paths.others.Add(at, forOthers)
		a.routes.others.Add(route, forOthers)
		return
	}
	a.paths.one.Add(at, forOne)
	a.routes.one.Add(route, forOne)
}
