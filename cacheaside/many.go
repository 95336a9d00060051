package cacheaside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/localsync"
)

// ManyError is the error of a call for several keys when some of them failed. errors.Is and errors.As find any of its errors.
type ManyError[K comparable] struct {
	Errs map[K]error // never empty
}

// Error says how many keys failed, and why one of them did.
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

// GetMany returns the values of keys. Stored values are read in one trip per server; a batch loader loads the others in one call. A
// key that the origin does not have is not in the map, and is not an error. If some keys failed, the error is a [*ManyError] that
// says which, and the values in the map are still right.
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

// notAtHand passes the local tier's values to keep, and returns the other keys.
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

// lookMany looks each key up once. Keys that cannot be looked up go to failed.
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

// answers asks Redis for keys in one trip, and in a second one for the keys that the first left in doubt.
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
