// Package writes has calls of every kind, none of which is followed by anything.
package writes

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const forever = 0

const day time.Duration = 24 * time.Hour

func expirations(ctx context.Context, rdb *redis.Client, key string, ttl time.Duration) { // want expirations:`^takes 3 for Set$`
	rdb.Set(ctx, key, 1, 0)               // want `Set: an expiration of 0 leaves the key without a TTL: give it a TTL, or say why the key may stay, with //ttlguard:ok reason`
	rdb.Set(ctx, key, 1, forever)         // want `Set: an expiration of 0 leaves`
	rdb.SetNX(ctx, key, 1, 0)             // want `SetNX: an expiration of 0 leaves`
	rdb.SetXX(ctx, key, 1, 0)             // want `SetXX: an expiration of 0 leaves`
	rdb.SetEx(ctx, key, 1, 0)             // want `SetEx: Redis refuses an expiration of 0`
	rdb.SetIFEQ(ctx, key, 1, 2, 0)        // want `SetIFEQ: an expiration of 0 leaves`
	rdb.GetEx(ctx, key, 0)                // want `GetEx: an expiration of 0 takes the key's TTL away`
	rdb.Restore(ctx, key, 0, "")          // want `Restore: an expiration of 0 leaves`
	rdb.Set(ctx, key, 1, -5)              // want `Set: an expiration of -5 leaves`
	rdb.Set(ctx, key, 1, 60)              // want `Set: an expiration of 60ns is less than Redis can count: is it a number of seconds, as in 60\*time.Second`
	rdb.SetNX(ctx, key, 1, redis.KeepTTL) // want `SetNX: the key is new, so that redis.KeepTTL has no TTL to keep`

	rdb.Set(ctx, "a", 1, ttl)
	rdb.Set(ctx, "b", 1, day)
	rdb.Set(ctx, "c", 1, redis.KeepTTL)
	rdb.SetNX(ctx, "d", 1, time.Minute)
	rdb.SetEx(ctx, "e", 1, time.Minute)
	rdb.GetEx(ctx, "f", time.Minute)
	rdb.GetEx(ctx, "f", -1)
	rdb.Restore(ctx, "g", time.Minute, "")
}

func structs(ctx context.Context, rdb redis.UniversalClient, args redis.SetArgs, until time.Time) { // want structs:`^takes 2 for SetArgs$`
	rdb.SetArgs(ctx, "a", 1, redis.SetArgs{})           // want `SetArgs: neither TTL nor ExpireAt nor KeepTTL is set`
	rdb.SetArgs(ctx, "a", 1, redis.SetArgs{Mode: "NX"}) // want `SetArgs: neither TTL`
	rdb.SetArgs(ctx, "a", 1, redis.SetArgs{TTL: 0})     // want `SetArgs: neither TTL`
	rdb.MSetEX(ctx, redis.MSetEXArgs{}, "a", 1)         // want `MSetEX: neither Expiration is set`
	rdb.IncrEXInt(ctx, "a", redis.IncrEXIntArgs{})      // want `IncrEXInt: neither Expiration is set`

	rdb.SetArgs(ctx, "b", 1, redis.SetArgs{TTL: time.Minute})
	rdb.SetArgs(ctx, "b", 1, redis.SetArgs{ExpireAt: until})
	rdb.SetArgs(ctx, "b", 1, redis.SetArgs{KeepTTL: true})
	rdb.SetArgs(ctx, "b", 1, args)
	rdb.MSetEX(ctx, redis.MSetEXArgs{Expiration: &redis.ExpirationOption{Mode: redis.EX, Value: 60}}, "b", 1)
}

