package httpcache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// attempt is one call of the handler.
type attempt struct {
	*exchange
	fill   filling
	ctx    context.Context // the handler's context
	out    *capture
	outer  http.Header // the header as handlers around the cache had set it
	leaves *leaving    // watches whether the client leaves
	asked  *response   // the stored response that the handler is to revalidate; nil: none
	sent   time.Time
	epoch  int64         // the version of the purges when the handler was called
	spent  time.Duration // the part of RedisTimeout used before the handler was called

	end    ending
	given  bool      // sharing was given up: the answer is for this client alone
	answer *response // what is to be stored, without its body
	reason error     // why the end is failure
}

// ending is the result of an attempt.
type ending uint8

const (
	passed      ending = iota // the client got the answer, and nobody else does
	captured                  // the client got the answer, and it is to be stored
	notModified               // the stored response is still good
	failure                   // the handler failed, and the stored response stands in
)

// forward calls the handler, and answers the client. Whatever happens, the claim ends and the waiters are told.
func (x *exchange) forward(fill filling) {
	c := x.cache
	c.stats.forwarded.Add(1)
	a := &attempt{exchange: x, fill: fill, outer: x.w.Header().Clone(), epoch: unknown}
	found := mayfly.OutcomeBypass
	if x.s.unasked == nil {
		found = mayfly.OutcomeMiss
		within, cancel := c.within(x.r.Context(), x.asked)
		a.epoch = c.epochs.at(within, c)
		if fill.stores() {
			c.prepare(within, &x.s)
		}
		cancel()
	}
	a.spent = time.Since(x.asked)
	var why error
	if errors.Is(x.s.unasked, errNoRoom) {
		why = errNoRoom
	}
	a.tell(mayfly.KindRead, found, why)
	a.ctx, a.leaves = newLeaving(c.asking(nodes.WithPurse(x.turn.inside(x.r.Context()), x.purse()), x.key, fill), c.opt.SharedTimeout)
	defer a.leaves.end()
	if !fill.wanted() {
		a.leaves.endsHandler()
	}
	a.fill.beat = c.keep(x.r.Context(), fill.claim)
	defer a.fill.stop()
	defer func() { a.out.held.done() }()
	rfc9111.Frame(a.outer)

	a.call(true)
	if a.end == notModified && !rfc9111.Selects(headerOf(a.asked.header), a.out.header) {
		a.call(false) // the 304 is about another response than the stored one
	}
	x.turn.end(a.ended()) // before a slow client has received everything
	stored := func() {}
	a.tellLoad()
	switch a.end {
	case captured:
		stored = a.store()
	case notModified:
		a.refresh()
		return
	case failure:
		rested := c.rest(a.ctx, fill.claim)
		fill.land(outcome{response: x.s.response, held: x.held, failed: true}, false)
		x.serveStale(a.reason)
		rested()
		return
	}
	a.out.finish()
	stored()
}

// call calls the handler, and with validate asks it to revalidate the stored response. If the handler panics or exits before the client got
// anything, a stored response may stand in. Otherwise the client keeps what was written, and the panic continues.
func (a *attempt) call(validate bool) {
	a.out = a.cache.newCapture(a.w, a.r, a.ctx)
	a.out.decide, a.out.drop, a.out.leave = a.decide, a.drop, a.leave
	a.out.yield = func() { a.turn.end(admission.NoSample) }
	a.end, a.asked, a.answer, a.sent = passed, nil, nil, time.Now()
	r := a.request(validate)
	a.fill.reads()
	returned := false
	defer func() {
		if returned {
			return
		}
		a.turn.end(admission.Failed)
		if a.standsIn() && (a.out.mode == undecided || a.out.mode == swallow) {
			if p := recover(); p != nil {
				a.end, a.reason, a.exchange.w = failure, fmt.Errorf("the handler panicked: %v", p), a.out.next()
				return
			}
		}
		a.reason = errAborted
		a.tellLoad()
		a.tell(mayfly.KindFill, mayfly.OutcomeFailed, errAborted)
		a.fill.land(outcome{}, false)
		a.cache.rest(a.r.Context(), a.fill.claim)
		a.out.deliver()
	}()
	defer handBack(a.exchange.r, r)
	a.next.ServeHTTP(a.out, r)
	a.out.returned()
	a.exchange.w = a.out.next()
	returned = true
}

// request returns the handler's request. It has the cache's conditions if there is a stored response to revalidate, and no conditions if others
// want the whole answer.
func (a *attempt) request(validate bool) *http.Request {
	r, stored := own(a.r, a.ctx), a.s.response
	if stored == nil && !(a.fill.wanted() && rfc9111.Conditional(r.Header)) {
		return r
	}
	var validators http.Header
	if stored != nil && validate {
		validators = headerOf(stored.header)
	}
	if rfc9111.AskValid(r.Header, validators) {
		a.asked = stored
	}
	return r
}

