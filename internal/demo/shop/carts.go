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

// cartLives is how long an unused cart lives. Real ones live for weeks; this one is meant to be watched.
const cartLives = 8 * time.Second

// cart is a list of product numbers, in the order in which they were added.
type cart []int

// carts keeps a cart per shopper. Get's error is mayfly.ErrNotFound or redis.Nil if there is none.
type carts interface {
	Get(ctx context.Context, shopper string) (cart, error)
	Set(ctx context.Context, shopper string, c cart) error
}

// slidingCartPrefix is the prefix of carts that live as long as they are used.
const slidingCartPrefix = byMayfly + "cart:"

// newSlidingCarts returns carts that live as long as they are used.
func newSlidingCarts(rdb *redis.Client, seen mayfly.Observer) (carts, error) {
	return sliding.New(mayfly.Namespace[string, cart]{Name: "carts", Redis: rdb, Prefix: slidingCartPrefix, TTL: cartLives, Observer: seen}, sliding.Options{})
}

// cartOf returns a shopper's cart, or an empty one if there is none.
func (p *process) cartOf(ctx context.Context, shopper string) (cart, error) {
	c, err := p.carts.Get(ctx, shopper)
	if errors.Is(err, mayfly.ErrNotFound) || errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return c, err
}

// fixedCarts expire a while after their last change, in use or not: SET EX, as by hand.
type fixedCarts struct{ rdb *redis.Client }

const fixedCartPrefix = byHand + "cart:"

func (f fixedCarts) Get(ctx context.Context, shopper string) (c cart, err error) {
	text, err := f.rdb.Get(ctx, fixedCartPrefix+shopper).Bytes()
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

func (f fixedCarts) Set(ctx context.Context, shopper string, c cart) error {
	text, err := json.Marshal(c)
	if err == nil {
		err = f.rdb.Set(ctx, fixedCartPrefix+shopper, text, cartLives).Err()
	}
	return err
}
