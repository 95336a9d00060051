package lease

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Claim is the right to load one key and to store what was loaded. It is for one goroutine at a time.
type Claim struct {
	guard *Guard
	key   string
	id    record.ID
	token []byte // as stored under lock
	lock  string // where the token lives: the key itself, its sibling, or the lock of a renewal
	seen  Found  // what a fill of a plain value or a renewal replaces
	renew bool
}

// ID is the id that the value's record must carry.
func (c *Claim) ID() record.ID { return c.id }

// Key is what is claimed.
func (c *Claim) Key() string { return c.key }

func (g *Guard) newClaim(key string, seen Found) *Claim {
	c := &Claim{guard: g, key: key, id: newID(), lock: key, seen: seen}
	c.token = record.AppendLease(nil, c.id)
	if g.plain {
		c.lock = SiblingName(key)
	}
	return c
}

// Claimed is the answer to one claim. Without a Claim, Found is what somebody else put there meanwhile. With a Claim
// and an Err, the outcome is unknown: the claim is to be released when Redis answers again.
type Claimed struct {
	Claim *Claim
	Found
	Err error
}

// Claim asks for the right to load key, where seen is what the caller found and cannot use: Absent, or bytes that
// are to be replaced.
func (g *Guard) Claim(ctx context.Context, key string, seen Found) Claimed {
	return g.ClaimMany(ctx, []string{key}, []Found{seen})[0]
}

// ClaimMany claims keys in one trip per server, in two or three if some hold bytes to be replaced.
func (g *Guard) ClaimMany(ctx context.Context, keys []string, seen []Found) []Claimed {
	answers := make([]Claimed, len(keys))
	g.nodes.Each(ctx, keys, func(node *nodes.Node, mine []int) {
		var absent []int
		var replace []int
		for _, i := range mine {
			if seen[i].State == Present && !g.plain {
				replace = append(replace, i)
			} else {
				absent = append(absent, i)
			}
		}
		absent = append(absent, g.replace(ctx, node, keys, seen, replace, answers)...)
		if g.plain {
			g.takePlain(ctx, node, keys, seen, absent, answers)
		} else {
			g.take(ctx, node, keys, absent, answers)
		}
	}, func(i int, err error) { answers[i].Err = err })
	return answers
}

// take claims keys that seemed absent.
func (g *Guard) take(ctx context.Context, node *nodes.Node, keys []string, mine []int, answers []Claimed) {
	if len(mine) == 0 {
		return
	}
	claims := make([]*Claim, len(mine))
	cmds := make([]redis.Cmder, len(mine))
	for n, i := range mine {
		claims[n] = g.newClaim(keys[i], Found{})
		cmds[n] = claims[n].set(ctx)
	}
	lost := node.Ask(ctx, cmds...)
	for n, i := range mine {
		answers[i] = claims[n].answer(cmds[n].(*redis.StringCmd), lost)
	}
}

// set puts the token where nothing is, and says what is there otherwise.
func (c *Claim) set(ctx context.Context) *redis.StringCmd {
	return redis.NewStringCmd(ctx, "set", c.lock, c.token, "nx", "get", "px", millis(TTL))
}

func (c *Claim) answer(set *redis.StringCmd, lost error) Claimed {
	if lost != nil {
		if errors.Is(lost, nodes.ErrOpen) { // never sent
			return Claimed{Err: lost}
		}
		return Claimed{Claim: c, Err: lost}
	}
	there, err := set.Bytes()
	switch {
	case errors.Is(err, redis.Nil), err == nil && string(there) == string(c.token): // the second: a repeated command
		return Claimed{Claim: c}
	case err != nil:
		return Claimed{Err: err}
	}
	return Claimed{Found: found(there, 0)}
}

