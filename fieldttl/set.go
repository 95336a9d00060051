package fieldttl

import (
	"context"
	"fmt"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Set replaces key's hash with value. Every field is written with its TTL, and the key gets the namespace's TTL. Nothing of the old hash is
// left, not even fields of an older T. (A second trip removes those, if there are any.) A nil pointer leaves its field out, and a value
// without any field leaves no hash.
func (s *Store[K, T]) Set(ctx context.Context, key K, value T) error {
	return s.do(ctx, "set", key, func(full string, way way) error {
		old := redis.NewStringSliceCmd(ctx, "hkeys", full)
		end := redis.NewCmd(ctx, "pexpire", full, s.ttl())
		if err := s.write(ctx, full, way, &value, s.plan.every, end, old); err != nil {
			return err
		}
		remove := []any{"hdel", full}
		for _, name := range old.Val() {
			if _, ours := s.plan.byName[name]; !ours {
				remove = append(remove, name)
			}
		}
		if len(remove) == 2 {
			return nil
		}
		if err := sendonce.Write(ctx, s.redis, full, remove...); err != nil {
			return fmt.Errorf("could not remove the fields of an older struct: %w", err)
		}
		return nil
	})
}

// SetFields stores some of value's fields, by the names in their tags, each with its whole TTL. It leaves the other fields and the key's
// TTL as they are. A nil pointer deletes its field. Like HSET it creates a missing hash, with these fields only and the namespace's TTL.
func (s *Store[K, T]) SetFields(ctx context.Context, key K, value T, fields ...string) error {
	return s.do(ctx, "set fields of", key, func(full string, way way) error {
		some, err := s.plan.find(fields)
		if err != nil {
			return err
		}
		return s.write(ctx, full, way, &value, some, redis.NewCmd(ctx, "pexpire", full, s.ttl(), "nx"))
	})
}

// write stores fields of value, in one transaction that begins with first and ends with end.
func (s *Store[K, T]) write(ctx context.Context, full string, way way, value *T, fields []int, end redis.Cmder, first ...redis.Cmder) error {
	v, cmds := reflect.ValueOf(value).Elem(), first
	var here []int // all but nil pointers
	absent := []any{"hdel", full}
	for _, i := range fields {
		if f := s.plan.fields[i]; f.form.optional && v.FieldByIndex(f.index).IsNil() {
			absent = append(absent, f.name)
		} else {
			here = append(here, i)
		}
	}
	for ttl, fields := range s.plan.byTTL(here) {
		args := []any{"hset", full}
		if ttl > 0 && way == together {
			args = []any{"hsetex", full, "px", ttl.Milliseconds(), "fields", len(fields)}
		}
		for _, i := range fields {
			f := s.plan.fields[i]
			text, err := f.form.append(nil, v.FieldByIndex(f.index))
			if err != nil {
				return fmt.Errorf("field %q: %w", f.name, err)
			}
			args = append(args, f.name, text)
		}
		cmds = append(cmds, redis.NewCmd(ctx, args...))
		if ttl > 0 && way == apart {
			cmds = append(cmds, redis.NewCmd(ctx, s.plan.hpexpire(full, ttl, fields)...))
		}
	}
	if len(absent) > 2 {
		cmds = append(cmds, redis.NewCmd(ctx, absent...))
	}
	return sendonce.Transact(ctx, s.redis, full, sendonce.Hash, append(cmds, end)...)
}

// ttl returns the TTL for a key, in milliseconds.
func (s *Store[K, T]) ttl() int64 { return s.room.Jitter.TTL(s.room.TTL).Milliseconds() }
