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
	"github.com/mayflycache/mayfly/internal/client/flight"
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

// GetMany returns the values of keys. Stored values are read in one trip per server; a batch loader loads the others in one call. Keys
// that other calls of this process are loading are waited for, and loaded once more, together, if what that brings is not for this
// call, for example because they were deleted. A key that the origin does not have is not in the map, and is not an error. If some keys failed, the error is a [*ManyError] that
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
	for len(keys) > 0 { // the rest is what this call was late for, which it is once for each key, as in get
		keys = c.getSome(ctx, keys, began, begun, keep)
	}
	if len(failed) > 0 {
		return values, &ManyError[K]{failed}
	}
	return values, nil
}

// getSome brings keys for a call that began then, and passes them to keep. It returns the keys to look up again, together, since what other calls
// were loading is not for this one.
func (c *Cache[K, V]) getSome(ctx context.Context, keys []K, began flight.Moment, begun time.Time, keep func(key K, e Entry[V], err error)) (again []K) {
	var waiting, lead []*loading[K, V]
	started := false
	defer func() {
		if !started { // an observer or a codec has ended this call: others may have joined its loads
			failAll(lead, errEnded)
		}
	}()
	for _, l := range c.lookMany(ctx, keys, begun, keep) {
		if l.seen.servable() {
			e, err := c.serve(ctx, *l, begun)
			keep(l.key, e, err)
			continue
		}
		l.began = began
		waiting = append(waiting, l)
	}
	for _, l := range waiting {
		if c.lead(ctx, l, len(waiting)) {
			lead = append(lead, l)
		}
	}
	theirs := make([]loading[K, V], len(waiting)) // the loads go on with the others
	for i, l := range waiting {
		theirs[i] = *l
	}
	started = true
	if len(lead) > 0 && !c.works.Start(func() { c.flyMany(ctx, lead) }) {
		failAll(lead, mayfly.ErrClosed)
	}
	since := time.Now()
	for i := range theirs {
		l := &theirs[i]
		e, err, late := l.await(ctx, l.flight, since)
		if late {
			again = append(again, l.key)
			continue
		}
		l.tellEnd(ctx, e.Outcome, begun, err)
		keep(l.key, e, err)
	}
	return again
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

// lookMany looks each key up once. Keys that cannot be looked up have failed: keep is told.
func (c *Cache[K, V]) lookMany(ctx context.Context, keys []K, call time.Time, keep func(key K, e Entry[V], err error)) []*loading[K, V] {
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
			c.tellFailed(ctx, full, call, err)
			keep(key, Entry[V]{}, err)
			continue
		}
		l := &loading[K, V]{c: c, key: key, full: full, loader: c.one}
		ticket := c.local.Begin(full)
		if l.apart = c.unremoved.Has(full); l.apart {
			l.alone = true
		} else {
			tickets, asked, fulls = append(tickets, ticket), append(asked, l), append(fulls, full)
		}
		ls = append(ls, l)
	}
	gone := make(map[K]bool)
	begun := time.Now()
	for n, a := range c.answers(ctx, asked, fulls) {
		l := asked[n]
		l.spent = a.Spent
		switch {
		case a.Err != nil && ctx.Err() != nil:
			gone[l.key] = true // says nothing of Redis, and nobody is here to load for
			c.tellFailed(ctx, l.full, call, ctx.Err())
			keep(l.key, Entry[V]{}, ctx.Err())
		case a.Err != nil:
			c.tell.Backend(ctx, l.full, a.Err)
			l.alone = true
		default:
			l.found = a.Found
			l.judge(ctx, begun)
			c.keepCopy(l.full, tickets[n], l.found, &l.seen)
		}
	}
	return slices.DeleteFunc(ls, func(l *loading[K, V]) bool { return gone[l.key] })
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
