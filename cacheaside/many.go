package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/admission"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// ManyError is the error of a call about several keys of which some failed. errors.Is and As find any of its errors.
type ManyError[K comparable] struct {
	Errs map[K]error // never empty
}

// Error tells how many failed, and why one did.
func (e *ManyError[K]) Error() string {
	for key, err := range e.Errs {
		if len(e.Errs) == 1 {
			return fmt.Sprintf("cacheaside: key %v failed: %v", key, err)
		}
		return fmt.Sprintf("cacheaside: %d keys failed; one of them is %v: %v", len(e.Errs), key, err)
	}
	return "cacheaside: no key failed"
}

// Unwrap returns the errors of the keys.
func (e *ManyError[K]) Unwrap() []error { return slices.Collect(maps.Values(e.Errs)) }

// GetMany returns the values of keys: those stored, read in one trip per server, and the others as loaded, by one call of a
// batch loader. A key that the origin does not have is not in the map, and that is no error. What is in the map is
// right also if there is an error, which is then a [*ManyError] that tells which keys failed.
func (c *Cache[K, V]) GetMany(ctx context.Context, keys []K) (map[K]V, error) {
	values, failed := make(map[K]V, len(keys)), make(map[K]error)
	keep := func(key K, e Entry[V], err error) {
		switch {
		case err == nil:
			values[key] = e.Value
		case !errors.Is(err, mayfly.ErrNotFound):
			failed[key] = err
		}
	}
	begun, began := time.Now(), c.flights.Now()
	if c.local != nil {
		keys = c.notAtHand(ctx, keys, keep)
	}
	var waiting, lead []*loading[K, V]
	for _, l := range c.lookMany(ctx, keys, failed) {
		if l.seen.servable() {
			e, err := c.serve(ctx, *l, begun)
			keep(l.key, e, err)
			continue
		}
		l.began = began
		if c.lead(ctx, l) {
			lead = append(lead, l)
		}
		waiting = append(waiting, l)
	}
	theirs := make([]loading[K, V], len(waiting)) // the loads go on with the others
	for i, l := range waiting {
		theirs[i] = *l
	}
	if len(lead) > 0 && !c.works.Start(func() { c.flyMany(ctx, lead) }) {
		for _, l := range lead {
			l.fail(mayfly.ErrClosed)
		}
	}
	since := time.Now()
	for i := range theirs {
		l := &theirs[i]
		e, err, again := l.await(ctx, l.flight, since)
		if again {
			e, err = c.getSince(ctx, began, l.key, c.one)
		} else if err == nil {
			l.tellRead(ctx, e.Outcome, begun)
		}
		keep(l.key, e, err)
	}
	if len(failed) > 0 {
		return values, &ManyError[K]{failed}
	}
	return values, nil
}

// notAtHand hands out what the local tier has of keys, and returns the others.
func (c *Cache[K, V]) notAtHand(ctx context.Context, keys []K, keep func(key K, e Entry[V], err error)) (others []K) {
	for _, key := range keys {
		v, negative, ok := c.hit(ctx, key, c.one)
		switch {
		case !ok:
			others = append(others, key)
		case !negative:
			keep(key, Entry[V]{Value: v}, nil)
		}
	}
	return others
}

// lookMany looks for each of keys once. Those that cannot be looked for go to failed.
func (c *Cache[K, V]) lookMany(ctx context.Context, keys []K, failed map[K]error) []*loading[K, V] {
	ls := make([]*loading[K, V], 0, len(keys))
	seen := make(map[K]bool, len(keys))
	var asked []*loading[K, V]
	var fulls []string
	var tickets []localsync.Ticket
	for _, key := range keys {
		if seen[key] {
			continue
		}
		seen[key] = true
		full, err := c.begin(key)
		if err != nil {
			failed[key] = err
			continue
		}
		l := &loading[K, V]{c: c, key: key, full: full, loader: c.one}
		ticket := c.local.Begin(full)
		if l.alone = c.unremoved.Has(full); !l.alone {
			tickets, asked, fulls = append(tickets, ticket), append(asked, l), append(fulls, full)
		}
		ls = append(ls, l)
	}
	begun := time.Now()
	for n, a := range c.answers(ctx, asked, fulls) {
		l := asked[n]
		l.spent = a.Spent
		switch {
		case a.Err != nil && ctx.Err() != nil:
			failed[l.key] = ctx.Err() // says nothing of Redis, and nobody is here to load for
		case a.Err != nil:
			c.tell.Backend(ctx, l.full, a.Err)
			l.alone = true
		default:
			l.found = a.Found
			l.judge(ctx, begun)
			c.keepCopy(l.full, tickets[n], l.found, &l.seen)
		}
	}
	return slices.DeleteFunc(ls, func(l *loading[K, V]) bool { return failed[l.key] != nil })
}

