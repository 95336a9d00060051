package shop

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/sliding"
)

// cartLives is for how long a cart stays unused. Real ones live for weeks; this one is to be watched.
const cartLives = 8 * time.Second

// cart is product numbers, in the order in which they were put in.
type cart []int

// carts keeps a cart per shopper. get returns an empty one where there is none.
type carts interface {
	get(ctx context.Context, shopper string) (cart, error)
	put(ctx context.Context, shopper string, c cart) error
}

// slidingCarts live while they are used.
type slidingCarts struct{ store *sliding.Store[string, cart] }

func newSlidingCarts(rdb *redis.Client, prefix string, seen mayfly.Observer) (carts, error) {
	store, err := sliding.New(mayfly.Namespace[string, cart]{Name: "carts", Redis: rdb, Prefix: prefix, TTL: cartLives, Observer: seen}, sliding.Options{})
	return slidingCarts{store}, err
}

func (s slidingCarts) get(ctx context.Context, shopper string) (cart, error) {
	c, err := s.store.Get(ctx, shopper)
	if errors.Is(err, mayfly.ErrNotFound) {
		return nil, nil
	}
	return c, err
}

func (s slidingCarts) put(ctx context.Context, shopper string, c cart) error {
	return s.store.Set(ctx, shopper, c)
}

// fixedCarts end a while after they were last changed, in use or not: SET EX, as by hand.
type fixedCarts struct {
	rdb    *redis.Client
	prefix string
}

func (f fixedCarts) get(ctx context.Context, shopper string) (c cart, err error) {
	text, err := f.rdb.Get(ctx, f.prefix+shopper).Bytes()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

func (f fixedCarts) put(ctx context.Context, shopper string, c cart) error {
	text, err := json.Marshal(c)
	if err == nil {
		err = f.rdb.Set(ctx, f.prefix+shopper, text, cartLives).Err()
	}
	return err
}
