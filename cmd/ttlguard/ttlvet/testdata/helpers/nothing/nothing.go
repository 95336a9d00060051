// Package nothing has nothing to find.
package nothing

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

func set(rdb *redis.Client) error { return rdb.Set(context.Background(), "a", 1, time.Minute).Err() }
