package shop

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
)

const (
	loginLives = time.Minute
	// addressLives is for how long the shop may know where a shopper logged in from.
	addressLives = 4 * time.Second
)

// login is the TTL guide's session.
type login struct {
	User string `redis:"user"`
	IP   string `redis:"ip,ttl=4s"`
	CSRF string `redis:"csrf_token,ttl=15s"`
}

// logins keeps the login of each shopper.
type logins interface {
	begin(ctx context.Context, shopper string, l login) error
}

// fieldLogins have fields that end at their own times.
type fieldLogins struct {
	store *fieldttl.Store[string, login]
}

func newFieldLogins(rdb *redis.Client, prefix string, seen mayfly.Observer) (logins, error) {
	store, err := fieldttl.New(mayfly.Namespace[string, login]{Name: "logins", Redis: rdb, Prefix: prefix, TTL: loginLives, Observer: seen})
	return fieldLogins{store}, err
}

func (f fieldLogins) begin(ctx context.Context, shopper string, l login) error {
	return f.store.Set(ctx, shopper, l)
}

// wholeLogins end as a whole: HSET and EXPIRE, as by hand. The address stays as long as the rest.
type wholeLogins struct {
	rdb    *redis.Client
	prefix string
}

func (w wholeLogins) begin(ctx context.Context, shopper string, l login) error {
	_, err := w.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, w.prefix+shopper, l)
		p.Expire(ctx, w.prefix+shopper, loginLives)
		return nil
	})
	return err
}
