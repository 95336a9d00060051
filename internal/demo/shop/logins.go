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
	// addressLives is how long the shop may know where a shopper logged in from.
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
	Set(ctx context.Context, shopper string, l login) error
}

// newFieldLogins returns logins whose fields expire at their own times.
func newFieldLogins(rdb *redis.Client, seen mayfly.Observer) (logins, error) {
	return fieldttl.New(mayfly.Namespace[string, login]{Name: "logins", Redis: rdb, Prefix: loginPrefix, TTL: loginLives, Observer: seen}, fieldttl.Options{})
}

// wholeLogins expire as a whole: HSET and EXPIRE, as by hand. The address stays as long as the rest.
type wholeLogins struct{ rdb *redis.Client }

func (w wholeLogins) Set(ctx context.Context, shopper string, l login) error {
	p := w.rdb.Pipeline()
	p.HSet(ctx, loginPrefix+shopper, l)
	p.Expire(ctx, loginPrefix+shopper, loginLives)
	_, err := p.Exec(ctx)
	return err
}
