package navsession

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/onlycopy"
)

// Counter counts the page views of each user's visit and keeps none of them: the documentation's variant with INCR instead of
// RPUSH. It is safe for concurrent use, starts no goroutine and needs no Close.
type Counter[K comparable] struct {
	room onlycopy.Room[K, int64]
	idle any
}

// NewCounter returns the counters of ns, whose TTL is how long a user may be idle between two views of the same visit. It
// does no I/O. The namespace has no Codec, since INCR needs a number in decimal, no Jitter and no Local tier.
func NewCounter[K comparable](ns mayfly.Namespace[K, int64]) (*Counter[K], error) {
	room, err := idle(ns)
	if ns.Codec != nil {
		err = errors.Join(err, errors.New("navsession: Namespace.Codec must be nil: INCR writes numbers in decimal"))
	}
	if err != nil {
		return nil, err
	}
	return &Counter[K]{room, ns.TTL.Milliseconds()}, nil
}

// Record counts a page view, gives the visit its whole TTL again, and returns the views of the visit so far, this one included:
// 1 begins one. After [mayfly.ErrUnknownOutcome] it may have been counted.
func (c *Counter[K]) Record(ctx context.Context, user K) (views int64, err error) {
	full, err := c.room.FullKey(user)
	if err != nil {
		return 0, c.room.Fail("count a page of", user, err)
	}
	begun := time.Now()
	incr := redis.NewIntCmd(ctx, "incr", full)
	if err = c.room.Transact(ctx, full, onlycopy.Counter, incr, redis.NewCmd(ctx, "pexpire", full, c.idle)); err != nil {
		err = c.room.Fail("count a page of", user, err)
	}
	wrote(ctx, c.room.Observer, c.room.Name, full, begun, err)
	return incr.Val(), err
}

// Len returns the views of the user's visit: 0 without a visit.
func (c *Counter[K]) Len(ctx context.Context, user K) (int64, error) {
	full, err := c.room.FullKey(user)
	var n int64
	if err == nil {
		n, err = c.room.Redis.Get(ctx, full).Int64()
		if err = c.room.Explain(ctx, full, err); errors.Is(err, mayfly.ErrNotFound) {
			err = nil
		}
	}
	return n, c.room.Fail("count the pages of", user, err)
}

// End ends the user's visit. To end none is no error.
func (c *Counter[K]) End(ctx context.Context, user K) error {
	full, err := c.room.FullKey(user)
	if err == nil {
		end := onlycopy.Once(ctx, "getdel", full) // unlike DEL it fails where a key is no string
		c.room.Redis.Process(ctx, end)
		if err = c.room.ExplainWrite(ctx, full, end.Err()); errors.Is(err, mayfly.ErrNotFound) {
			err = nil
		}
	}
	return c.room.Fail("end the visit of", user, err)
}
