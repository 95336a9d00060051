package lease

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// pieceOf is how many keys one trip of a wait asks for. A holder's beats get through between two trips.
const pieceOf = 500

// Waiting is a caller that waits for another caller's load.
type Waiting struct {
	Want                   // Seen is the other caller's lease
	Wait   context.Context // ends the wait
	Usable func(Found) bool
}

// OutwaitMany waits as Outwait does for leases of several keys, which it asks for together: in each round in one trip per server and five hundred keys.
// Of pushes it hears those about one key of them, since what was claimed together usually ends together. ended receives, after each round, those waits that have ended, each with its answer; it must be quick. The wait for all of them
// ends with ctx.
func (g *Guard) OutwaitMany(ctx context.Context, waits []Waiting, ended func(of []int, as []Acquired)) {
	begun := time.Now()
	holders, heard, left := make([]holder, len(waits)), make([]time.Time, len(waits)), make([]int, len(waits))
	for i, w := range waits {
		holders[i], heard[i], left[i] = holder{want: w.Want, usable: w.Usable}, begun, i
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var changed <-chan struct{}
	heeds, stop := -1, func() {}
	defer func() { stop() }()
	for pause := firstPoll; len(left) > 0; {
		if g.pushes != nil && heeds != left[0] {
			stop()
			heeds, stop = left[0], func() {}
			if pushed, end := g.pushes(waits[heeds].Key); pushed != nil {
				changed, stop = pushed, end
			} else {
				changed = nil
			}
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		asks := time.Now()
		var over, still []int
		var as []Acquired
		for len(left) > 0 {
			piece := left[:min(pieceOf, len(left))]
			left = left[len(piece):]
			asked := time.Now()
			for n, now := range g.lookLeasedMany(ctx, waits, piece) {
				i := piece[n]
				err := now.err
				if err == nil {
					heard[i] = time.Now()
				}
				switch w := waits[i]; {
				case err == nil && holders[i].over(now.Found, asked, now.left):
				case w.Wait.Err() != nil:
					err = w.Wait.Err()
				case err == nil, !nodes.Answered(err) && time.Since(heard[i]) <= TTL:
					still = append(still, i)
					continue
				}
				a := g.after(ctx, waits[i].Wait, &holders[i], now.Found, err)
				a.Waited = max(time.Since(begun), 1)
				over, as = append(over, i), append(as, a)
			}
		}
		if len(over) > 0 {
			ended(over, as)
		}
		left = still
		rest := max(pause+rand.N(pause/2), min(4*time.Since(asks), pushedPoll)) // many keys take long: they are asked for more rarely
		for _, i := range left {
			if at, ok := waits[i].Wait.Deadline(); ok {
				rest = min(rest, max(time.Until(at), time.Millisecond))
			}
		}
		timer.Reset(rest)
		pause = min(pause*3/2, lastPoll)
	}
}

// leased is what lookLeased returns.
type leased struct {
	Found
	left time.Duration
	err  error
}

// lookLeasedMany is lookLeased for some of waits.
func (g *Guard) lookLeasedMany(ctx context.Context, waits []Waiting, some []int) []leased {
	keys, answers := make([]string, len(some)), make([]leased, len(some))
	for n, i := range some {
		waits[i].reading()
		keys[n] = waits[i].Key
	}
	if !g.plain {
		for n, a := range g.LookMany(ctx, keys, true) {
			answers[n] = leased{a.Found, a.Left, a.Err}
		}
		return answers
	}
	g.nodes.Each(ctx, keys, func(node *nodes.Node, mine []int) {
		queries := make([]beside, len(mine))
		var cmds []redis.Cmder
		for m, n := range mine {
			queries[m] = besideQuery(ctx, keys[n], waits[some[n]].WithTTL)
			cmds = append(cmds, queries[m].cmds()...)
		}
		err := node.Ask(ctx, cmds...)
		for m, n := range mine {
			a := leased{err: err}
			if err == nil {
				a.Found, a.left, a.err = queries[m].answer()
			}
			answers[n] = a
		}
	}, func(n int, err error) { answers[n].err = err })
	return answers
}
