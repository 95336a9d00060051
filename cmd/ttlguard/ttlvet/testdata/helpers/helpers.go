// Package helpers calls functions of others that call go-redis.
package helpers

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
	"vet.test/helpers/store"
)

func use(ctx context.Context, rdb *redis.Client, s *store.Store, key string, ttl time.Duration) { // want use:`^ends \[\[3\] \[2\]\] takes 4 for Set$`
	rdb.Incr(ctx, key)
	store.Limit(ctx, rdb, key)
	rdb.Incr(ctx, "all")
	store.LimitAll(ctx, rdb, "all")
	rdb.HSet(ctx, "hash", "f", 1) // want `HSet creates`
	store.Limit(ctx, rdb, "other")
	rdb.LPush(ctx, "list", 1) // want `LPush creates`
	fmt.Println("list")

	s.Put(ctx, "a", 1, 0)  // want `Put, which calls Set: an expiration of 0 leaves the key without a TTL`
	s.Put(ctx, "a", 1, 30) // want `Put, which calls Set: an expiration of 30ns is less`
	s.Put2(ctx, "a", 0)    // want `Put2, which calls Set: an expiration of 0`
	s.Put(ctx, "b", 1, ttl)
	s.Put(ctx, "b", 1, time.Minute)
	s.Keep(ctx, "c", 1, 0)
}