// replace claims keys that hold bytes to be replaced, and returns those that hold something else by now.
func (g *Guard) replace(ctx context.Context, node *nodes.Node, keys []string, seen []Found, mine []int, answers []Claimed) (other []int) {
	if len(mine) == 0 {
		return nil
	}
	claims := make([]*Claim, len(mine))
	calls := make([]nodes.Call, len(mine))
	for n, i := range mine {
		claims[n] = g.newClaim(keys[i], Found{})
		calls[n] = swapCall(keys[i], seen[i].head(), len(seen[i].Raw), claims[n].token, TTL)
	}
	did, errs := node.Run(ctx, calls...)
	for n, i := range mine {
		switch {
		case errs[n] != nil && !nodes.Answered(errs[n]) && !errors.Is(errs[n], nodes.ErrOpen):
			answers[i] = Claimed{Claim: claims[n], Err: errs[n]}
		case errs[n] != nil:
			answers[i] = Claimed{Err: errs[n]}
		case did[n]:
			answers[i] = Claimed{Claim: claims[n]}
		default:
			other = append(other, i)
		}
	}
	return other
}

// takePlain claims keys by their siblings, and in the same trip looks whether the value came meanwhile: its writer
// would have taken the lease away with it.
func (g *Guard) takePlain(ctx context.Context, node *nodes.Node, keys []string, seen []Found, mine []int, answers []Claimed) {
	claims := make([]*Claim, len(mine))
	cmds := make([]redis.Cmder, 0, 2*len(mine))
	for n, i := range mine {
		claims[n] = g.newClaim(keys[i], seen[i])
		cmds = append(cmds, claims[n].set(ctx), redis.NewStringCmd(ctx, "get", keys[i]))
	}
	lost := node.Ask(ctx, cmds...)
	for n, i := range mine {
		answers[i] = claims[n].answer(cmds[2*n].(*redis.StringCmd), lost)
		if answers[i].Claim == nil || answers[i].Err != nil {
			continue
		}
		now, err := read(cmds[2*n+1].(*redis.StringCmd), nil)
		if err == nil && now.State == seen[i].State && string(now.Raw) == string(seen[i].Raw) {
			continue
		}
		claims[n].Release(ctx)
		answers[i] = Claimed{Found: now, Err: err}
	}
}

// Renew asks for the right to load a newer value in place of seen, which stays until the fill. Without a claim, the
// state is Loading if somebody else renews it or did so just now, and Held if a renewal failed lately.
func (g *Guard) Renew(ctx context.Context, key string, seen Found) Claimed {
	return g.RenewMany(ctx, []string{key}, []Found{seen})[0]
}

// RenewMany is Renew for several keys, in one trip per server.
func (g *Guard) RenewMany(ctx context.Context, keys []string, seen []Found) []Claimed {
	claims, locks := make([]*Claim, len(keys)), make([]string, len(keys))
	for i, key := range keys {
		c := &Claim{guard: g, key: key, id: newID(), seen: seen[i], renew: true}
		c.token = record.AppendLease(nil, c.id)
		id := seen[i].id()
		c.lock = LockName(key, id[:])
		claims[i], locks[i] = c, c.lock
	}
	answers := make([]Claimed, len(keys))
	g.nodes.Each(ctx, locks, func(node *nodes.Node, mine []int) {
		cmds := make([]redis.Cmder, len(mine))
		for n, i := range mine {
			cmds[n] = claims[i].set(ctx)
		}
		lost := node.Ask(ctx, cmds...)
		for n, i := range mine {
			answers[i] = claims[i].answer(cmds[n].(*redis.StringCmd), lost)
		}
	}, func(i int, err error) { answers[i].Err = err })
	return answers
}

// Keep prolongs the claim to [TTL] from now. It reports false if the claim is lost, and then the fill will be refused.
func (c *Claim) Keep(ctx context.Context) (bool, error) {
	return c.atLock(ctx, c.keep())
}

func (c *Claim) keep() nodes.Call {
	return keep.Call([]string{c.lock}, c.token, millis(TTL))
}

