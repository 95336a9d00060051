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

// Only a request whose answer may be for others has to wait for its turn at the handler. One that is known to be for its client
// never queues, and one that turns out to be gives its turn back at once: so a slow answer for one client, such as a long poll, holds up
// nobody for long.

// Origin is what the cache's handlers ask: Load.Origin, or one of its own. Its Stats tell how many requests run and wait.
func (c *Cache) Origin() *mayfly.Origin { return c.origin }

// turn is the right to ask the handler. It ends once, whoever ends it: the handler's return, what the answer proves to be, or time.
// A nil one is none.
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

// end gives the turn back, and says what is known of the handler. Only the first call counts.
func (t *turn) end(how admission.Outcome) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	t.permit.Done(how, time.Now())
}

// inside is ctx for a handler: caches of the same origin that it asks take no second permit.
func (t *turn) inside(ctx context.Context) context.Context {
	if t == nil {
		return ctx
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.permit.Inside(ctx)
}

// queues reports whether x has to wait for its turn. Trials do not, as they change nothing for clients, nor does who asks a closed cache.
func (x *exchange) queues() bool {
	c := x.cache
	return !x.lone && !c.opt.Report && c.works.Err() == nil && x.r.Header["Range"] == nil && x.shareable() && c.audiences.of(x.r) != one
}

// enter waits for x's turn, if it has none yet and needs one. f is the flight that x leads, or nil. When it returns an error, x is to be
// [exchange.turnedAway].
func (x *exchange) enter(f *flight.Flight[outcome]) error {
	if x.turn != nil || !x.queues() {
		return nil
	}
	c, ctx, begun := x.cache, x.r.Context(), time.Now()
	limiter := admission.Of(c.origin)
	wish := admission.Wish{Closing: c.works.Closing(), Patience: c.opt.Load.Timeout}
	wish.Until, _ = ctx.Deadline()
	if f != nil {
		wish.Place = limiter.Place()
		f.Queue(wish.Place.Joined)
		defer f.Turn()
	}
	p, err := limiter.Enter(ctx, wish)
	waited := time.Since(begun)
	x.asked = x.asked.Add(waited) // which was not Redis's fault
	e := mayfly.Event{Kind: mayfly.KindAdmission, Outcome: mayfly.OutcomeOK, Key: x.s.slot, N: 1, Took: waited, Err: err}
	switch {
	case errors.Is(err, admission.ErrClosed): // whoever comes later goes to the handler, too
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
	most, after := x.cache.opt.Load.Timeout, admission.TimedOut
	if at, _ := placeOf(x.r); !x.cache.audiences.paths.others.Has(at) {
		// It may be a long poll. A page that takes so long says nothing either: the limit aims at no more.
		most, after = most/4, admission.NoSample
	}
	x.turn = newTurn(p, most, after)
}

// turnedAway answers a request that got no turn, or whose deadline ended while it waited for the answer to another: with what is stored,
// where that may stand in for a handler that fails, or with a 503.
func (x *exchange) turnedAway(why error) {
	if errors.Is(x.r.Context().Err(), context.Canceled) {
		return // nobody is there to be answered
	}
	detail, again := "overloaded", x.cache.opt.Load.Timeout
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

// yields gives x's turn back unused: it may enter again.
func (x *exchange) yields() {
	x.turn.end(admission.NoSample)
	x.turn = nil
}

// tryTurn is for renewals, which do not queue.
func (x *exchange) tryTurn(ctx context.Context) bool {
	p, ok := admission.Of(x.cache.origin).Try(ctx)
	if ok {
		x.begins(p)
	}
	return ok
}

// ended is what the end of an attempt says about the handler.
func (a *attempt) ended() admission.Outcome {
	if a.end == failure || a.out.status >= 500 {
		return admission.Failed
	}
	return admission.OK
}

// eventStream reports whether a header is that of a stream without an end, which no cache should be told to keep.
func eventStream(h http.Header) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// notShared is what an answer that is not shared says about the handler.
func notShared(failed bool) admission.Outcome {
	if failed {
		return admission.Failed
	}
	return admission.NoSample
}

// audience is for whom the answers of a path or a route are.
type audience uint8

const (
	unheard audience = iota // nothing was answered yet
	others                  // some are for others
	one                     // all, lately, were for the client who asked
)

// audiences remember that, so that what is for one client need not queue to find out. A path knows better than its route.
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

// For how long it is remembered. That there are answers for others is forgotten later: while they are hits nobody says so again, and it is
// after them, when Redis is emptied, that it has to be known.
const (
	forOthers = 24 * time.Hour
	forOne    = 10 * time.Minute
)

// placeOf is what r is remembered by. The query does not count: that of a long poll is new each time.
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

// learn remembers for whom the answer to r is.
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
