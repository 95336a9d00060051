package cacheaside

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/lease"
)

// atOnce is how many keys a loader of single keys is asked for at once, by one call about many.
const atOnce = 32

// flyMany brings many keys, as fly does one: those that are free are claimed together, loaded together and stored
// together, and those that others load are waited for together. Nothing that was claimed waits for what somebody else loads, so that two calls about
// overlapping keys never wait for each other.
func (c *Cache[K, V]) flyMany(caller context.Context, ls []*loading[K, V]) {
	defer failAll(ls, flight.ErrGoexit) // has no effect on those that have landed
	ctx, cancel := c.works.On(caller)
	defer cancel()
	var group sync.WaitGroup
	defer group.Wait()
	begun := time.Now()
	for _, l := range ls {
		l.begun = begun
	}
	c.bring(ctx, ls, &group)
}

// bring brings keys by what was found there: those that are free at once, the others in group.
func (c *Cache[K, V]) bring(ctx context.Context, ls []*loading[K, V], group *sync.WaitGroup) {
	var free, alone, theirs []*loading[K, V]
	after := make(map[<-chan struct{}][]*loading[K, V]) // by what goes on in this process although it was given up
	for _, l := range ls {
		ended := c.overdue.of(l.full)
		switch {
		case ended != nil:
			after[ended] = append(after[ended], l)
		case l.unstorable():
			alone = append(alone, l)
		case l.found.State == lease.Loading:
			theirs = append(theirs, l)
		default:
			free = append(free, l)
		}
	}
	for _, ls := range after {
		group.Go(func() { c.afterOverdue(ctx, ls, group) })
	}
	if c.many == nil {
		free, alone = append(free, alone...), nil
	}
	c.flyAlone(ctx, alone, group)
	c.flyTheirs(ctx, theirs, group)
	c.flyFree(ctx, free, group)
}

// afterOverdue waits, as fly does, for one load that was given up and goes on in this process, and then brings its keys.
func (c *Cache[K, V]) afterOverdue(ctx context.Context, ls []*loading[K, V], group *sync.WaitGroup) {
	wait, cancel := context.WithTimeoutCause(ctx, c.opt.LoadTimeout, mayfly.ErrLoadTimeout)
	defer cancel()
	c.bring(ctx, slices.DeleteFunc(ls, func(l *loading[K, V]) bool { return !l.waitOverdue(wait) }), group)
}

// flyTheirs waits, in group, for what others load. What ends without a value for this call is brought as a list: all that ended at about the same time.
func (c *Cache[K, V]) flyTheirs(ctx context.Context, ls []*loading[K, V], group *sync.WaitGroup) {
	if len(ls) < 2 {
		for _, l := range ls {
			group.Go(func() { l.fly(ctx) }) // which hears of changes that are pushed
		}
		return
	}
	group.Go(func() {
		waits := make([]lease.Waiting, len(ls))
		for i, l := range ls {
			wait, cancel := l.patiently(ctx)
			defer cancel()
			waits[i] = lease.Waiting{Want: l.others(), Wait: wait, Usable: l.usable}
		}
		c.guard.OutwaitMany(ctx, waits, func(of []int, as []lease.Acquired) {
			var next []*loading[K, V]
			for n, i := range of {
				switch l := ls[i]; {
				case as[n].Standing == lease.Mine:
					group.Go(func() {
						if !l.outwaited(ctx, as[n]) {
							l.fly(ctx)
						}
					})
				case !l.outwaited(ctx, as[n]):
					next = append(next, l)
				}
			}
			if len(next) > 0 {
				group.Go(func() { c.bring(ctx, next, group) })
			}
		})
	})
}

// flyAlone loads, in group, what cannot be stored, by one call of the batch loader.
func (c *Cache[K, V]) flyAlone(ctx context.Context, ls []*loading[K, V], group *sync.WaitGroup) {
	if len(ls) == 0 {
		return
	}
	group.Go(func() {
		wait, cancel := context.WithTimeoutCause(ctx, c.opt.LoadTimeout, mayfly.ErrLoadTimeout)
		defer cancel()
		permit, err := c.enter(ctx, wait, ls...)
		if err != nil {
			failAll(ls, err)
			return
		}
		defer permit.Drop()
		c.loadGroup(ctx, &permit, turns(ls), nil)
	})
}