// KeepMany prolongs claims in one trip per server. What is lost will show at the fill.
func (g *Guard) KeepMany(ctx context.Context, claims []*Claim) {
	locks := make([]string, len(claims))
	for i, c := range claims {
		locks[i] = c.lock
	}
	g.nodes.Each(ctx, locks, func(node *nodes.Node, mine []int) {
		calls := make([]nodes.Call, len(mine))
		for n, i := range mine {
			calls[n] = claims[i].keep()
		}
		node.Run(ctx, calls...)
	}, func(int, error) {})
}

// Inherit turns the claim on a renewal into one on the key, whose value is about to end: the lease takes its place, so
// that nobody misses the key and loads what is being loaded. Without success, the claim is what it was.
func (c *Claim) Inherit(ctx context.Context) error {
	if !c.renew || c.guard.plain {
		return nil
	}
	node, err := c.guard.nodes.Of(ctx, c.key)
	if err != nil {
		return err
	}
	mine, err := node.Run1(ctx, swapCall(c.key, c.seen.head(), len(c.seen.Raw), c.token, TTL))
	if err == nil && mine {
		c.lock, c.renew = c.key, false
	}
	return err
}

// Release gives the claim up, so that the next caller need not wait for its end.
func (c *Claim) Release(ctx context.Context) error {
	_, err := c.atLock(ctx, drop.Call([]string{c.lock}, c.token))
	return err
}

// Rest gives a renewal up and lets nobody else try for d.
func (c *Claim) Rest(ctx context.Context, d time.Duration) error {
	if !c.renew || d <= 0 {
		return c.Release(ctx)
	}
	_, err := c.atLock(ctx, swapCall(c.lock, c.token, len(c.token), record.AppendTombstone(nil, c.id), d))
	return err
}

func (c *Claim) atLock(ctx context.Context, what nodes.Call) (bool, error) {
	node, err := c.guard.nodes.Of(ctx, c.lock)
	if err != nil {
		return false, err
	}
	return node.Run1(ctx, what)
}

// Fill stores value for ttl if nobody deleted or replaced meanwhile what the claim was for, and says whether it did.
// The claim ends with it; the lock of a renewal is left to expire, so that who decided late, on the older value, loses.
func (c *Claim) Fill(ctx context.Context, value []byte, ttl time.Duration) (stored bool, err error) {
	filled := c.guard.FillMany(ctx, []Fill{{c, value, ttl}})[0]
	return filled.Stored, filled.Err
}

// Fill is one value to be stored.
type Fill struct {
	Claim *Claim
	Value []byte
	TTL   time.Duration
}

// Filled says what became of a Fill. With an Err it is unknown.
type Filled struct {
	Stored bool
	Err    error
}

// FillMany stores values as [Claim.Fill] does, in one trip per server.
func (g *Guard) FillMany(ctx context.Context, fills []Fill) []Filled {
	keys := make([]string, len(fills))
	for i, f := range fills {
		keys[i] = f.Claim.key
	}
	filled := make([]Filled, len(fills))
	g.nodes.Each(ctx, keys, func(node *nodes.Node, mine []int) {
		calls := make([]nodes.Call, len(mine))
		for n, i := range mine {
			calls[n] = fills[i].call()
		}
		did, errs := node.Run(ctx, calls...)
		for n, i := range mine {
			filled[i] = Filled{did[n], errs[n]}
		}
	}, func(i int, err error) { filled[i].Err = err })
	return filled
}

func (f Fill) call() nodes.Call {
	c := f.Claim
	switch {
	case c.renew:
		return swapCall(c.key, c.seen.head(), len(c.seen.Raw), f.Value, f.TTL)
	case c.guard.plain:
		was := []byte{'-'}
		if c.seen.State == Present {
			was = append([]byte{'+'}, c.seen.Raw...)
		}
		return fillPlain.Call([]string{c.lock, c.key}, c.token, was, f.Value, millis(f.TTL))
	}
	return swapCall(c.key, c.token, len(c.token), f.Value, f.TTL)
}

func swapCall(key string, head []byte, length int, value []byte, ttl time.Duration) nodes.Call {
	return swap.Call([]string{key}, head, length, value, millis(ttl))
}
