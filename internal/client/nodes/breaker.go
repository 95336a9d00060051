package nodes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	Threshold = 5                      // failures in a row that open the breaker
	Open      = 500 * time.Millisecond // how long it stays open, and the time between probes
)

// Breaker stops questions to a node that does not answer, and notices when the node answers again. The zero Breaker is closed. Callers pass
// the current time, all from the same clock.
//
// It counts failures in a row. At [Threshold] it opens and lets nobody through for [Open]. Then it lets one caller through as the probe,
// and nobody else for another Open. If the probe succeeds, the breaker closes. If the probe fails or never reports, the next probe follows
// an Open later. While a goroutine tends the breaker, no caller is the probe. Asking a closed breaker costs one atomic load.
//
// The caller decides what a failure is: that the node did not answer, not that it answered with an error.
type Breaker struct {
	failures atomic.Int32
	until    atomic.Int64 // when the next probe is due, as an instant; zero: closed
	tended   atomic.Bool  // a goroutine probes in the background
	refused  atomic.Int64 // when a call last found it open, as an instant, to the second
}

// instant returns t as a number that changes of the wall clock do not move and that is never zero.
func instant(t time.Time) int64 { return int64(t.Sub(epoch)) | 1 }

var epoch = time.Now()

// Verdict is the breaker's answer to a caller.
type Verdict uint8

const (
	Pass   Verdict = iota // closed: ask the node
	Probe                 // open: ask the node and report; nobody else asks meanwhile
	Refuse                // open: do not ask
)

// Allow says whether to ask the node now. A caller that gets Pass or Probe reports Success or Failure. A caller that can report neither,
// because its own context ended first, reports nothing.
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

// Success reports that the node answered. It returns whether that closed the breaker.
func (b *Breaker) Success() (closed bool) {
	if b.failures.Load() != 0 { // the usual case does not write shared memory
		b.failures.Store(0)
	}
	return b.until.Load() != 0 && b.until.Swap(0) != 0
}

// Failure reports that the node did not answer n calls. It returns whether that opened the breaker. Failures of calls that were let through
// before the breaker opened come late and change nothing.
func (b *Breaker) Failure(now time.Time, n int) (opened bool) {
	return b.failures.Add(int32(n)) >= Threshold && b.until.CompareAndSwap(0, instant(now.Add(Open)))
}

// Rest closes the breaker without a success, so that the next failure opens it again. It reports whether that closed it.
func (b *Breaker) Rest() (closed bool) { return b.until.Swap(0) != 0 }

// end reports to the breaker how a trip went. A caller that left says nothing about the server, unless it was patient, its own deadline
// merely came first, and the server has answered nobody for as long as a call may take. Nor does a caller that had little time, or one that
// waited for a connection while others got one. If a trip got no answer and nobody else did either, it counts as a failure of each of its
// callers.
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
		left = context.DeadlineExceeded // the socket noticed the deadline before the context did
	}
	slow := errors.Is(err, context.DeadlineExceeded) || isTimeout(err)
	patient := now.Sub(begun) >= n.budget/4
	heard := n.gate != nil && n.gate.HeardSince(begun)
	silent := n.gate == nil || !n.gate.HeardSince(now.Add(-n.budget))
	if (left == nil && (!slow || patient) || errors.Is(left, context.DeadlineExceeded) && patient && silent) && !n.crowded(err) {
		if !slow || n.gate == nil || heard {
			callers = 1 // a connection broke or hangs: one failure, however many callers shared it
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
		return n.slow(err)
	}
	return err
}

// fail reports to the breaker that the server did not answer these calls. If that opens the breaker, it releases the waiters.
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

// Answered reports whether err is the reply of a working server rather than a missing answer. A server that is loading its data, or a
// cluster that is down, replies too, but not about the key.
func Answered(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply) &&
		!redis.IsLoadingError(err) && !redis.IsClusterDownError(err) && !redis.IsMasterDownError(err)
}

// RefusedForGood reports whether err consists only of replies by which a server says that it will never do what was requested: the user has no
// permission, or the server does not know the command. Repeating such a request is useless.
func RefusedForGood(err error) bool {
	switch e := err.(type) {
	case nil:
		return false
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if !RefusedForGood(err) {
				return false
			}
		}
		return true
	}
	for _, says := range []string{"NOPERM", "unknown command", "ACL failure in script"} {
		if redis.HasErrorPrefix(err, says) {
			return true
		}
	}
	return false
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}
