package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// How often those without the claim ask: soon at first, as many loads are quick, then rarely. Where changes are pushed the
// asking is only for what a push can miss: a holder that died.
const (
	firstPoll  = 5 * time.Millisecond
	lastPoll   = 100 * time.Millisecond
	pushedPoll = 250 * time.Millisecond
)

// lookLeased is Look, which also tells who loads the key, of a plain value in a key beside, and how long his lease has left.
func (g *Guard) lookLeased(ctx context.Context, key string, withTTL bool) (f Found, left time.Duration, err error) {
	if !g.plain {
		f, err = g.Look(ctx, key, true)
		return f, f.Left, err
	}
	node, err := g.nodes.Of(ctx, key)
	if err != nil {
		return f, 0, err
	}
	get, sibling := redis.NewStringCmd(ctx, "get", key), SiblingName(key)
	lease := redis.NewStringCmd(ctx, "get", sibling)
	ends := redis.NewDurationCmd(ctx, time.Millisecond, "pttl", sibling)
	cmds := []redis.Cmder{lease, ends, get} // in this order: a lease that is gone has left its value
	var pttl *redis.DurationCmd
	if withTTL {
		pttl = redis.NewDurationCmd(ctx, time.Millisecond, "pttl", key)
		cmds = append(cmds, pttl)
	}
	if err := node.Ask(ctx, cmds...); err != nil {
		return f, 0, err
	}
	if f, err = read(get, pttl); err != nil {
		return f, 0, err
	}
	raw, err := lease.Bytes()
	if errors.Is(err, redis.Nil) {
		return f, ends.Val(), nil
	}
	beside := found(raw, 0)
	f.Failure = beside.Failure
	if f.Lease = raw; beside.State == Failed {
		f.Lease = nil
	}
	return f, ends.Val(), err
}

// Await asks for key until there is an end to wait for, and returns what it found then. It ends with ctx at the latest, and when Redis
// has not answered for a lease's life: until then whoever loads the key still has the right to.
func (g *Guard) Await(ctx context.Context, key string, until func(Found) bool) (Found, error) {
	return g.await(ctx, Want{Key: key}, func(f Found, _ time.Time, _ time.Duration) bool { return until(f) })
}

// await is Await for a Want. until is also told what is left of the lease that was found, since when it was asked.
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
		timer.Reset(pause + rand.N(pause/2)) // so that many who wait do not ask in step
		if changed == nil {
			pause = min(pause*3/2, lastPoll)
		}
	}
}
