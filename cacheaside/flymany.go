package cacheaside

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/lease"
)

// atOnce is how many keys a loader of single keys is asked for at once, by one call about many.
const atOnce = 32

// flyMany brings many keys, as fly does one: those that are free are claimed together, loaded together and stored
// together. Nothing that was claimed waits for what somebody else loads, so that two calls about overlapping keys never
// wait for each other.
func (c *Cache[K, V]) flyMany(caller context.Context, ls []*loading[K, V]) {
	ctx, cancel := c.works.On(caller)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	var free, alone []*loading[K, V]
	for _, l := range ls {
		switch {
		case l.alone && c.many != nil:
			alone = append(alone, l)
		case l.alone || l.found.State == lease.Loading || l.found.State == lease.Held:
			group.Go(func() { l.fly(ctx) })
		default:
			free = append(free, l)
		}
	}
	c.flyFree(ctx, free, &alone, &group)
	if len(alone) == 0 {
		return
	}
	if c.many == nil {
		for _, l := range alone {
			group.Go(func() { l.fly(ctx) })
		}
		return
	}
	wait, cancel := context.WithTimeoutCause(ctx, c.opt.LoadTimeout, mayfly.ErrLoadTimeout)
	defer cancel()
	permit, err := c.enter(ctx, wait, alone...)
	if err != nil {
		failAll(alone, err)
		return
	}
	defer permit.Drop()
	c.loadGroup(ctx, &permit, turns(alone), nil)
}

// flyFree brings keys in as many rounds as the origin needs for all. It goes on for as long as loads bring something: an origin that has
// brought nothing for LoadTimeout is not asked for the rest. A key that others have asked for meanwhile comes in the next round: who asks for
// one key waits for the loads that run, and not for all of somebody else's list.
func (c *Cache[K, V]) flyFree(ctx context.Context, free []*loading[K, V], alone *[]*loading[K, V], group *sync.WaitGroup) {
	looked := time.Now()
	for brought := looked; len(free) > 0; {
		if time.Since(looked) > lease.TTL/2 {
			looked = time.Now()
			if free = c.lookAgainMany(ctx, free, group); len(free) == 0 {
				return
			}
		}
		left := c.opt.LoadTimeout - time.Since(brought)
		if left <= 0 {
			c.tell(ctx, mayfly.Event{Kind: mayfly.KindAdmission, Outcome: mayfly.OutcomeTimedOut, N: len(free), Took: time.Since(brought), Err: admission.ErrOverloaded})
			failAll(free, admission.ErrOverloaded)
			return
		}
		slices.SortStableFunc(free, func(a, b *loading[K, V]) int { return joinedFirst(a.flight.Joined(), b.flight.Joined()) })
		wait, cancel := context.WithTimeoutCause(ctx, left, mayfly.ErrLoadTimeout)
		others, some := c.flySome(ctx, wait, free, alone, group)
		cancel()
		if free = others; some {
			brought = time.Now()
		}
	}
}

func joinedFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// lookAgainMany looks at what was found so long ago that the locks of its renewals say nothing any more, in one trip, and returns what is
// still to be brought. The rest has landed, or goes its own way in group.
func (c *Cache[K, V]) lookAgainMany(ctx context.Context, ls []*loading[K, V], group *sync.WaitGroup) (still []*loading[K, V]) {
	var old []*loading[K, V]
	var fulls []string
	for _, l := range ls {
		if l.alone || !l.fallback() {
			still = append(still, l)
			continue
		}
		l.flight.Reads()
		old, fulls = append(old, l), append(fulls, l.full)
	}
	if len(old) == 0 {
		return still
	}
	begun := time.Now()
	for i, a := range c.guard.LookMany(ctx, fulls, true) {
		switch l := old[i]; {
		case !l.sees(ctx, a.Found, a.Err, begun):
			still = append(still, l)
		case !l.landIfServable():
			group.Go(func() { l.fly(ctx) })
		}
	}
	return still
}

// flySome brings as many of free as may be loaded now, and returns the others, and whether the origin answered. What can only be loaded alone
// is added to alone.
func (c *Cache[K, V]) flySome(ctx, wait context.Context, free []*loading[K, V], alone *[]*loading[K, V], group *sync.WaitGroup) (others []*loading[K, V], brought bool) {
	permit, err := c.enter(ctx, wait, free...)
	if err != nil {
		failAll(free, err)
		return nil, false
	}
	permits := []*admission.Permit{&permit}
	defer func() {
		for _, p := range permits {
			giveBack(p) // what was not needed: a loader gives its own back
		}
	}()
	if c.many != nil {
		if outdated(&permit) {
			free = c.lookAgainMany(ctx, free, group)
		}
		claimed, claims, lost := c.claimMany(ctx, turns(free), group)
		*alone = append(*alone, lost...)
		c.loadGroup(ctx, &permit, claimed, claims)
		return nil, true
	}
	for len(permits) < min(atOnce, len(free)) {
		more, ok := admission.Of(c.origin).Try(ctx)
		if !ok {
			break
		}
		permits = append(permits, &more)
	}
	some, others := free[:len(permits)], free[len(permits):]
	claimed, claims, lost := c.claimMany(ctx, turns(some), group)
	*alone = append(*alone, lost...)
	var loads sync.WaitGroup
	var answered atomic.Bool
	for i, l := range claimed {
		loads.Go(func() {
			defer permits[i].Drop()
			got := l.loadAndFill(ctx, permits[i], claims[i])
			if !errors.Is(got.err, mayfly.ErrLoadTimeout) {
				answered.Store(true)
			}
		})
	}
	for _, p := range permits[len(claimed):] {
		giveBack(p)
	}
	loads.Wait()
	return others, answered.Load()
}

