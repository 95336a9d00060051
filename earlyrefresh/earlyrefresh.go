// Package earlyrefresh decides when a cached value is renewed before it expires, so that no reader waits for a load:
//
//	cacheaside.Options{Early: earlyrefresh.Window(0.2)} // in the last fifth of the TTL
//
// Use [XFetch] with beta 1, the default of cacheaside, unless you have a reason not to: it renews values that are slow to load earlier than
// cheap ones. [Window] renews in a fixed share of the TTL, for values whose load time means nothing (such as those of a job that fills many
// keys), or if renewals must be predictable. [Linear] is the rule of the TTL guide, for code that is moving from it: it ignores what a load
// costs, and with beta 1 renews a busy key almost as soon as it was stored. [Never] never renews early.
//
// A policy decides per reader, so under load several readers decide to renew the same value (with XFetch about e^(1/beta) of them, whatever
// the request rate). The cache takes a lock for each renewal, so only one of them loads.
//
// The package uses no clock, no Redis and no goroutine. Random numbers are arguments.
package earlyrefresh

import (
	"fmt"
	"math"
	"time"
)

// Policy decides on each hit whether to renew the value now. A policy of your own may have a method Validate() error, which the constructor
// of a cache calls.
type Policy interface {
	// Due reports whether to renew a value that was stored for ttl and has remaining left. cost is how long its load took; zero if that is
	// not known. draw is a new random number in [0,1) for each call. Due runs on every hit: it must not block, and must be safe for
	// concurrent use.
	Due(ttl, remaining, cost time.Duration, draw float64) bool
}

// margin is the factor by which [XFetch] over-estimates the cost of a load. An estimate ten times too small would cause
// hundreds of loads per renewal; one twice too large only renews slightly earlier.
const margin = 1.5

// XFetch renews with a probability that rises to one as the value's end comes near: exp(-remaining / (1.5*beta*cost)), the optimal rule of
// Vattani, Chierichetti and Lowenstein (VLDB 2015). The mean lead over the end is 1.5*beta*cost*(ln(rate*1.5*beta*cost)+0.58). A key that
// is read rarely is often not renewed early, and need not be. A larger beta renews earlier. XFetch never renews a value whose load time is
// not known, nor any value in the first half of its TTL, so a load that is slower than the TTL does not cause endless renewals.
func XFetch(beta float64) Policy { return xfetch{beta} }

// Linear is the TTL guide's rule: renew if remaining < beta*ttl*draw. Its window is beta*ttl, whatever a load costs: with beta 1 and 1000
// reads a second, a TTL of 60 s is in effect one of 0.3 s. Use a beta of 0.1 or less.
func Linear(beta float64) Policy { return linear{beta} }

// Window renews on the first hit within the last share of the TTL. 0.2 of a TTL of one hour is its last 12 minutes.
func Window(share float64) Policy { return window{share} }

// Never renews nothing early: every value lives to its end, and the next reader waits for a load.
var Never Policy = never{}

type xfetch struct{ beta float64 }

func (p xfetch) Due(ttl, remaining, cost time.Duration, draw float64) bool {
	if cost <= 0 || remaining > ttl/2 {
		return false
	}
	// 1-draw lies in (0,1], where the logarithm is finite.
	return float64(remaining) <= -float64(cost)*margin*p.beta*math.Log(1-draw)
}

func (p xfetch) Validate() error { return checkBeta("XFetch", p.beta) }

type linear struct{ beta float64 }

func (p linear) Due(ttl, remaining, _ time.Duration, draw float64) bool {
	return float64(remaining) < p.beta*float64(ttl)*draw
}

func (p linear) Validate() error { return checkBeta("Linear", p.beta) }

type window struct{ share float64 }

func (p window) Due(ttl, remaining, _ time.Duration, _ float64) bool {
	return float64(remaining) <= p.share*float64(ttl)
}

func (p window) Validate() error {
	if !(p.share > 0 && p.share < 1) {
		return fmt.Errorf("earlyrefresh.Window: share must be in (0,1), got %v", p.share)
	}
	return nil
}

type never struct{}

func (never) Due(_, _, _ time.Duration, _ float64) bool { return false }

func checkBeta(policy string, beta float64) error {
	if !(beta > 0) || math.IsInf(beta, 1) { // written so that NaN fails too
		return fmt.Errorf("earlyrefresh.%s: beta must be positive and finite, got %v", policy, beta)
	}
	return nil
}