func without(ctx context.Context, rdb *redis.ClusterClient, key string, pairs []any, x *redis.XAddArgs) {
	rdb.Incr(ctx, key)                          // want `Incr creates a key without a TTL if there is none, and no Expire of it follows in this function: add one, or say why the key may stay, with //ttlguard:ok reason`
	rdb.HSet(ctx, key, "f", 1)                  // want `HSet creates`
	rdb.LPush(ctx, key, 1)                      // want `LPush creates`
	rdb.SAdd(ctx, key, 1)                       // want `SAdd creates`
	rdb.ZAdd(ctx, key, redis.Z{})               // want `ZAdd creates`
	rdb.MSet(ctx, "a", 1, "b", 2)               // want `MSet leaves a key without a TTL, and no Expire of it follows`
	rdb.MSet(ctx, pairs...)                     // want `MSet leaves`
	rdb.SUnionStore(ctx, key, "a", "b")         // want `SUnionStore leaves`
	rdb.SortStore(ctx, "list", key, nil)        // want `SortStore leaves`
	rdb.LMove(ctx, "a", key, "left", "left")    // want `LMove creates`
	rdb.XAdd(ctx, &redis.XAddArgs{Stream: key}) // want `XAdd creates`
	rdb.XAdd(ctx, x)                            // want `XAdd creates`
	rdb.Persist(ctx, key)                       // want `Persist leaves`

	rdb.LPushX(ctx, key, 1)
	rdb.ZAddXX(ctx, key, redis.Z{})
	rdb.HGet(ctx, key, "f")
	rdb.Del(ctx, key)
}

func words(ctx context.Context, rdb *redis.Client, key, option string, args []any) {
	rdb.Do(ctx, "SET", key, 1)       // want `Do SET leaves`
	rdb.Do(ctx, "set", key, 1, "nx") // want `Do SET leaves`
	rdb.Do(ctx, "incr", key)         // want `Do INCR creates`
	rdb.Do(ctx, "HSET", key, "f", 1) // want `Do HSET creates`

	rdb.Do(ctx, "set", "a", 1, "EX", 60)
	rdb.Do(ctx, "set", "a", 1, "nx", "PX", 60)
	rdb.Do(ctx, "set", "a", 1, "KEEPTTL")
	rdb.Do(ctx, "set", "a", 1, option)
	rdb.Do(ctx, "set", "a", 1, "nx", option)
	rdb.Do(ctx, "set", "a")
	rdb.Do(ctx, "setex", "a", 60, 1)
	rdb.Do(ctx, "get", "a")
	rdb.Do(ctx, "hset", key) // refused
	rdb.Do(ctx, "ping")
	rdb.Do(ctx, args...)
}

// few names what a program needs.
type few interface {
	Set(ctx context.Context, key string, value any, expiration time.Duration) *redis.StatusCmd
}

type embeds struct{ *redis.Client }

// mine has nothing to do with Redis.
type mine struct{}

func (mine) Set(ctx context.Context, key string, value any, expiration time.Duration) error {
	return nil
}
func (mine) Incr(ctx context.Context, key string) int { return 0 }

// strange has its arguments in another order.
type strange struct{}

func (strange) Set(key string, value any, _ int, expiration time.Duration) *redis.StatusCmd {
	return nil
}

func strangers(s strange) { s.Set("a", 1, 2, 0) }

func receivers(ctx context.Context, f few, e embeds, r *redis.Ring, tx *redis.Tx, c redis.Cmdable, p redis.Pipeliner, m mine) {
	f.Set(ctx, "a", 1, 0)                               // want `Set: an expiration of 0`
	e.Set(ctx, "a", 1, 0)                               // want `Set: an expiration of 0`
	r.Set(ctx, "a", 1, 0)                               // want `Set: an expiration of 0`
	tx.Set(ctx, "a", 1, 0)                              // want `Set: an expiration of 0`
	c.Set(ctx, "a", 1, 0)                               // want `Set: an expiration of 0`
	p.Set(ctx, "a", 1, 0)                               // want `Set: an expiration of 0`
	e.WithTimeout(time.Second).Set(ctx, "a", 1, 0)      // want `Set: an expiration of 0`
	if err := r.Set(ctx, "a", 1, 0).Err(); err != nil { // want `Set: an expiration of 0`
		return
	}
	m.Set(ctx, "a", 1, 0)
	m.Incr(ctx, "a")
}

var atStart = func(rdb *redis.Client) {
	rdb.Set(context.Background(), "a", 1, 0) // want `Set: an expiration of 0`
}
