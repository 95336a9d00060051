// Package navsession keeps the latest N pages of each user's visit. A visit ends when the user is idle for longer than the TTL: this is the
// navigation session from the documentation of EXPIRE.
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
// The first page of a visit has a PEXPIRETIME before these commands, so that a key that holds something else is left as it was, with its
// TTL. The list expires when the user is idle, and the next page begins a new one. The list holds what the codec writes: if pages are
// strings, it is the documentation's list of URLs.
//
// [Counter] only counts. [Middleware] records the page views of an http.Handler. [Related] learns which pages are seen in the same visits,
// for recommendations.
//
// Redis holds the only copy, so a failure of Redis is the caller's error and never an answer. If the reply for a page is lost, the error is
// [mayfly.ErrUnknownOutcome]. The page is not sent again, since it could then be recorded twice. It may still arrive, once. So may an End
// whose reply was lost, which then ends the visit of that moment.
package navsession

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/internal/client/keyspace"
	"github.com/mayflycache/mayfly/internal/client/recently"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Options configure Visits.
type Options struct {
	// Pages is how many of a visit's latest pages are kept, at least 1. There is no default, since it bounds the memory.
	Pages int

	// RedisTimeout is how long one request to Redis may take, whatever the client's own timeouts. Waiting for a connection that other
	// calls of this process hold does not count. If a server has left five requests in a row unanswered, it is not asked for
	// half a second, and then by one caller at a time. Until it answers, calls about its keys fail at once. Zero is 150 ms.
	RedisTimeout time.Duration
}

// room is a namespace and the way to its Redis.
type room[K comparable, V any] struct {
	keyspace.Room[K, V]
	redis sendonce.Bounded
}

func roomOf[K comparable, V any](of keyspace.Room[K, V], timeout time.Duration) room[K, V] {
	return room[K, V]{of, sendonce.To(of.Redis, of.Observer, of.Name, timeout)}
}

// Visits keeps one visit per user. It is safe for concurrent use, starts no goroutine and needs no Close.
type Visits[K comparable, P any] struct {
	room room[K, P]
	// arguments of every page view
	first, idle any
	// ours are the keys that this process wrote within their idle gap. Such a key still holds our list or is gone, so the next page of a
	// visit need not check what it holds. (If somebody replaces the list with something else during the visit, that keeps its value but
	// gets the visit's TTL.) A key that was forgotten is checked again, which costs about 3 us.
	ours *recently.Keys
}

// New returns the visits of ns. Its TTL is how long a user may be idle between two pages of the same visit. New does no I/O. The namespace
// must have no Jitter, since the TTL is an exact gap, no Local tier, and no Plain, Clone or Cost, which would mean nothing.
func New[K comparable, P any](ns mayfly.Namespace[K, P], o Options) (*Visits[K, P], error) {
	room, c := keyspace.Of("navsession", ns)
	idle(c, room, ns.Local != nil)
	noCopies(c, ns)
	c.Refuse(o.Pages < 1, "Options.Pages must be at least 1, got %d", o.Pages)
	c.TTL("Options.RedisTimeout", o.RedisTimeout)
	if err := c.Err(); err != nil {
		return nil, err
	}
	return &Visits[K, P]{room: roomOf(room, o.RedisTimeout), first: -o.Pages, idle: ns.TTL.Milliseconds(), ours: recently.New(1024)}, nil
}

// idle checks a namespace whose TTL is an idle gap.
func idle[K comparable, V any](c *check.List, room keyspace.Room[K, V], local bool) {
	c.Refuse(!room.Jitter.IsZero(), "Namespace.Jitter must be zero: the TTL is the gap that ends a visit")
	c.Refuse(local, notLocal)
}

// noCopies rejects options for copies, and Plain: lists and sets hold the codec's bytes anyway.
func noCopies[K comparable, V any](c *check.List, ns mayfly.Namespace[K, V]) {
	keyspace.OneTTL(c, ns)
	keyspace.Unused(c, ns, "pages are not copied, and always what the codec writes", "Plain", "Clone", "Cost")
}

const notLocal = "Namespace.Local must be nil: what changes with each page is not worth a copy"

