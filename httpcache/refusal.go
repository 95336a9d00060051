package httpcache

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

const (
	maxHeader = 256 << 10 // of a response that is stored, in bytes of its names and values
	maxTags   = 1 << 10   // of one: each is looked up for a hit
)

var (
	errTags          = errors.New("it has more tags than are looked up for a hit")
	errPurgesUnknown = errors.New("redis did not say in time which purges there were, and a page with tags is not stored without that")
)

// What the RFCs do not speak of, as a cache has no bounds there.
const (
	tooLarge      rfc9111.Reason = "too-large" // its body, or its header
	noRoom        rfc9111.Reason = "in-flight" // for its body, among those of other requests
	failedRenewal rfc9111.Reason = "failed"    // in a report: a cache that serves would have gone on with what is there
	tooManyTags   rfc9111.Reason = "tags"
	purgesUnknown rfc9111.Reason = "purges-unknown" // one of a tag might be missed
)

// refused tells why an answer is not stored, if that is not what its handler wanted: a bound was reached, or its header is
// broken. Nobody is told again while it is remembered that the answer is not for others.
func (a *attempt) refused(reason rfc9111.Reason, x rfc9111.Exchange) {
	if a.cache.ns.Observer == nil || a.exchange.s.pass || !a.fill.wanted() {
		return
	}
	switch reason {
	case tooLarge:
		a.tell(mayfly.KindFill, mayfly.OutcomeDropped, errTooLarge)
	case tooManyTags:
		a.tell(mayfly.KindFill, mayfly.OutcomeDropped, errTags)
	case purgesUnknown: // it is not about this page, so one is told of for all
		if c := a.cache; !c.passes.Has(c.epochKey()) {
			c.passes.Add(c.epochKey(), c.opt.SharedPass)
			a.tell(mayfly.KindFill, mayfly.OutcomeDropped, errPurgesUnknown)
		}
	default:
		if flaw := a.cache.rules.Flaw(reason, x); flaw != "" {
			a.tell(mayfly.KindFill, mayfly.OutcomeDropped, fmt.Errorf("%s: %s", reason, flaw))
		}
	}
}

var errNoAnswer = errors.New("the handler returned without an answer")

// leave is called when the handler has returned without an answer.
func (a *attempt) leave(header http.Header) {
	a.give(false, "no-answer")
	a.exchange.failed = errNoAnswer
	header["Cache-Status"] = append(header["Cache-Status"], a.cache.say(a.exchange.status))
}

// drop is called when what is captured is not kept any more.
func (a *attempt) drop(why error) {
	detail := string(tooLarge)
	switch why {
	case errHijacked:
		a.cache.audiences.learn(a.r, one)
		detail = "hijacked"
	case errNoRoom:
		detail = string(noRoom)
	}
	if a.give(a.out.status >= 500, detail); a.fill.wanted() && !a.exchange.s.pass {
		a.tell(mayfly.KindFill, mayfly.OutcomeDropped, why)
	}
}
