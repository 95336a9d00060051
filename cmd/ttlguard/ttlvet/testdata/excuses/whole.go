//ttlguard:ok this file hands commands on, and its callers say how long

package excuses

import (
	"context"

	"github.com/redis/go-redis/v9"
)

func set(ctx context.Context, rdb *redis.Client, key string)  { rdb.Set(ctx, key, 1, 0) }
func incr(ctx context.Context, rdb *redis.Client, key string) { rdb.Incr(ctx, key) }
