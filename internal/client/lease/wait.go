package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// How often callers without the claim poll: soon at first, since many loads are quick, then rarely. If changes are pushed, polling only
// covers what a push can miss: a holder that died.
const (
	firstPoll  = 5 * time.Millisecond
	lastPoll   = 100 * time.Millisecond
	pushedPoll = 250 * time.Millisecond
)

// lookLeased is Look that also returns the holder of the key's lease and how long that lease has left. For a plain value it reads the lease from
// the key beside it.
func (g *Guard) lookLeased(ctx context.Context, key string, withTTL bool) (f Found, left time.Duration, err error) {
	if !g.plain {
		f, err = g.Look(ctx, key, true)
		return f, f.Left, err
	}
	node, err := g.nodes.Of(ctx, key)
	if err != nil {
		return f, 0, err
	}
	q := besideQuery(ctx, key, withTTL)
	if err := node.Ask(ctx, q.cmds()...); err != nil {
		return f, 0, err
	}
	return q.answer()
}

// beside is what reads a plain value and the lease beside it.
type beside struct {
	lease, get *redis.StringCmd
	ends, pttl *redis.DurationCmd // of the lease, and of the value: nil if that is not asked
}

func besideQuery(ctx context.Context, key string, withTTL bool) (q beside) {
	sibling := SiblingName(key)
	q.lease, q.get = redis.NewStringCmd(ctx, "get", sibling), redis.NewStringCmd(ctx, "get", key)
	q.ends = redis.NewDurationCmd(ctx, time.Millisecond, "pttl", sibling)
	if withTTL {
		q.pttl = redis.NewDurationCmd(ctx, time.Millisecond, "pttl", key)
	}
	return q
}

func (q *beside) cmds() []redis.Cmder {
	cmds := []redis.Cmder{q.lease, q.ends, q.get} // in this order: if the lease is gone, its value is already there
	if q.pttl != nil {
		cmds = append(cmds, q.pttl)
	}
	return cmds
}

func (q *beside) answer() (f Found, left time.Duration, err error) {
	if f, err = read(q.get, q.pttl); err != nil {
		return f, 0, err
	}
	raw, err := q.lease.Bytes()
	if errors.Is(err, redis.Nil) {
		return f, q.ends.Val(), nil
	}
	lease := found(raw, 0)
	f.Failure = lease.Failure
	if f.Lease = raw; lease.State == Failed {
		f.Lease = nil
	}
	return f, q.ends.Val(), err
}

// Await polls key until the condition until holds, and returns what it found then. It ends with ctx at the latest, or when Redis has not
// answered for the life of a lease: up to then the holder still has the right to load.
func (g *Guard) Await(ctx context.Context, key string, until func(Found) bool) (Found, error) {
	return g.await(ctx, Want{Key: key}, func(f Found, _ time.Time, _ time.Duration) bool { return until(f) })
}

// await is Await for a Want. until also receives the time of the request and how long the lease then had left.
func (g *Guard) await(ctx context.Context, w Want, until func(f Found, asked time.Time, left time.Duration) bool) (Found, error) {
	var changed <-chan struct{}
	pause := firstPoll
	if g.pushes != nil {
		var stop func()
		if changed, stop = g.pushes(w.Key); changed != nil {
			defer stop()
			pause = pushedPoll
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	heard := time.Now()
	for {
		select {
		case <-ctx.Done():
			return Found{}, ctx.Err()
		case <-changed:
		case <-timer.C:
		}
		w.reading()
		asked := time.Now()
		f, left, err := g.lookLeased(ctx, w.Key, w.WithTTL)
		switch {
		case err == nil:
			if heard = time.Now(); until(f, asked, left) {
				return f, nil
			}
		case nodes.Answered(err), ctx.Err() != nil, time.Since(heard) > TTL:
			return f, err
		}
		timer.Reset(pause + rand.N(pause/2)) // spread out, so that many waiters do not poll in step
		if changed == nil {
			pause = min(pause*3/2, lastPoll)
		}
	}
}