// flyFree brings keys in as many rounds as the origin needs for all. It goes on for as long as loads bring something: an origin that has
// brought nothing for LoadTimeout is not asked for the rest. A key that others have asked for meanwhile comes the sooner the fewer keys they wait
// for: who asks for one key waits for the loads that run, and not for all of somebody else's list, even if several lists have the key.
func (c *Cache[K, V]) flyFree(ctx context.Context, free []*loading[K, V], group *sync.WaitGroup) {
	for brought := time.Now(); len(free) > 0; {
		left := c.opt.LoadTimeout - time.Since(brought)
		if left <= 0 {
			c.tell(ctx, mayfly.Event{Kind: mayfly.KindAdmission, Outcome: mayfly.OutcomeTimedOut, N: len(free), Took: time.Since(brought), Err: admission.ErrOverloaded})
			failAll(free, admission.ErrOverloaded)
			return
		}
		slices.SortStableFunc(free, func(a, b *loading[K, V]) int { return fewestFirst(a.flight.Fewest(), b.flight.Fewest()) })
		wait, cancel := context.WithTimeoutCause(ctx, left, mayfly.ErrLoadTimeout)
		others, some := c.flySome(ctx, wait, free, group)
		cancel()
		if free = others; some {
			brought = time.Now()
		}
	}
}

// fewestFirst orders by how few keys the calls wait for that have joined; those that no call has joined come last.
func fewestFirst(a, b int) int {
	if a == 0 || b == 0 {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

// lookAgainMany looks at what was found so long ago that the locks of its renewals say nothing any more, in one trip, and returns what is
// still to be brought. The rest has landed, or goes its own way in group.
func (c *Cache[K, V]) lookAgainMany(ctx context.Context, ls []*loading[K, V], group *sync.WaitGroup) (still []*loading[K, V]) {
	var old []*loading[K, V]
	var fulls []string
	for _, l := range ls {
		if !l.outdated() {
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

// flySome brings as many of free as may be loaded now, and returns the others, and whether the origin answered.
func (c *Cache[K, V]) flySome(ctx, wait context.Context, free []*loading[K, V], group *sync.WaitGroup) (others []*loading[K, V], brought bool) {
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
		free = c.lookAgainMany(ctx, free, group)
		claimed, claims, lost := c.claimMany(ctx, turns(free), group)
		c.flyAlone(ctx, lost, group)
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
	var alone []*loading[K, V]
	wanted := slices.DeleteFunc(turns(c.lookAgainMany(ctx, some, group)), func(l *loading[K, V]) bool {
		if l.unstorable() {
			alone = append(alone, l)
		}
		return l.unstorable()
	})
	claimed, claims, lost := c.claimMany(ctx, wanted, group)
	others = append(others, lost...)
	loads, here := append(claimed, alone...), len(claimed)
	brought = len(loads)+len(lost) < len(some) // by others
	var wg sync.WaitGroup
	var answered atomic.Bool
	for i, l := range loads {
		wg.Go(func() {
			defer permits[i].Drop()
			var got loaded[V]
			if i < here {
				got = l.loadAndFill(ctx, permits[i], claims[i])
			} else {
				got = l.loadAlone(ctx, permits[i])
			}
			if !errors.Is(got.err, mayfly.ErrLoadTimeout) {
				answered.Store(true)
			}
		})
	}
	for _, p := range permits[len(loads):] {
		giveBack(p)
	}
	wg.Wait()
	return others, brought || answered.Load()
}

// unstorable reports whether l is to be loaded without storing.
func (l *loading[K, V]) unstorable() bool { return l.alone || l.found.State == lease.Held }

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
	var theirs []*loading[K, V]
	for i, a := range c.guard.Ask(ctx, wants) {
		l := ls[i]
		l.spent += a.Spent
		switch {
		case a.Standing == lease.Mine:
			claimed, claims = append(claimed, l), append(claims, a.Claim)
		case a.Standing == lease.Void:
			l.found = a.Found
			lost = append(lost, l)
		case a.Standing == lease.Theirs && !l.fallback(): // known now: it need not ask again
			l.found = a.Found
			theirs = append(theirs, l)
		case l.turnTo(ctx, a):
		case l.alone:
			lost = append(lost, l)
		default:
			group.Go(func() { l.fly(ctx) })
		}
	}
	c.flyTheirs(ctx, theirs, group)
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
		if was := l.previous(); was != nil {
			if previous == nil {
				previous = make(map[K]Entry[V])
			}
			previous[l.key] = *was
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
		l.landUnstored(ctx, &got[i])
	}
}

// allAbandoned is closed when every flight is.
func (c *Cache[K, V]) allAbandoned(ctx context.Context, ls []*loading[K, V]) <-chan struct{} {
	all := make(chan struct{})
	ls = slices.Clone(ls) // the caller may sort its own meanwhile
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