// own returns a copy of r that the handler may change. The cache decides by the client's request.
func own(r *http.Request, ctx context.Context) *http.Request {
	theirs := r.WithContext(ctx)
	theirs.Header = r.Header.Clone()
	if r.URL != nil {
		url := *r.URL
		theirs.URL = &url
	}
	return theirs
}

// handBack copies the forms and the pattern that the handler's request got into the original request. Handlers around the cache may need them,
// and net/http removes the files of a form.
func handBack(r, theirs *http.Request) {
	r.Pattern, r.Form, r.PostForm, r.MultipartForm = theirs.Pattern, theirs.Form, theirs.PostForm, theirs.MultipartForm
}

// standsIn reports whether the stored response may be served in place of a failure.
func (a *attempt) standsIn() bool {
	stored := a.exchange.s.response
	return stored != nil && stored.policy.OnError(a.q, time.Now())
}

// fails reports whether a status counts as failure: one of StaleOn or, if the stored response has stale-if-error, one of the
// four that RFC 5861 names.
func (a *attempt) fails(status int) bool {
	if status < 500 || !a.standsIn() {
		return false
	}
	return slices.Contains(a.cache.opt.StaleOn, status) || slices.Contains([]int{500, 502, 503, 504}, status) &&
		rfc9111.ParseCacheControl(headerOf(a.s.response.header)).StaleIfError.Given
}

// decide says what to do with the handler's final answer.
func (a *attempt) decide(status int, header http.Header) (mode, int) {
	c, x, now := a.cache, a.exchange, time.Now()
	if a.asked != nil && status == http.StatusNotModified {
		a.end = notModified
		c.audiences.learn(x.r, others)
		return swallow, status
	}
	if a.fails(status) {
		a.end, a.reason = failure, fmt.Errorf("the handler answered %d", status)
		x.status.FwdStatus = status
		return swallow, status
	}
	c.routes.apply(x.r, status, header, c.opt.Targeted)
	if x.r.Method == http.MethodHead && x.s.response != nil && x.s.response.status == http.StatusOK && status == http.StatusOK && x.s.unasked == nil {
		a.head(header)
	}
	var reason rfc9111.Reason
	answered := rfc9111.Exchange{Request: x.r, Status: status, Header: header, Sent: a.sent, Received: now}
	epoch := a.epoch
	if !a.fill.stores() { // waiters get it anyway: after a purge nobody can join them
		epoch = max(epoch, 0)
	}
	a.answer, reason = c.newResponse(answered, &x.says, x.s.index, saidIn(header, a.outer), epoch)
	n, err := strconv.ParseInt(header.Get("Content-Length"), 10, 64)
	if err == nil && n > c.opt.MaxBody && (reason == rfc9111.Storable || reason == tooManyTags || reason == purgesUnknown) {
		reason = tooLarge
	}
	if a.fill.renews && slices.Contains(c.opt.StaleOn, status) {
		reason = failedRenewal
	}
	do := through
	if reason != rfc9111.Storable || !a.fill.wanted() {
		a.give(status >= 500, string(reason))
		switch {
		case reason == rfc9111.Storable:
			c.audiences.learn(x.r, others)
		case status < 500 && x.r.Method == http.MethodGet && x.r.Header["Range"] == nil:
			c.audiences.learn(x.r, one)
		}
		a.refused(reason, answered)
	} else {
		do, a.end = storing, captured
		if !a.answer.policy.Reusable() {
			a.lone()
		} else {
			c.audiences.learn(x.r, others)
		}
		if eventStream(header) { // which may never end
			a.turn.end(admission.NoSample)
		}
		x.status.Stored = a.fill.stores()
		x.status.TTL, x.status.HasTTL = a.answer.policy.Left(now), true
	}
	header["Cache-Status"] = append(header["Cache-Status"], c.say(x.status))
	// The client may have sent a condition that was removed from the handler's request.
	conditions := rfc9111.Conditional(x.r.Header) && (a.fill.wanted() || x.s.response != nil)
	if status == http.StatusOK && conditions && rfc9111.NotModified(x.r.Header, rfc9111.Canonical(header), now) {
		rfc9111.StripBody(header)
		return do, http.StatusNotModified
	}
	return do, status
}

// newResponse returns what is stored of an answer, without its body. index and says tell its variant, and own holds the fields that the handler
// itself set. It returns nil if the answer may not be stored.
func (c *Cache) newResponse(x rfc9111.Exchange, says *rfc9111.Selectors, index *item, own said, epoch int64) (*response, rfc9111.Reason) {
	policy, reason := c.rules.Judge(x)
	if reason != rfc9111.Storable {
		return nil, reason
	}
	fields, _ := rfc9111.ParseVary(rfc9111.Canonical(x.Header))
	if says.Inner != "" || index != nil && byInner(index.index.fields) {
		fields = slices.Insert(fields, 0, rfc9111.InnerURL)
	}
	s := &response{
		status: x.Status, policy: policy, epoch: epoch, tags: c.tagsOf(x.Request, rfc9111.Canonical(own.header)),
		fields: fields, variant: rfc9111.Variant(fields, *says), header: fieldsOf(c.rules.Stored(own.header, policy.Received), own.added),
	}
	if c.opt.NoVarySearch {
		s.search = newSearched(rfc9111.ParseSearch(x.Header), says.Query)
	}
	switch {
	case sizeOf(s.header) > maxHeader:
		return nil, tooLarge
	case len(s.tags) > maxTags:
		return nil, tooManyTags
	case len(s.tags) > 0 && epoch == unknown:
		return nil, purgesUnknown
	}
	return s, rfc9111.Storable
}