// turns returns those whose callers have not left. The others have landed.
func turns[K comparable, V any](ls []*loading[K, V]) (wanted []*loading[K, V]) {
	for _, l := range ls {
		if l.turn() {
			wanted = append(wanted, l)
		}
	}
	return wanted
}

// claimMany claims what is free. What somebody else has claimed meanwhile goes its own way, in group; what could not be
// claimed is to be loaded without.
func (c *Cache[K, V]) claimMany(ctx context.Context, ls []*loading[K, V], group *sync.WaitGroup) (claimed []*loading[K, V], claims []*lease.Claim, lost []*loading[K, V]) {
	wants := make([]lease.Want, len(ls))
	for i, l := range ls {
		wants[i] = l.want()
	}
	for i, a := range c.guard.Ask(ctx, wants) {
		l := ls[i]
		l.spent += a.Spent
		switch {
		case a.Standing == lease.Mine:
			claimed, claims = append(claimed, l), append(claims, a.Claim)
		case a.Standing == lease.Void, a.Standing == lease.Theirs && !l.fallback(): // known now: it need not ask again
			l.found = a.Found
			group.Go(func() { l.fly(ctx) })
		case l.turnTo(ctx, a):
		case l.alone:
			lost = append(lost, l)
		default:
			group.Go(func() { l.fly(ctx) })
		}
	}
	return claimed, claims, lost
}

// loadGroup loads by one call of the batch loader, which is one query and has one permit, gives that back, and stores what is claimed.
func (c *Cache[K, V]) loadGroup(ctx context.Context, permit *admission.Permit, ls []*loading[K, V], claims []*lease.Claim) {
	if len(ls) == 0 {
		giveBack(permit)
		return
	}
	keys, ends := make([]K, len(ls)), make([]time.Time, len(ls))
	var previous map[K]Entry[V]
	for i, l := range ls {
		keys[i], ends[i] = l.key, l.ends
		if l.comparable() {
			if previous == nil {
				previous = make(map[K]Entry[V])
			}
			previous[l.key] = l.seen.entry
		}
		l.flight.Reads()
	}
	var answer struct { // by the loader, which may still run if it was given up
		find func(K) (Loaded[V], bool)
		err  error
	}
	var abandoned <-chan struct{}
	if c.opt.LoadAbandon {
		abandoned = c.allAbandoned(ctx, ls)
	}
	var loader stay
	cost, runs, err := c.supervise(permit.Inside(ctx), watch{abandoned, claims, ends}, func(ctx context.Context) error {
		defer loader.left()
		answer.find, answer.err = c.many(ctx, keys, previous)
		answer.err = because(ctx, answer.err)
		return nil
	})
	find, part := func(K) (answer Loaded[V], ok bool) { return }, err
	if err == nil {
		find, part = answer.find, answer.err
	}
	part, _ = c.notFound(part)
	leave(permit, &loader, ended(part), runs != nil)
	c.tellLoad(ctx, "", len(ls), part, cost)
	got := make([]loaded[V], len(ls))
	for i, l := range ls {
		answer, ok := find(l.key) // keys may have been sorted by the loader
		got[i] = loaded[V]{cost: cost, runs: runs}
		switch {
		case ok:
			got[i].Loaded, got[i].err = l.take(answer)
		case part != nil:
			got[i].err = part
		default:
			got[i].err = mayfly.ErrNotFound
		}
	}
	if claims != nil {
		c.store(ctx, ls, got, claims)
		return
	}
	if runs != nil {
		c.failed(ctx, ls, nil, runs, err)
	}
	for i, l := range ls {
		l.land(&got[i], false)
	}
}

// allAbandoned is closed when every flight is.
func (c *Cache[K, V]) allAbandoned(ctx context.Context, ls []*loading[K, V]) <-chan struct{} {
	all := make(chan struct{})
	c.works.More()
	go func() {
		defer c.works.Done()
		for _, l := range ls {
			select {
			case <-l.flight.Abandoned():
			case <-ctx.Done():
				return
			}
		}
		close(all)
	}()
	return all
}
