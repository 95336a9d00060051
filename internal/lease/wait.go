package lease

import (
	"context"
	"math/rand/v2"
	"time"
)

// How often those without the claim ask: soon at first, as many loads are quick, then rarely. Where changes are pushed the
// asking is only for what a push can miss: a holder that died.
const (
	firstPoll  = 5 * time.Millisecond
	lastPoll   = 100 * time.Millisecond
	pushedPoll = 250 * time.Millisecond
)

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
		f, err := g.Look(ctx, key, withTTL)
		if err != nil || until(f) {
			return f, err
		}
		timer.Reset(pause + rand.N(pause/2)) // so that many who wait do not ask in step
		if changed == nil {
			pause = min(pause*3/2, lastPoll)
		}
	}
}