// Record adds a page to the user's visit, or begins a visit, and gives the visit its whole TTL again. If the visit then has more than
// Options.Pages pages, the oldest are dropped. After [mayfly.ErrUnknownOutcome] the page may have been recorded: [Visits.Recent] shows it.
func (v *Visits[K, P]) Record(ctx context.Context, user K, page P) error {
	return write(ctx, v.room, "record a page of", user, func(full string, now time.Time) error {
		bytes, err := v.room.Codec.Append(nil, page)
		if err != nil {
			return err
		}
		is := sendonce.List
		if v.ours.Has(full) {
			is = nil
		}
		var key any = full // boxed once
		err = sendonce.Transact(ctx, v.room.redis, full, is,
			redis.NewCmd(ctx, "rpush", key, bytes),
			redis.NewCmd(ctx, "ltrim", key, v.first, -1),
			redis.NewCmd(ctx, "pexpire", key, v.idle))
		if err != nil {
			v.ours.Remove(full)
			return err
		}
		v.ours.Add(full, v.room.TTL-time.Since(now))
		return nil
	})
}

// write runs f, which writes under key and receives the time it began, and reports the outcome to the observer.
func write[K comparable, V any](ctx context.Context, room room[K, V], doing string, key K, f func(full string, now time.Time) error) error {
	full, err := room.FullKey(key)
	if err != nil {
		return room.Nameless(doing, key, err)
	}
	begun, outcome := time.Now(), mayfly.OutcomeOK
	if err = f(full, begun); err != nil {
		err, outcome = room.Fail(doing, full, err), mayfly.OutcomeFailed
	}
	if room.Observer != nil {
		room.Observer.Observe(ctx, mayfly.Event{Kind: mayfly.KindWrite, Outcome: outcome, Namespace: room.Name, Key: full, Took: time.Since(begun), Err: err})
	}
	return err
}

// Recent returns the latest pages of the user's visit, at most n, newest first. A user without a visit has none; that is not an error.
func (v *Visits[K, P]) Recent(ctx context.Context, user K, n int) ([]P, error) {
	return read(ctx, v.room, "read the pages of", user, n, func(full string) ([]string, error) {
		kept := redis.NewStringSliceCmd(ctx, "lrange", full, -n, -1)
		v.room.redis.Ask(ctx, full, kept)
		oldestFirst, err := kept.Result()
		slices.Reverse(oldestFirst)
		return oldestFirst, err
	})
}

// read decodes the pages, at most n, that ask finds under key.
func read[K comparable, P any](ctx context.Context, room room[K, P], doing string, key K, n int, ask func(full string) ([]string, error)) (pages []P, err error) {
	err = room.Do(doing, key, func(full string) error {
		if n < 1 {
			return fmt.Errorf("n must be at least 1, got %d", n)
		}
		held, err := ask(full)
		if err != nil {
			return sendonce.Answer(ctx, room.redis, full, err)
		}
		pages = make([]P, 0, len(held))
		for _, bytes := range held {
			page, err := room.Codec.Decode([]byte(bytes))
			if err != nil {
				pages = nil
				return fmt.Errorf("a page that the codec %q cannot read: %w", room.Codec.Format(), err)
			}
			pages = append(pages, page)
		}
		return nil
	})
	return pages, err
}

// Len returns how many pages of the user's visit are kept: 0 without a visit.
func (v *Visits[K, P]) Len(ctx context.Context, user K) (int, error) {
	n := redis.NewIntCmd(ctx)
	err := v.room.Do("count the pages of", user, func(full string) (err error) {
		n = redis.NewIntCmd(ctx, "llen", full)
		v.room.redis.Ask(ctx, full, n)
		return sendonce.Answer(ctx, v.room.redis, full, n.Err())
	})
	return int(n.Val()), err
}

// End ends the user's visit, for example at a logout. Ending no visit is not an error.
func (v *Visits[K, P]) End(ctx context.Context, user K) error {
	return v.room.Do("end the visit of", user, func(full string) error {
		return sendonce.Write(ctx, v.room.redis, full, "ltrim", full, 1, 0) // an empty range: unlike DEL, this fails if the key does not hold a list
	})
}
