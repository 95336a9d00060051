// Package store hides go-redis from others.
package store

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

type Store struct {
	rdb    *redis.Client
	prefix string
}

func (s *Store) Put(ctx context.Context, key string, value any, ttl time.Duration) error { // want Put:`^ends \[\[\-1 1\]\] takes 3 for Set$`
	return s.rdb.Set(ctx, s.prefix+key, value, ttl).Err()
}

// Keep makes something of a zero.
func (s *Store) Keep(ctx context.Context, key string, value any, ttl time.Duration) error { // want Keep:`^ends \[\[1\]\]$`
	if ttl == 0 {
		ttl = time.Hour
	}
	return s.rdb.Set(ctx, key, value, ttl).Err()
}

func Limit(ctx context.Context, rdb redis.Cmdable, key string) { // want Limit:`^ends \[\[2\]\]$`
	limit(ctx, rdb, key)
}

func limit(ctx context.Context, rdb redis.Cmdable, key string) { // want limit:`^ends \[\[2\]\]$`
	rdb.Expire(ctx, key, time.Minute)
}

func LimitAll(ctx context.Context, rdb redis.Cmdable, keys ...string) { // want LimitAll:`^ends \[\[2\]\]$`
	for _, k := range keys {
		rdb.Expire(ctx, k, time.Minute)
	}
}

func (s *Store) Put2(ctx context.Context, key string, ttl time.Duration) error { // want Put2:`^ends \[\[\-1 1\]\] takes 2 for Set$`
	return s.Put(ctx, key, 1, ttl)
}

func (s *Store) touch(ctx context.Context, id string) { // want touch:`^ends \[\[\-1 1\]\]$`
	key := s.prefix + id
	s.rdb.Expire(ctx, key, time.Minute)
}

func (s *Store) Count(ctx context.Context, id string) { // want Count:`^ends \[\[\-1 1\]\]$`
	s.rdb.Incr(ctx, s.prefix+id)
	s.touch(ctx, id)
}

func (s *Store) Miscount(ctx context.Context, id, other string) { // want Miscount:`^ends \[\[\-1 2\]\]$`
	s.rdb.Incr(ctx, s.prefix+id) // want `Incr creates`
	s.touch(ctx, other)
}
