package lease

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"
)

// How often those without the claim ask: soon at first, as many loads are quick, then rarely. Where changes are pushed the
// asking is only for what a push can miss: a holder that died.
const (
	firstPoll  = 5 * time.Millisecond
	lastPoll   = 100 * time.Millisecond
	pushedPoll = 250 * time.Millisecond
)

// lookLeased is Look, which for a plain value also tells whether somebody loads it: his lease is a key beside.
func (g *Guard) lookLeased(ctx context.Context, key string, withTTL bool) (Found, error) {
	if !g.plain {
		return g.Look(ctx, key, withTTL)
	}
	node, err := g.nodes.Of(ctx, key)
	if err != nil {
		return Found{}, err
	}
	get := redis.NewStringCmd(ctx, "get", key)
	leased := redis.NewIntCmd(ctx, "exists", SiblingName(key))
	cmds := []redis.Cmder{leased, get} // in this order: a lease that is gone has left its value
	var pttl *redis.DurationCmd
	if withTTL {
		pttl = redis.NewDurationCmd(ctx, time.Millisecond, "pttl", key)
		cmds = append(cmds, pttl)
	}
	if err := node.Ask(ctx, cmds...); err != nil {
		return Found{}, err
	}
	f, err := read(get, pttl)
	if err == nil {
		err = leased.Err()
	}
	f.Leased = leased.Val() == 1
	return f, err
}

// Await asks for key until there is an end to wait for, and returns what it found then: while until says true of
// what was found, it goes on. It ends with ctx at the latest, and at once if Redis does not answer.
func (g *Guard) Await(ctx context.Context, key string, withTTL bool, until func(Found) bool) (Found, error) {
	var changed <-chan struct{}
	pause := firstPoll
	if g.pushes != nil {
		var stop func()
		if changed, stop = g.pushes(key); changed != nil {
			defer stop()
			pause = pushedPoll
		}
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return Found{}, ctx.Err()
		case <-changed:
		case <-timer.C:
		}
		f, err := g.lookLeased(ctx, key, withTTL)
		if err != nil || until(f) {
			return f, err
		}
		timer.Reset(pause + rand.N(pause/2)) // so that many who wait do not ask in step
		if changed == nil {
			pause = min(pause*3/2, lastPoll)
		}
	}
}