// give gives up sharing the answer. Each waiter calls the handler itself, and the slot records that for a while.
func (a *attempt) give(failed bool, why string) {
	c := a.cache
	a.end = passed
	if a.given {
		return
	}
	a.given, a.exchange.status.Detail = true, why
	a.leaves.endsHandler()
	a.fill.stop() // if Redis cannot be told, the lease ends by itself
	a.fill.land(outcome{lone: !failed}, false)
	a.turn.end(notShared(failed))
	switch {
	case a.fill.claim == nil:
	case failed && (a.exchange.s.response != nil || a.fill.renews): // the stored response is still there
		c.rest(a.r.Context(), a.fill.claim)
	case a.exchange.s.index != nil:
		// For a variant only this process remembers it. In Redis, clients could create any number of keys by inventing values.
		c.passes.Add(a.exchange.s.slot, c.opt.SharedPass)
		c.release(a.r.Context(), a.fill.claim)
	default:
		ttl, claim := c.opt.SharedPass, a.fill.claim
		if failed {
			ttl = min(ttl, c.opt.RenewThrottle)
		}
		c.behind(a.r.Context(), func(ctx context.Context) { c.storePass(ctx, a.exchange.s.slot, claim, ttl) })
	}
}

// lone releases the waiters of all processes as soon as the header shows that the answer is for its client alone. A pass replaces the claim in
// Redis, and a stored answer may later replace the pass.
func (a *attempt) lone() {
	c, slot, claim := a.cache, a.exchange.s.slot, a.fill.claim
	c.passes.Add(slot, c.opt.SharedPass) // until the stored record says so itself
	a.fill.land(outcome{lone: true}, false)
	a.turn.end(admission.NoSample)
	c.audiences.learn(a.r, one)
	if claim == nil {
		return
	}
	a.fill.stop()
	passed := make(chan lease.Found, 1)
	a.fill.claim, a.fill.passed = nil, passed
	c.behind(a.r.Context(), func(ctx context.Context) { passed <- c.storePass(ctx, slot, claim, c.opt.SharedPass) })
}

// store stores the captured answer, and releases the waiters.
func (a *attempt) store() (wait func()) {
	if flaw := a.out.flaw(); flaw != nil {
		a.give(a.exchange.s.response != nil, "truncated")
		a.exchange.failed = flaw
		a.tell(mayfly.KindFill, mayfly.OutcomeFailed, flaw)
		return func() {}
	}
	a.answer.complete(a.out, a.cache.rules)
	return a.cache.keepAnswer(a.r.Context(), a.exchange.s, a.fill, a.answer, a.out.held, a.spent)
}

// complete gives a response the body, the trailers, the length and the Content-Type that the client got.
func (r *response) complete(out *capture, rules rfc9111.Rules) {
	r.body = out.body
	for name, values := range out.trailers() {
		if rules.StoresTrailer(out.header, strings.TrimPrefix(name, http.TrailerPrefix)) {
			r.trailer = append(r.trailer, field{name: name, values: values})
		}
	}
	announced := out.header["Trailer"]
	if announced != nil {
		r.header = append(r.header, field{name: "Trailer", values: announced})
	}
	has := func(name string) bool {
		return slices.ContainsFunc(r.header, func(f field) bool { return f.name == name })
	}
	if len(r.trailer) == 0 && announced == nil && r.status != http.StatusNoContent && !has("Content-Length") {
		r.header = append(r.header, field{name: "Content-Length", values: []string{strconv.Itoa(len(r.body))}})
	}
	if len(r.body) > 0 && !has("Content-Type") && !has("Content-Encoding") && !out.typed { // a handler around the cache may have said it
		kind := field{name: "Content-Type"} // without a value: none is made up
		if b := out.sniffed(); len(b) > 0 && out.header.Get("Transfer-Encoding") == "" {
			kind.values = []string{http.DetectContentType(b)}
		}
		r.header = append(r.header, kind)
	}
}

// tellLoad reports how long the handler took and whether it failed.
func (a *attempt) tellLoad() {
	a.cache.tell.Done(a.r.Context(), mayfly.Event{Kind: mayfly.KindLoad, Key: a.s.slot, N: 1, Err: a.reason}, a.sent)
}

func (a *attempt) tell(kind mayfly.Kind, outcome mayfly.Outcome, err error) {
	a.cache.tell(a.r.Context(), mayfly.Event{Kind: kind, Outcome: outcome, Key: a.exchange.s.slot, Err: err})
}

// errAborted says that a handler panicked or exited, and that nothing could stand in for its answer.
var errAborted = errors.New("the handler panicked or exited before its answer was whole")
