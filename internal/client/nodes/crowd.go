package nodes

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/turns"
)

// ErrCrowded says that a call was not sent because it waited for other calls of its process for as long as it may.
var ErrCrowded = turns.ErrCrowded

// Unsent reports whether err proves that a call was not sent: it never got a turn.
func Unsent(err error) bool {
	_, left := errors.AsType[leftError](err)
	return left || errors.Is(err, ErrOpen) || errors.Is(err, ErrCrowded) || errors.Is(err, turns.ErrSilent)
}

// Left returns the error of a caller that left, or could not go on, before anything was sent.
func Left(err error) error { return leftError{err} }

// neverSent reports whether err proves that go-redis sent nothing. go-redis returns a context's own error, unwrapped, only from waiting for
// a connection and from pauses between attempts. So it says nothing about an earlier attempt, which may have been sent.
func neverSent(err error) bool { return err == context.Canceled || err == context.DeadlineExceeded }

type leftError struct{ error }

func (e leftError) Unwrap() error { return e.error }

// server is what all caches of a client share: the gate in front of its connections, and what is known of the clock behind them.
type server struct {
	gate  *turns.Gate
	clock clock
}

// servers has the server of every client: weak.Pointer[redis.Client] to *server.
var servers sync.Map

// serverOf returns what all caches of c share.
func serverOf(c *redis.Client) *server {
	of := weak.Make(c)
	if s, ok := servers.Load(of); ok {
		return s.(*server)
	}
	size := c.Options().PoolSize
	if most := c.Options().MaxActiveConns; most > 0 {
		size = min(size, most)
	}
	s, known := servers.LoadOrStore(of, &server{gate: turns.New(size)})
	if !known {
		runtime.AddCleanup(c, func(of weak.Pointer[redis.Client]) { servers.Delete(of) }, of)
	}
	return s.(*server)
}

func (n *Node) patience() turns.Patience { return turns.Patience{Most: n.wait, Silent: n.budget} }

// refused returns why the node must not be asked now, or nil.
func (n *Node) refused() error {
	if n.breaker.until.Load() != 0 {
		return ErrOpen
	}
	return nil
}

// turn is a call that has got its turn. It must leave.
type turn struct {
	n         *Node
	ctx       context.Context // the caller's
	limited   *limit          // ends when the rest of the budget is used up
	begun     time.Time       // since when the server is to blame for the time
	allowance *Allowance
}

// enter waits for the turn of a single call, unless the breaker is open.
func (n *Node) enter(ctx context.Context) (t turn, err error) {
	now := time.Now()
	if err := ctx.Err(); err != nil {
		return t, Left(err)
	}
	var of turns.Owner = n.line
	switch n.breaker.Allow(now) {
	case Refuse:
		return t, ErrOpen
	case Probe:
		of = nil
	}
	return n.turn(ctx, of, now)
}

// turn is enter regardless of the breaker. If of is nil, the call is not released when the breaker opens.
func (n *Node) turn(ctx context.Context, of turns.Owner, now time.Time) (t turn, err error) {
	t = turn{n: n, ctx: ctx, begun: now}
	within := n.budget
	if n.gate != nil {
		waited, err := n.gate.Enter(ctx, of, n.patience())
		if waited >= time.Millisecond {
			n.waited(ctx, waited, 1, err)
		}
		if err != nil {
			return t, n.unsent(err)
		}
		if waited > 0 {
			since := t.begun
			t.begun = time.Now()
			within = n.gate.Left(within, since, t.begun)
		}
	}
	if within <= 0 {
		err = n.unsent(turns.ErrSilent)
	} else if t.allowance, _ = ctx.Value(allowanceKey{}).(*Allowance); t.allowance != nil {
		if within = min(within, t.allowance.Left()); within <= 0 {
			err = n.slow(nil)
		}
	}
	if err != nil {
		if n.gate != nil {
			n.gate.Leave()
		}
		return t, err
	}
	t.limited = n.limits.begin(ctx, t.begun, atLeast(within))
	return t, nil
}

// end reports how the call went.
func (t *turn) end(err error) error {
	if err == nil && t.n.gate != nil {
		t.n.gate.Heard(time.Now())
	}
	return t.n.end(t.ctx, t.begun, 1, err)
}

func (t *turn) leave() {
	t.n.limits.end(t.limited)
	if t.n.gate != nil {
		t.n.gate.Leave()
	}
	if t.allowance != nil {
		t.allowance.spend(time.Since(t.begun))
	}
}

// atLeast returns within, or else enough time for an answer that has already arrived.
func atLeast(within time.Duration) time.Duration { return max(within, time.Millisecond) }

// unsent returns the error of a call that was not sent. If the server answered nobody while the call waited, that counts as a failure of
// the server.
func (n *Node) unsent(err error) error {
	if errors.Is(err, turns.ErrSilent) {
		n.fail(time.Now(), 1)
		return n.slow(err)
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Left(err)
	}
	return err
}

// crowded reports whether a call waited in vain for a connection while other calls kept getting and returning connections. Those are the
// program's own calls, which do not pass the gate, so this is no failure of the server.
func (n *Node) crowded(err error) bool {
	if left, is := err.(leftError); is {
		err = left.error
	}
	if n.pool == nil || err != context.DeadlineExceeded && !errors.Is(err, redis.ErrPoolTimeout) {
		return false
	}
	now := n.pool.PoolStats()
	return n.hits.Swap(now.Hits) != now.Hits && 2*int(now.TotalConns) >= n.pool.Options().PoolSize
}
