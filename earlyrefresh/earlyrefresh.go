// Package earlyrefresh decides when a cached value is renewed before it ends, so that no reader waits at expiry.
//
// Which to choose: [XFetch] with beta 1, unless you have a reason, since it weighs the chance of a renewal by what a
// load costs and so renews a slow value early and a cheap one late. [Window] renews at a fixed share of the TTL, for
// values whose load time says nothing (a job that fills many keys) or whose renewal must be predictable.
// [Linear] is the TTL guide's own rule, here so that code moved from it behaves as it did: it ignores what a
// load costs, and with beta 1 a busy key is renewed almost at once after it was stored.
//
// A policy says when, never how often: under load several readers can decide within one load time (e^(1/beta) of
// them for XFetch, whatever the rate). The cache that asks holds a lock per renewal and makes it one.
//
// The package is pure: no clock, no Redis, no goroutine; chance is an argument.
package earlyrefresh

import (
	"fmt"
	"math"
	"time"
)

// Policy decides on each hit whether the value should be renewed now.
type Policy interface {
	// Due reports whether a value stored for ttl, with remaining left and a load time of cost, should be renewed.
	// draw is uniform in [0,1), fresh for each question. A cost of zero means that no load has been timed yet.
	// Due must be safe for concurrent use and must not block: it runs on every hit.
	Due(ttl, remaining, cost time.Duration, draw float64) bool
}

// Margin is the factor by which [XFetch] over-estimates a load's cost. Being wrong is not symmetric: a cost taken ten
// times too small costs hundreds of loads per renewal, one taken twice too large a slightly earlier renewal.
const Margin = 1.5

// XFetch renews with a probability that rises to one as the end comes near: exp(-remaining / (Margin*beta*cost)),
// the optimal rule of Vattani, Chierichetti and Lowenstein (VLDB 2015). The mean lead over the end is
// Margin*beta*cost*(ln(rate*Margin*beta*cost)+0.58), so a key read rarely is often not renewed early at all, and
// needs not be. A larger beta renews earlier. Until a load has been timed it never fires, and never before half of
// the TTL is over, so that a load slower than the TTL does not renew without end.
func XFetch(beta float64) Policy { return xfetch{beta} }

// Linear is the TTL guide's rule: renew if remaining < beta*ttl*draw. Its window is beta*ttl whatever a load costs:
// at beta 1 and 1000 reads a second a TTL of 60 s is in effect one of 0.3 s. Use a beta of 0.1 or less.
func Linear(beta float64) Policy { return linear{beta} }

// Window renews on the first hit within the last share of the TTL. 0.2 of a TTL of one hour is its last 12 minutes.
func Window(share float64) Policy { return window{share} }

// Never renews nothing early: every value lives to its end and the reader who comes next waits for a load.
var Never Policy = never{}

// Validate returns an error that names the parameter and the value that cannot be used. A Policy of your own may
// have a method Validate() error, which is asked; nil is an error, as leaving a policy out is the caller's default
// to choose.
func Validate(p Policy) error {
	if p == nil {
		return fmt.Errorf("early refresh policy is nil: use earlyrefresh.Never for none")
	}
	if v, ok := p.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

type xfetch struct{ beta float64 }

func (p xfetch) Due(ttl, remaining, cost time.Duration, draw float64) bool {
	if cost <= 0 || remaining > ttl/2 {
		return false
	}
	// 1-draw lies in (0,1], where the logarithm is finite.
	return float64(remaining) <= -float64(cost)*Margin*p.beta*math.Log(1-draw)
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
