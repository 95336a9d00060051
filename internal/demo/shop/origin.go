package shop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// lineOf is the longest time that a query may stand in line.
const lineOf = 3 * time.Second

var errFull = errors.New("the catalogue's database has too many queries in line")

// origin is the database of the catalogue. A few workers run its queries in order. They finish a query even if nobody waits for
// the answer any more: that is how an overloaded database stays overloaded. It refuses queries that would stand in line longer than lineOf.
type origin struct {
	takes time.Duration // time of a query

	mu     sync.Mutex  // guards the fields below
	free   []time.Time // when each worker has finished its queries
	slow   time.Time   // until then a query takes slower times as long
	inLine []time.Time // when each unfinished query will be done, in no order
}

func newOrigin(workers int, takes time.Duration) *origin {
	return &origin{takes: takes, free: make([]time.Time, workers)}
}

// begin gives a query to the worker that is free first, and returns when the query will be done.
func (o *origin) begin(now time.Time) (done time.Time, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	first := 0
	for i, at := range o.free {
		if at.Before(o.free[first]) {
			first = i
		}
	}
	at := o.free[first]
	if at.Before(now) {
		at = now
	}
	if at.Sub(now) > lineOf {
		return at, errFull
	}
	takes := o.takes
	if at.Before(o.slow) {
		takes *= slower
	}
	o.free[first] = at.Add(takes)
	o.inLine = append(o.doneLocked(now), o.free[first])
	return o.free[first], nil
}

// slowUntil makes queries slow that a worker begins before then.
func (o *origin) slowUntil(then time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.slow = then
}

// doneLocked returns inLine without the finished queries.
func (o *origin) doneLocked(now time.Time) []time.Time {
	return slices.DeleteFunc(o.inLine, func(done time.Time) bool { return !done.After(now) })
}

// query returns an article.
func (o *origin) query(ctx context.Context, id int) (string, error) {
	done, err := o.begin(time.Now())
	if err != nil {
		return "", err
	}
	if !sleep(ctx, time.Until(done)) {
		return "", context.Cause(ctx)
	}
	return fmt.Sprint("article ", id), nil
}

// unfinished returns how many queries are in progress or in line.
func (o *origin) unfinished(now time.Time) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.inLine = o.doneLocked(now)
	return len(o.inLine)
}
