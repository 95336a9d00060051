package lease

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/client/record"
)

// Claim is the right to load one key and to store the result. Only one goroutine may use it at a time.
type Claim struct {
	guard *Guard
	key   string
	id    record.ID
	token []byte // as stored under lock
	lock  string // where the token lives: the key itself, its sibling, or the lock of a renewal
	seen  Found  // what the fill of a plain value or of a renewal replaces
	renew bool

	// beside is the lease of a plain value, which a renewal also holds because Delete removes it. Equal bytes alone do not prove that a plain value
	// was not changed in between.
	beside *Claim

	outlasts bool   // the load has overrun its time: see Outlast
	why      string // what the waiters are told of that
}

// ID is the ID that the value's record must carry.
func (c *Claim) ID() record.ID { return c.id }

// Key is the key that is claimed.
func (c *Claim) Key() string { return c.key }

func (g *Guard) newClaim(w Want) *Claim {
	c := &Claim{guard: g, key: w.Key, id: record.NewID(), lock: w.Key, seen: w.Seen, renew: w.Renew}
	c.token = leaseAfter(c.id, w.Seen.Failure)
	switch {
	case c.renew:
		id := c.seen.id()
		c.lock = LockName(c.key, id[:])
	case g.plain:
		c.lock = SiblingName(c.key)
	}
	return c
}

// leaseAfter returns the token of a claim that may know of a failure.
func leaseAfter(id record.ID, f record.Failed) []byte {
	if f.Is() {
		return record.AppendLeaseAfter(nil, id, f)
	}
	return record.AppendLease(nil, id)
}

// Claimed is the answer to one claim. Without a Claim, Found is what another caller has put there meanwhile. With both a Claim and an Err
// the outcome is unknown and there was no time to ask again: the caller must release the claim when Redis answers.
type Claimed struct {
	Claim *Claim
	Found
	Err error
}

// Claim requests the right to load key. seen is what the caller found and cannot use: Absent, or bytes to replace.
func (g *Guard) Claim(ctx context.Context, key string, seen Found) Claimed {
	return g.Ask(ctx, []Want{{Key: key, Seen: seen}})[0].Claimed
}

// Renew requests the right to load a newer value in place of seen, which stays until the fill. Without a claim, the state is Loading if
// another caller renews it or has just done so, and Held if a renewal failed recently.
func (g *Guard) Renew(ctx context.Context, key string, seen Found) Claimed {
	return g.Ask(ctx, []Want{{Key: key, Seen: seen, Renew: true}})[0].Claimed
}

// claim sends the claims of wants. It sends those with an unknown outcome again, with new tokens, in the time that is left.
func (g *Guard) claim(ctx context.Context, wants []Want) []Claimed {
	if len(wants) == 0 {
		return nil
	}
	limit := nodes.Purse(ctx, g.timeout-wants[0].Spent)
	if limit == 0 && wants[0].Spent < g.timeout {
		answers := make([]Claimed, len(wants))
		for i := range answers {
			answers[i].Err = nodes.ErrSpent
		}
		return answers
	}
	allowance := nodes.Within(ctx, limit)
	claims := make([]*Claim, len(wants))
	for i, w := range wants {
		claims[i] = g.newClaim(w)
		w.reading()
	}
	answers := g.send(allowance, claims)
	g.overFailures(allowance, wants, answers)
	var unknown []int
	for i, a := range answers {
		if a.Claim != nil && a.Err != nil {
			unknown = append(unknown, i)
		}
	}
	defer func() {
		for i := range answers {
			answers[i].Spent = limit - allowance.Left()
		}
		nodes.Pay(ctx, limit-allowance.Left(), answers[0].Err)
	}()
	if len(unknown) == 0 || allowance.Left() <= 0 || ctx.Err() != nil {
		return answers
	}
	second := make([]*Claim, len(unknown))
	for n, i := range unknown {
		second[n] = g.newClaim(wants[i])
		wants[i].reading()
	}
	for n, a := range g.send(allowance, second) {
		i := unknown[n]
		if a.Claim == nil && string(a.Lease) == string(answers[i].Claim.token) { // it took effect, and cannot again: it was sent once
			a = Claimed{Claim: answers[i].Claim}
		}
		answers[i] = a
	}
	return answers
}

// send sends claims in one trip per server; in two or three where bytes must be replaced or plain values are renewed.
func (g *Guard) send(ctx context.Context, claims []*Claim) []Claimed {
	answers := g.sendLocks(ctx, claims)
	if !g.plain {
		return answers
	}
	var held []*Claim
	var of []int
	var vain Ending
	for i, a := range answers {
		if c := claims[i]; c.renew && a.Claim != nil && a.Err == nil {
			beside := *c
			beside.lock, beside.renew = SiblingName(c.key), false
			held, of = append(held, &beside), append(of, i)
		}
	}
	for n, a := range g.sendLocks(ctx, held) {
		c := claims[of[n]]
		switch {
		case a.Claim == nil:
			vain = append(vain, c.Released()...)
			answers[of[n]] = a
		default:
			c.beside = a.Claim
			answers[of[n]].Err = a.Err
		}
	}
	g.End(ctx, vain)
	return answers
}

