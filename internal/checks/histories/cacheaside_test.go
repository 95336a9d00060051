package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

func TestCacheaside(t *testing.T) {
	faults := cacheaside.Faults{RedisTimeout: 120 * time.Millisecond}
	for name, way := range map[string]struct {
		plain   bool
		ttl     time.Duration
		options cacheaside.Options
	}{
		"default": {ttl: time.Minute},
		"renewed": {ttl: 100 * time.Millisecond, options: cacheaside.Options{Early: earlyrefresh.Linear(1), Stale: cacheaside.Stale{While: 50 * time.Millisecond}}},
		"plain":   {ttl: time.Minute, plain: true},
		"held":    {ttl: time.Minute, options: cacheaside.Options{Hold: 20 * time.Millisecond}},
	} {
		for server, start := range servers {
			t.Run(fmt.Sprintf("%s, %s", name, server), func(t *testing.T) {
				t.Parallel()
				addr := start(t)
				way.options.Faults = faults
				play(t, addr, func(rdb *redis.Client, d *database) cache {
					ns := mayfly.Namespace[int, int64]{Name: "histories", Redis: rdb, Prefix: "cache:", TTL: way.ttl, Plain: way.plain}
					c := mayfly.Must(cacheaside.New(ns, func(_ context.Context, key int) (int64, error) { return d.load(key), nil }, way.options))
					return cache{
						get: func(ctx context.Context, key int) (int64, error) {
							if rand.N(4) > 0 {
								return c.Get(ctx, key)
							}
							found, err := c.GetMany(ctx, []int{key, (key + 1) % keys})
							return found[key], err
						},
						remove: func(ctx context.Context, key int) error { return c.Delete(ctx, key) },
						set:    c.Set,
						close:  c.Close,
						own:    true,
					}
				})
			})
		}
	}
}
