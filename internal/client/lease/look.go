package lease

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Look reads key in one trip, which it may share with other reads. withTTL also asks for the time left.
func (g *Guard) Look(ctx context.Context, key string, withTTL bool) (Found, error) {
	return g.look(ctx, key, withTTL, false, 0)
}

// Borrow is Look for a caller that expects a record of about size bytes and can give its bytes back: see [Found.GiveBack].
func (g *Guard) Borrow(ctx context.Context, key string, size int) (Found, error) {
	return g.look(ctx, key, false, false, size)
}

// Glance is Look, usually with a single command: the time left is Found.Reckoned. Once a second it asks for the TTL and for the server's
// time. While the server's clock is not known, or glances do not pay off, it is Look with the TTL.
func (g *Guard) Glance(ctx context.Context, key string) (Found, error) {
	return g.look(ctx, key, false, true, 0)
}

func (g *Guard) look(ctx context.Context, key string, withTTL, reckons bool, lend int) (Found, error) {
	if nodes.Purse(ctx, g.timeout) == 0 {
		return Found{}, nodes.ErrSpent
	}
	node, err := g.nodes.Of(ctx, key)
	if err != nil {
		return Found{}, err
	}
	glances := reckons
	reckons, withTTL, clock := g.how(node, reckons, withTTL)
	var a nodes.Answer
	if lend > 0 {
		a = node.Borrow(ctx, key, lend)
	} else {
		a = node.Get(ctx, key, withTTL)
	}
	nodes.Pay(ctx, a.Took, a.Err)
	var f Found
	if a.Err == nil && a.Found {
		f = found(a.Raw, left(a.Left, withTTL))
		f.loan = a.Loan
		if reckons {
			f.reckon(clock)
		} else {
			clock.Compare(f.Header.Ends, f.Left, a.Now)
		}
		if glances {
			g.glances.met(f)
		}
	}
	g.glances.took(a.Took, g.timeout)
	f.Spent = a.Took
	return f, a.Err
}

// how decides whether a read at node computes the time left, and if not, whether it asks for PTTL.
func (g *Guard) how(node *nodes.Node, reckons, withTTL bool) (reckoned, asked bool, clock nodes.Clock) {
	if !reckons {
		return false, withTTL, clock
	}
	clock, reckoned = node.Clock() // even if the clock is not used: this makes PTTL ask for the time as well
	reckoned = reckoned && g.glances.pay()
	return reckoned, !reckoned, clock
}

// reckon computes the time that f has left from what was known of the server's clock before the read.
func (f *Found) reckon(c nodes.Clock) {
	if f.Header.Ends == 0 {
		return
	}
	if now, ok := c.Now(); ok {
		f.Reckoned = time.Duration(min(f.Header.Ends-now, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	}
}

// left turns the answer to PTTL into Found.Left.
func left(d time.Duration, asked bool) time.Duration {
	if asked && d == 0 { // less than a millisecond
		return Gone
	}
	return d
}

func read(get *redis.StringCmd, pttl *redis.DurationCmd) (Found, error) {
	raw, err := get.Bytes()
	if errors.Is(err, redis.Nil) {
		return Found{}, nil
	}
	if err != nil {
		return Found{}, err
	}
	if pttl == nil {
		return found(raw, 0), nil
	}
	d, err := pttl.Result()
	if err != nil {
		return Found{}, err
	}
	return found(raw, left(d, true)), nil
}

// Answer is what one of many keys held.
type Answer struct {
	Found
	Err error
}

// LookMany reads keys in one trip per server. Each key has its own answer.
func (g *Guard) LookMany(ctx context.Context, keys []string, withTTL bool) []Answer {
	return g.lookMany(ctx, keys, withTTL, false)
}

// GlanceMany is Glance for many keys, in one trip per server.
func (g *Guard) GlanceMany(ctx context.Context, keys []string) []Answer {
	return g.lookMany(ctx, keys, false, true)
}

func (g *Guard) lookMany(ctx context.Context, keys []string, withTTL, reckons bool) []Answer {
	answers := make([]Answer, len(keys))
	most := nodes.Purse(ctx, g.timeout)
	if most == 0 {
		for i := range answers {
			answers[i].Err = nodes.ErrSpent
		}
		return answers
	}
	g.nodes.Each(ctx, keys, func(node *nodes.Node, mine []int) {
		glances := reckons
		reckons, withTTL, clock := g.how(node, reckons, withTTL)
		per := 1
		if withTTL {
			per = 2
		}
		cmds := make([]redis.Cmder, 0, per*len(mine))
		for _, i := range mine {
			cmds = append(cmds, redis.NewStringCmd(ctx, "get", keys[i]))
			if withTTL {
				cmds = append(cmds, redis.NewDurationCmd(ctx, time.Millisecond, "pttl", keys[i]))
			}
		}
		allowance := nodes.Within(ctx, most)
		var now int64
		var err error
		if withTTL {
			now, err = node.AskTimed(allowance, cmds...)
		} else {
			err = node.Ask(allowance, cmds...)
		}
		spent := most - allowance.Left()
		nodes.Pay(ctx, spent, err)
		g.glances.took(spent, g.timeout)
		for n, i := range mine {
			if err != nil {
				answers[i].Err = err
				continue
			}
			var pttl *redis.DurationCmd
			if withTTL {
				pttl = cmds[per*n+1].(*redis.DurationCmd)
			}
			f, err := read(cmds[per*n].(*redis.StringCmd), pttl)
			if reckons {
				f.reckon(clock)
			} else {
				clock.Compare(f.Header.Ends, f.Left, now)
			}
			if glances {
				g.glances.met(f)
			}
			f.Spent = spent
			answers[i] = Answer{f, err}
		}
	}, func(i int, err error) { answers[i].Err = err })
	return answers
}
