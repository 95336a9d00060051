package httpcache

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/rfc9111"
)

const (
	maxHeader = 256 << 10 // of a stored response, in bytes of its names and values
	maxTags   = 1 << 10   // of one response: each is looked up for a hit
)

var (
	errTags          = errors.New("it has more tags than are looked up for a hit")
	errPurgesUnknown = errors.New("redis did not say in time which purges there were, and a page with tags is not stored without that")
)

// Reasons that the RFCs do not have, since they set a cache no bounds.
const (
	tooLarge      rfc9111.Reason = "too-large" // its body, or its header
	noRoom        rfc9111.Reason = "in-flight" // for its body among those of other requests
	failedRenewal rfc9111.Reason = "failed"    // in a report: a cache that serves would have continued with the stored response
	tooManyTags   rfc9111.Reason = "tags"
	purgesUnknown rfc9111.Reason = "purges-unknown" // a purge of one of its tags might be missed
)

// refused reports why an answer is not stored, if its handler wanted it stored: a bound was reached, or its header is broken. While the cache
// remembers that the answer is not for others, it does not report that again.
func (a *attempt) refused(reason rfc9111.Reason, x rfc9111.Exchange) {
	if a.cache.ns.Observer == nil || a.exchange.s.pass || !a.fill.wanted() {
		return
	}
	switch reason {
	case tooLarge:
		a.tell(mayfly.KindFill, mayfly.OutcomeDropped, errTooLarge)
	case tooManyTags:
		a.tell(mayfly.KindFill, mayfly.OutcomeDropped, errTags)
	case purgesUnknown: // the reason is not this page, so one event reports it for all
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

// drop is called when the captured answer is no longer kept.
func (a *attempt) drop(why error) {
	detail := string(tooLarge)
	switch why {
	case errHijacked:
		a.cache.audiences.learn(a.r, one)
		detail = "hijacked"
	case errNoRoom:
		detail = string(noRoom)
	case errForbidden:
		detail = "forbidden"
	}
	if a.give(a.out.status >= 500, detail); a.fill.wanted() && !a.exchange.s.pass {
		a.tell(mayfly.KindFill, mayfly.OutcomeDropped, why)
	}
}
