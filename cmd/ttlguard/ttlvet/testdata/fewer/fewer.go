// Package fewer is looked at with the flags.
package fewer

import (
	"context"

	"github.com/redis/go-redis/v9"
)

func writes(ctx context.Context, rdb *redis.Client) {
	rdb.Set(ctx, "a", 1, 0) // want `Set: an expiration of 0`
	rdb.Incr(ctx, "b")
	rdb.Incr(ctx, "c") //ttlguard:ok nothing is said of it, as not all is looked at
}
