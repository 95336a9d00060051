// Package excuses has calls that are let be, and comments that are no excuses.
package excuses

import (
	"context"

	"github.com/redis/go-redis/v9"
)

func excused(ctx context.Context, rdb *redis.Client) {
	rdb.Set(ctx, "a", 1, 0) //ttlguard:ok the version of the schema, one key

	//ttlguard:ok the version of the schema, one key
	rdb.Set(ctx, "b", 1, 0)

	// The shops stay.
	//ttlguard:ok a few dozen,
	// each deleted by hand
	err := rdb.SAdd(ctx, "shops",
		"one",
		"two",
	).Err()
	_ = err

	rdb.
		Set(ctx, "c", 1, 0) //ttlguard:ok at the end of a call in several lines
}

// whole is let be.
//
//ttlguard:ok all keys here are of tenants, and deleted with them
func whole(ctx context.Context, rdb *redis.Client) {
	rdb.Set(ctx, "a", 1, 0)
	rdb.Incr(ctx, "b")
}

func notExcused(ctx context.Context, rdb *redis.Client) {
	rdb.Set(ctx, "a", 1, 0) //ttlguard:ok // want `Set: an expiration` `an excuse without a reason: write //ttlguard:ok reason, where the reason says why this key may stay without a TTL`
	rdb.Set(ctx, "b", 1, 0) // ttlguard:ok with a space // want `Set: an expiration` `this excuses nothing: write //ttlguard:ok reason, without a space after the slashes`
	rdb.Set(ctx, "c", 1, 0) //ttlguard:ignore this // want `Set: an expiration` `ttlguard:ignore is unknown: write //ttlguard:ok reason`
	rdb.Set(ctx, "d", 1, 0) //ttlguard:okay then // want `Set: an expiration` `ttlguard:okay is unknown`
	rdb.Set(ctx, "e", 1, 0) //ttlguard:ok of this call alone
	rdb.Set(ctx, "f", 1, 0) // want `Set: an expiration`
	rdb.Get(ctx, "f")       //ttlguard:ok nothing is written here // want `nothing is left to excuse here: remove this comment`
}

// wide has more than one excuse: the nearest counts.
//
//ttlguard:ok for the rest of it
func wide(ctx context.Context, rdb *redis.Client) {
	rdb.Set(ctx, "a", 1, 0) //ttlguard:ok of this call
	rdb.Set(ctx, "b", 1, 0)
}

// unused has nothing that is to be excused.
//
//ttlguard:ok it was once // want `nothing is left to excuse here`
func unused() {}
