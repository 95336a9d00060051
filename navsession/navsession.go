// Package navsession keeps the latest N pages of each user's visit, such that each was viewed at most so long after the one before:
// the navigation session of the documentation of EXPIRE.
//
//	visits, err := navsession.New(mayfly.Namespace[int64, navsession.Page]{
//		Name: "visits", Redis: rdb, Prefix: "pageviews.user:", TTL: 60 * time.Second,
//	}, navsession.Options{Pages: 20})
//	...
//	err = visits.Record(ctx, 1001, navsession.Page{URL: "/shoes/7", Time: time.Now()})
//	pages, err := visits.Recent(ctx, 1001, 5) // the newest first; none if the user has been idle for a minute
//
// A page view is the documentation's transaction, in one trip:
//
//	MULTI
//	RPUSH pageviews.user:1001 {"url":"/shoes/7",...}
//	LTRIM pageviews.user:1001 -20 -1
//	PEXPIRE pageviews.user:1001 60000
//	EXEC
//
// The first page of a visit has a PEXPIRETIME before these, so that a key that holds something else is left as it was, its
// end included. The list ends by itself when the user is idle: the page after that begins a new one. It holds what the
// codec writes, so that with [mayfly.Text] it is the documentation's list of URLs.
//
// [Counter] only counts. [Middleware] records the page views of an http.Handler. [Related] learns which pages are seen in the same
// visits, to recommend them.
//
// Redis holds the only copy, so its failure is the caller's error and never an answer. A page whose reply was lost is
// [mayfly.ErrUnknownOutcome]: it is not sent again, since it could then be there twice.
package navsession

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/onlycopy"
)

// Options set up a Visits.
type Options struct {
	// Pages is how many pages of a visit are kept, the latest. At least 1; there is no default, for it bounds the memory.
	Pages int
}

// Visits keeps one visit per user. It is safe for concurrent use, starts no goroutine and needs no Close.
type Visits[K comparable, P any] struct {
	room onlycopy.Room[K, P]
	// The arguments of each page view.
	first, idle any
	known       *known
}

// New returns the visits of ns, whose TTL is how long a user may be idle between two pages of the same visit. It does no I/O.
// The namespace has no Jitter, since the gap is meant, and no Local tier.
func New[K comparable, P any](ns mayfly.Namespace[K, P], o Options) (*Visits[K, P], error) {
	room, err := idle(ns)
	if o.Pages < 1 {
		err = errors.Join(err, fmt.Errorf("navsession: Options.Pages must be at least 1, got %d", o.Pages))
	}
	if err != nil {
		return nil, err
	}
	return &Visits[K, P]{room: room, first: -o.Pages, idle: ns.TTL.Milliseconds(), known: newKnown(ns.TTL)}, nil
}

// idle checks a namespace whose TTL is an idle gap.
func idle[K comparable, V any](ns mayfly.Namespace[K, V]) (onlycopy.Room[K, V], error) {
	room, err := onlycopy.Of("navsession", ns)
	if j := ns.Jitter; j.Fraction != 0 || j.Floor != 0 || j.Ceiling != 0 {
		err = errors.Join(err, errors.New("navsession: Namespace.Jitter must be jitter.None: the TTL is the gap that ends a visit"))
	}
	return room, errors.Join(err, notLocal(ns.Local))
}

func notLocal(l *mayfly.Local) error {
	if l == nil {
		return nil
	}
	return errors.New("navsession: Namespace.Local must be nil: what changes with each page is not worth a copy")
}

// Record adds a page to the user's visit, or begins one, and gives the visit its whole TTL again. If the visit has more than
// Options.Pages pages then, the oldest go. After [mayfly.ErrUnknownOutcome] the page may be there: [Visits.Recent] tells.
func (v *Visits[K, P]) Record(ctx context.Context, user K, page P) error {
	full, err := v.room.FullKey(user)
	if err != nil {
		return v.room.Fail("record a page of", user, err)
	}
	begun := time.Now()
	if err = v.record(ctx, full, page, begun); err != nil {
		err = v.room.Fail("record a page of", user, err)
	}
	wrote(ctx, v.room.Observer, v.room.Name, full, begun, err)
	return err
}

func (v *Visits[K, P]) record(ctx context.Context, full string, page P, now time.Time) error {
	bytes, err := v.room.Codec.Append(nil, page)
	if err != nil {
		return err
	}
	is := onlycopy.List
	if v.known.has(full, now) {
		is = nil
	}
	var key any = full // boxed once
	err = v.room.Transact(ctx, full, is,
		redis.NewCmd(ctx, "rpush", key, bytes),
		redis.NewCmd(ctx, "ltrim", key, v.first, -1),
		redis.NewCmd(ctx, "pexpire", key, v.idle))
	v.known.wrote(full, now, err)
	return err
}

// wrote tells o of a write that ended.
func wrote(ctx context.Context, o mayfly.Observer, namespace, full string, begun time.Time, err error) {
	if o == nil {
		return
	}
	e := mayfly.Event{Kind: mayfly.Write, Outcome: mayfly.OK, Namespace: namespace, Key: full, Took: time.Since(begun), Err: err}
	if err != nil {
		e.Outcome = mayfly.Failed
	}
	o.Observe(ctx, e)
}

// Recent returns the latest pages of the user's visit, n at most, the newest first. A user without a visit has none, which is no error.
func (v *Visits[K, P]) Recent(ctx context.Context, user K, n int) (pages []P, err error) {
	defer func() { err = v.room.Fail("read the pages of", user, err) }()
	if n < 1 {
		return nil, fmt.Errorf("n must be at least 1, got %d", n)
	}
	full, err := v.room.FullKey(user)
	if err != nil {
		return nil, err
	}
	held, err := v.room.Redis.LRange(ctx, full, int64(-n), -1).Result()
	if err != nil {
		return nil, v.room.Explain(ctx, full, err)
	}
	pages = make([]P, 0, len(held))
	for _, bytes := range slices.Backward(held) {
		page, err := v.room.Codec.Decode([]byte(bytes))
		if err != nil {
			return nil, fmt.Errorf("a page that the codec %q cannot read: %w", v.room.Codec.Format(), err)
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// Len returns how many pages of the user's visit are kept: 0 without a visit.
func (v *Visits[K, P]) Len(ctx context.Context, user K) (int, error) {
	full, err := v.room.FullKey(user)
	var n int64
	if err == nil {
		n, err = v.room.Redis.LLen(ctx, full).Result()
		err = v.room.Explain(ctx, full, err)
	}
	return int(n), v.room.Fail("count the pages of", user, err)
}

// End ends the user's visit, as at a logout. To end none is no error.
func (v *Visits[K, P]) End(ctx context.Context, user K) error {
	full, err := v.room.FullKey(user)
	if err == nil {
		end := onlycopy.Once(ctx, "ltrim", full, 1, 0) // to nothing: unlike DEL it fails where a key is no list
		v.room.Redis.Process(ctx, end)
		err = v.room.ExplainWrite(ctx, full, end.Err())
	}
	return v.room.Fail("end the visit of", user, err)
}