// answers asks Redis for keys: in one trip, and in a second one for what the first left in doubt.
func (c *Cache[K, V]) answers(ctx context.Context, asked []*loading[K, V], fulls []string) []lease.Answer {
	var answers []lease.Answer
	if c.glance {
		answers = c.guard.GlanceMany(ctx, fulls)
	} else {
		answers = c.guard.LookMany(ctx, fulls, c.askTTL)
	}
	var doubted []string
	var of []int
	var most lease.Found // which leaves the least for a second trip
	for n, a := range answers {
		asked[n].draw = rand.Float64()
		if a.Err == nil && c.doubts(a.Found, asked[n].draw) {
			doubted, of = append(doubted, fulls[n]), append(of, n)
			most.Spent, most.Header.Window = max(most.Spent, a.Spent), max(most.Header.Window, a.Header.Window)
		}
	}
	if len(doubted) == 0 {
		return answers
	}
	rest, cancel, worth := c.rest(ctx, most)
	defer cancel()
	if !worth {
		return answers
	}
	for m, now := range c.guard.LookMany(rest, doubted, true) {
		a := &answers[of[m]]
		a.Found, a.Err = c.ascertained(ctx, doubted[m], a.Found, now)
	}
	return answers
}

// atOnce is how many keys a loader of single keys is asked for at once, by one call about many.
const atOnce = 32

// flyMany brings many keys, as fly does one: those that are free are claimed together, loaded together and stored
// together. Nothing that was claimed waits for what somebody else loads, so that two calls about overlapping keys never
// wait for each other.
func (c *Cache[K, V]) flyMany(caller context.Context, ls []*loading[K, V]) {
	ctx, cancel := c.works.On(caller)
	defer cancel()
	wait, cancel := context.WithTimeoutCause(ctx, c.opt.LoadTimeout, mayfly.ErrLoadTimeout)
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
	for len(free) > 0 {
		free = c.flySome(ctx, wait, free, &alone, &group)
	}
	if len(alone) == 0 {
		return
	}
	if c.many == nil {
		for _, l := range alone {
			group.Go(func() { l.fly(ctx) })
		}
		return
	}
	permit, err := c.enter(ctx, wait, alone...)
	if err != nil {
		failAll(alone, err)
		return
	}
	defer permit.Drop()
	c.loadGroup(ctx, &permit, turns(alone), nil)
}

// flySome brings as many of free as may be loaded now, and returns the others. What can only be loaded alone is added to alone.
func (c *Cache[K, V]) flySome(ctx, wait context.Context, free []*loading[K, V], alone *[]*loading[K, V], group *sync.WaitGroup) (others []*loading[K, V]) {
	permit, err := c.enter(ctx, wait, free...)
	if err != nil {
		failAll(free, err)
		return nil
	}
	permits := []*admission.Permit{&permit}
	defer func() {
		for _, p := range permits {
			giveBack(p) // what was not needed: a loader gives its own back
		}
	}()
	if c.many != nil {
		claimed, claims, lost := c.claimMany(ctx, turns(free), group)
		*alone = append(*alone, lost...)
		c.loadGroup(ctx, &permit, claimed, claims)
		return nil
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
	for i, l := range claimed {
		loads.Go(func() {
			defer permits[i].Drop()
			l.loadAndFill(ctx, permits[i], claims[i])
		})
	}
	for _, p := range permits[len(claimed):] {
		giveBack(p)
	}
	loads.Wait()
	return others
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
	cost, runs, err := c.supervise(permit.Inside(ctx), watch{abandoned, claims, ends}, func(ctx context.Context) error {
		answer.find, answer.err = c.many(ctx, keys, previous)
		answer.err = because(ctx, answer.err)
		return nil
	})
	find, part := func(K) (answer Loaded[V], ok bool) { return }, err
	if err == nil {
		find, part = answer.find, answer.err
	}
	part, _ = c.notFound(part)
	permit.Done(ended(part), time.Now())
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