func (g *Guard) sendLocks(ctx context.Context, claims []*Claim) []Claimed {
	locks := make([]string, len(claims))
	for i, c := range claims {
		locks[i] = c.lock
	}
	answers := make([]Claimed, len(claims))
	g.nodes.Each(ctx, locks, func(node *nodes.Node, mine []int) {
		take(ctx, node, claims, replace(ctx, node, claims, mine, answers), answers)
	}, func(i int, err error) { answers[i].Err = err })
	return answers
}

// replace puts leases in place of bytes to replace. It returns the other claims, and those whose keys hold something else by now.
func replace(ctx context.Context, node *nodes.Node, claims []*Claim, mine []int, answers []Claimed) (others []int) {
	var present []int
	var calls []nodes.Call
	for _, i := range mine {
		if c := claims[i]; (c.seen.State == Present || c.seen.State == Failed) && c.lock == c.key {
			present, calls = append(present, i), append(calls, c.seen.swap(c.key, c.token, TTL))
		} else {
			others = append(others, i)
		}
	}
	if len(present) == 0 {
		return others
	}
	did, errs := node.RunOnce(ctx, calls...)
	for n, i := range present {
		switch err := errs[n]; {
		case err != nil && !nodes.Answered(err) && !nodes.Unsent(err):
			answers[i] = Claimed{Claim: claims[i], Err: err}
		case err != nil:
			answers[i] = Claimed{Err: err}
		case did[n]:
			answers[i] = Claimed{Claim: claims[i]}
		default:
			others = append(others, i)
		}
	}
	return others
}

// take stores tokens where there is no lock. For a lease beside a plain value, the same trip also checks whether the value has appeared:
// its writer would have removed the lease.
func take(ctx context.Context, node *nodes.Node, claims []*Claim, mine []int, answers []Claimed) {
	if len(mine) == 0 {
		return
	}
	sets, gets := make([]*redis.StringCmd, len(mine)), make([]*redis.StringCmd, len(mine))
	cmds := make([]redis.Cmder, 0, 2*len(mine))
	for n, i := range mine {
		c := claims[i]
		sets[n] = redis.NewStringCmd(ctx, "set", c.lock, c.token, "nx", "get", "px", millis(TTL))
		cmds = append(cmds, sets[n])
		if c.guard.plain && !c.renew {
			gets[n] = redis.NewStringCmd(ctx, "get", c.key)
			cmds = append(cmds, gets[n])
		}
	}
	lost := node.AskOnce(ctx, cmds...)
	var vain []nodes.Call
	for n, i := range mine {
		c := claims[i]
		answers[i] = c.answer(sets[n], lost)
		if gets[n] == nil || answers[i].Claim == nil || answers[i].Err != nil {
			continue
		}
		now, err := read(gets[n], nil)
		if err == nil && now.State == c.seen.State && string(now.Raw) == string(c.seen.Raw) {
			continue
		}
		vain = append(vain, c.Released()...)
		answers[i] = Claimed{Found: now, Err: err}
	}
	if len(vain) > 0 {
		node.Run(ctx, vain...)
	}
}

// answer interprets the reply to the command that was to store the token.
func (c *Claim) answer(set *redis.StringCmd, lost error) Claimed {
	if lost != nil {
		if nodes.Unsent(lost) {
			return Claimed{Err: lost}
		}
		return Claimed{Claim: c, Err: lost}
	}
	there, err := set.Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return Claimed{Claim: c}
	case err != nil:
		return Claimed{Err: err}
	}
	return Claimed{Found: found(there, 0)}
}

// Keep extends the claim to [TTL] from now. It reports false if the claim is lost; the fill will then be refused.
func (c *Claim) Keep(ctx context.Context) (bool, error) {
	did, errs := c.guard.nodes.Run(ctx, c.keep(nil)...)
	return !slices.Contains(did, false), errors.Join(errs...)
}

func (c *Claim) keep(calls []nodes.Call) []nodes.Call {
	if c.beside != nil {
		calls = c.beside.keep(calls)
	}
	return append(calls, keep.Call([]string{c.lock}, c.token, millis(TTL)))
}

// KeepMany extends claims in one trip per server. Lost claims show up at the fill.
func (g *Guard) KeepMany(ctx context.Context, claims []*Claim) {
	calls := make([]nodes.Call, 0, len(claims))
	for _, c := range claims {
		calls = c.keep(calls)
	}
	g.nodes.Run(ctx, calls...)
}

// Inherit turns the claim on a renewal into a claim on the key itself, whose value is about to expire. The lease takes the place of the
// value, so that no caller misses the key and loads it again. If that fails, the claim is unchanged. The lease of a load that has overrun
// its time tells the waiters so.
func (c *Claim) Inherit(ctx context.Context) error {
	if !c.renew || c.guard.plain {
		return nil
	}
	token := c.token
	if c.outlasts { // the lock has a tombstone, which under the key itself would refuse the next load
		token = overrun(c.id, c.why)
	}
	mine, err := c.guard.nodes.Run1(ctx, c.seen.swap(c.key, token, TTL))
	if err == nil && mine {
		c.lock, c.token, c.renew = c.key, token, false
	}
	return err
}

// swap puts value in place of exactly what was found under key.
func (f Found) swap(key string, value []byte, ttl time.Duration) nodes.Call {
	return swapCall(key, f.head(), len(f.Raw), value, ttl)
}

func swapCall(key string, head []byte, length int, value []byte, ttl time.Duration) nodes.Call {
	return swap.Call([]string{key}, head, length, value, millis(ttl))
}
