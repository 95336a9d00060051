package sliding

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Create stores v under key if there is nothing, and returns [ErrExists] if there is. It may be repeated by go-redis after a
// lost reply: the repetition knows what the first try wrote. (Not so with Namespace.Plain: then a lost reply is
// mayfly.ErrUnknownOutcome.)
func (s *Store[K, V]) Create(ctx context.Context, key K, v V) error {
	return s.room.Do("create", key, func(full string) error {
		rec, err := s.encode(v)
		if err != nil {
			return err
		}
		return s.create(ctx, full, rec, begin)
	})
}

// create writes rec where nothing is.
func (s *Store[K, V]) create(ctx context.Context, full string, rec []byte, age mode) error {
	defer s.wrote(ctx, full)()
	switch {
	case s.opt.MaxAge > 0:
		return s.write(ctx, full, rec, age, nil)
	case s.room.Plain:
		err := sendonce.Write(ctx, s.room.Redis, full, "set", full, rec, "px", s.room.TTL.Milliseconds(), "nx")
		if errors.Is(err, mayfly.ErrNotFound) {
			return ErrExists
		}
		return err
	}
	there, err := s.room.Redis.SetArgs(ctx, full, rec, redis.SetArgs{Mode: "NX", Get: true, TTL: s.room.TTL}).Result()
	switch {
	case errors.Is(err, redis.Nil), err == nil && there == string(rec):
		return nil
	case err == nil, redis.HasErrorPrefix(err, "WRONGTYPE"):
		return ErrExists
	}
	return sendonce.Repeated(ctx, s.room.Redis, full, err)
}

// wrote makes the local tier forget full before a write, and what it returns tells the others after it.
func (s *Store[K, V]) wrote(ctx context.Context, full string) func() {
	s.local.Forget(full)
	return func() { s.local.Changed(ctx, full) }
}

// Set stores v under key, whatever is there, and gives it the whole TTL. The value's age, where [Options.MaxAge] counts
// it, goes on: to begin anew, Delete and Create. Of two concurrent Sets the later wins; to change a value by what it was,
// use Update.
func (s *Store[K, V]) Set(ctx context.Context, key K, v V) error {
	return s.room.Do("set", key, func(full string) error {
		rec, err := s.encode(v)
		if err != nil {
			return err
		}
		defer s.wrote(ctx, full)()
		if s.opt.MaxAge > 0 {
			return s.write(ctx, full, rec, keep, nil)
		}
		// GET, so that what is not a string is refused, not replaced.
		err = s.room.Redis.SetArgs(ctx, full, rec, redis.SetArgs{Get: true, TTL: s.room.TTL}).Err()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return sendonce.Repeated(ctx, s.room.Redis, full, err)
	})
}

// Update replaces the value of key by what change makes of it, and gives it the whole TTL. If somebody else changed it
// meanwhile, change is called again with what they made of it, so no update is lost; it must not have other effects. An
// error of change ends it, and nothing is stored. It returns what was stored, and mayfly.ErrNotFound if there is
// nothing to change. If a reply was lost it looks whether that update was done; if another one came after it, nobody knows, which is
// mayfly.ErrUnknownOutcome.
func (s *Store[K, V]) Update(ctx context.Context, key K, change func(V) (V, error)) (v V, err error) {
	err = s.room.Do("update", key, func(full string) error {
		for try := 0; ; try++ {
			raw, err := s.room.Redis.Get(ctx, full).Bytes()
			if err != nil {
				return sendonce.Answer(ctx, s.room.Redis, full, err)
			}
			if v, err = s.decode(raw); err != nil {
				return err
			}
			if v, err = change(v); err != nil {
				return err
			}
			rec, err := s.encode(v)
			if err != nil {
				return err
			}
			if err := s.swap(ctx, full, raw, rec); !errors.Is(err, ErrExists) {
				return err
			}
			if err := rest(ctx, try); err != nil {
				return err
			}
		}
	})
	return v, err
}

// rest waits after a lost race: the more often it was lost, the longer, up to a few milliseconds.
func rest(ctx context.Context, try int) error {
	most := time.Duration(min(try, 16)) * 250 * time.Microsecond
	select {
	case <-time.After(rand.N(most + 1)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
