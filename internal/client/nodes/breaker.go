package nodes

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	Threshold = 5                      // failures in a row that open it
	Open      = 500 * time.Millisecond // for how long, and between probes
)

// Breaker stops asking a node that does not answer, and notices when it does again. The zero Breaker is closed. Times are the
// caller's now, of one clock.
//
// It counts failures in a row. At [Threshold] it opens: for [Open] nobody is let through. Then one caller is, as the probe, and
// for another Open nobody else: if the probe succeeds the breaker closes, and if it fails, or is never heard of
// again, the next probe comes an Open later. While somebody tends it no caller is the probe. A closed breaker costs one atomic load.
//
// What is a failure is for the caller to say: that the node did not answer, not that it answered with an error.
type Breaker struct {
	failures atomic.Int32
	until    atomic.Int64 // the instant of the next probe; zero while closed
	tended   atomic.Bool  // somebody probes in the background
	refused  atomic.Int64 // the instant of the latest call that found it open, to the second
}

// instant is t as a number that a change of the wall clock does not move, and that is never zero.
func instant(t time.Time) int64 { return int64(t.Sub(epoch)) | 1 }

var epoch = time.Now()

// Verdict is what the breaker says to a caller.
type Verdict uint8

const (
	Pass   Verdict = iota // closed: ask the node
	Probe                 // open: ask it, and tell; nobody else asks meanwhile
	Refuse                // open: do not ask
)

// Allow says whether to ask the node now. Who is told Pass or Probe reports Success or Failure; one that can say
// neither, because its own context ended first, reports nothing.
func (b *Breaker) Allow(now time.Time) Verdict {
	until := b.until.Load()
	if until == 0 {
		return Pass
	}
	if at := instant(now); at-b.refused.Load() > int64(time.Second) {
		b.refused.Store(at)
	}
	switch {
	case b.tended.Load():
		return Refuse
	case instant(now) < until || !b.until.CompareAndSwap(until, instant(now.Add(Open))):
		return Refuse
	}
	return Probe
}

// Success reports that the node answered. It tells whether that closed the breaker.
func (b *Breaker) Success() (closed bool) {
	if b.failures.Load() != 0 { // the usual case writes nothing that others share
		b.failures.Store(0)
	}
	return b.until.Load() != 0 && b.until.Swap(0) != 0
}

// Failure reports that the node did not answer n calls. It tells whether that opened the breaker. Failures of calls that were
// let through before it opened are late news and change nothing.
func (b *Breaker) Failure(now time.Time, n int) (opened bool) {
	return b.failures.Add(int32(n)) >= Threshold && b.until.CompareAndSwap(0, instant(now.Add(Open)))
}

// Rest closes it without a success: the next failure opens it again. It tells whether that closed it.
func (b *Breaker) Rest() (closed bool) { return b.until.Swap(0) != 0 }

// end tells the breaker how it went. A caller who left says nothing about the server, unless the caller was patient,
// its own deadline merely was the earlier one, and the server has answered nobody for as long as a call may take. Nor does one who had little time, or who waited for a connection while others got one.
// A trip that got no answer while nobody else did is the failure of all its callers.
func (n *Node) end(ctx context.Context, begun time.Time, callers int, err error) error {
	if err == nil {
		if n.breaker.Success() && n.told != nil {
			n.told(n.name, false)
		}
		return nil
	}
	now := time.Now()
	left := ctx.Err()
	if at, ok := ctx.Deadline(); left == nil && ok && !now.Before(at) {
		left = context.DeadlineExceeded // the socket was faster to notice than the context
	}
	slow := errors.Is(err, context.DeadlineExceeded) || isTimeout(err)
	patient := now.Sub(begun) >= n.budget/4
	heard := n.gate != nil && n.gate.HeardSince(begun)
	silent := n.gate == nil || !n.gate.HeardSince(now.Add(-n.budget))
	if (left == nil && (!slow || patient) || errors.Is(left, context.DeadlineExceeded) && patient && silent) && !n.crowded(err) {
		if !slow || n.gate == nil || heard {
			callers = 1 // a connection broke, or hangs: that is one failure, whoever was on it
		}
		n.fail(now, callers)
		if slow && left == nil {
			n.warm()
		}
	}
	_, unsent := errors.AsType[leftError](err)
	switch {
	case left != nil && unsent:
		return Left(left)
	case left != nil:
		return left
	case slow:
		return fmt.Errorf("%w (%s, %v): %w", ErrSlow, n.name, n.budget, err)
	}
	return err
}

// fail tells the breaker of calls that the server did not answer, and releases those who wait when that opened it.
func (n *Node) fail(now time.Time, callers int) {
	opened := n.breaker.Failure(now, callers)
	if opened && n.told != nil {
		n.told(n.name, true)
	}
	if n.breaker.until.Load() != 0 {
		n.tend()
	}
	if opened && n.line != nil {
		n.line.Dismiss(ErrOpen)
	}
}

// Answered tells an error that a working server replied from the lack of an answer. A server that loads its data, or a
// cluster that is down, replies too, but not about the key.
func Answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) &&
		!redis.IsLoadingError(err) && !redis.IsClusterDownError(err) && !redis.IsMasterDownError(err)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
