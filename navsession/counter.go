package navsession

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/keyspace"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// CounterOptions adjust a Counter. The zero value works.
type CounterOptions struct {
	// RedisTimeout is how long one request to Redis may take, as in [Options]. Zero is 150 ms.
	RedisTimeout time.Duration
}

// Counter counts the page views of each user's visit and keeps no pages. It is the documentation's variant with INCR instead of RPUSH. It is safe
// for concurrent use, starts no goroutine and needs no Close.
type Counter[K comparable] struct {
	room room[K, int64]
	idle any
}

// NewCounter returns the counters of ns. Its TTL is how long a user may be idle between two views of the same visit. NewCounter does no
// I/O. The namespace must have no Codec, Plain, Clone or Cost, since INCR needs a decimal number, and no Jitter or Local tier.
func NewCounter[K comparable](ns mayfly.Namespace[K, int64], o CounterOptions) (*Counter[K], error) {
	room, c := keyspace.OwnForm("navsession", ns, "INCR writes numbers in decimal, and they are not copied")
	idle(c, room, ns.Local != nil)
	c.TTL("CounterOptions.RedisTimeout", o.RedisTimeout)
	if err := c.Err(); err != nil {
		return nil, err
	}
	return &Counter[K]{roomOf(room, o.RedisTimeout), ns.TTL.Milliseconds()}, nil
}

// Record counts a page view, gives the visit its whole TTL again, and returns the number of views of the visit so far, including this one:
// 1 begins a visit. After [mayfly.ErrUnknownOutcome] the view may have been counted.
func (c *Counter[K]) Record(ctx context.Context, user K) (views int64, err error) {
	err = write(ctx, c.room, "count a page of", user, func(full string, _ time.Time) error {
		incr := redis.NewIntCmd(ctx, "incr", full)
		err := sendonce.Transact(ctx, c.room.redis, full, sendonce.Counter, incr, redis.NewCmd(ctx, "pexpire", full, c.idle))
		views = incr.Val()
		return err
	})
	return views, err
}

// Len returns the number of views of the user's visit: 0 without a visit.
func (c *Counter[K]) Len(ctx context.Context, user K) (views int64, err error) {
	err = c.room.Do("count the pages of", user, func(full string) error {
		counted := redis.NewStringCmd(ctx, "get", full)
		c.room.redis.Ask(ctx, full, counted)
		views, err = counted.Int64()
		return noneIsFine(sendonce.Answer(ctx, c.room.redis, full, err))
	})
	return views, err
}

// End ends the user's visit. Ending no visit is not an error.
func (c *Counter[K]) End(ctx context.Context, user K) error {
	return c.room.Do("end the visit of", user, func(full string) error {
		return noneIsFine(sendonce.Write(ctx, c.room.redis, full, "getdel", full)) // unlike DEL, this fails if the key does not hold a string
	})
}

func noneIsFine(err error) error {
	if errors.Is(err, mayfly.ErrNotFound) {
		return nil
	}
	return err
}
