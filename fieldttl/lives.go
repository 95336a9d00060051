package fieldttl

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// TouchFields gives fields their whole TTL again. If one of them, or the hash, has expired, it returns [mayfly.ErrNotFound]; the others are
// touched. It never lets a field outlive the key: see [Store.Touch].
func (s *Store[K, T]) TouchFields(ctx context.Context, key K, fields ...string) error {
	return s.each(ctx, "touch fields of", key, fields, s.plan.volatile, s.plan.byTTL, s.plan.hpexpire)
}

// PersistFields removes the TTL of fields, which then live as long as the key, until they are set again. If one of them, or the hash, has
// expired, it returns [mayfly.ErrNotFound]; the others are persisted.
func (s *Store[K, T]) PersistFields(ctx context.Context, key K, fields ...string) error {
	return s.each(ctx, "persist fields of", key, fields, s.plan.find, atOnce, func(full string, _ time.Duration, fields []int) []any {
		return append([]any{"hpersist", full, "fields", len(fields)}, s.plan.namesOf(fields)...)
	})
}

// each sends a command for each group of the fields that find finds by name, in one transaction. The command answers -2 for a field that
// does not exist.
func (s *Store[K, T]) each(ctx context.Context, doing string, key K, names []string, find func([]string) ([]int, error), groups func([]int) iter.Seq2[time.Duration, []int], command func(string, time.Duration, []int) []any) error {
	return s.do(ctx, doing, key, func(full string, _ way) error {
		some, err := find(names)
		if err != nil {
			return err
		}
		var parts []*redis.IntSliceCmd
		var cmds []redis.Cmder
		var asked [][]int
		for ttl, fields := range groups(some) {
			cmd := redis.NewIntSliceCmd(ctx, command(full, ttl, fields)...)
			parts, cmds, asked = append(parts, cmd), append(cmds, cmd), append(asked, fields)
		}
		if err := sendonce.Exec(ctx, s.redis, full, cmds...); err != nil {
			return err
		}
		var gone []string
		for p, cmd := range parts {
			for n, i := range asked[p] {
				if cmd.Val()[n] == notThere {
					gone = append(gone, s.plan.fields[i].name)
				}
			}
		}
		if len(gone) > 0 {
			return fmt.Errorf("%s: %w", strings.Join(gone, ", "), mayfly.ErrNotFound)
		}
		return nil
	})
}

const notThere = -2 // for a field or a key

// Touch gives the key the namespace's TTL again. The TTLs of its fields stay as they are. It returns [mayfly.ErrNotFound] if there is no
// hash.
func (s *Store[K, T]) Touch(ctx context.Context, key K) error {
	return s.do(ctx, "touch", key, func(full string, _ way) error {
		renewed := redis.NewIntCmd(ctx, "pexpire", full, s.ttl())
		err := sendonce.Transact(ctx, s.redis, full, sendonce.Hash, redis.NewCmd(ctx, "hlen", full), renewed)
		if err == nil && renewed.Val() == 0 {
			return mayfly.ErrNotFound
		}
		return err
	})
}

// TTLs returns how long the hash has left, and each of its fields that are alive, by name: no longer than the hash. ofKey is negative if
// somebody took the key's end away. If there is no hash, the error is [mayfly.ErrNotFound].
func (s *Store[K, T]) TTLs(ctx context.Context, key K) (ofKey time.Duration, ofFields map[string]time.Duration, err error) {
	err = s.do(ctx, "read the TTLs of", key, func(full string, _ way) error {
		hash := redis.NewIntCmd(ctx, "pttl", full)
		fields := redis.NewIntSliceCmd(ctx, append([]any{"hpttl", full, "fields", len(s.plan.names)}, s.plan.names...)...)
		if err := sendonce.Snapshot(ctx, s.redis, full, hash, fields); err != nil {
			return err
		}
		if hash.Val() == notThere {
			return mayfly.ErrNotFound
		}
		ofKey = time.Duration(hash.Val()) * time.Millisecond
		ofFields = make(map[string]time.Duration, len(s.plan.fields))
		for i, ms := range fields.Val() {
			left := time.Duration(ms) * time.Millisecond
			switch {
			case ms == notThere:
				continue
			case ms < 0 || ofKey >= 0 && left > ofKey:
				left = ofKey
			}
			ofFields[s.plan.fields[i].name] = left
		}
		return nil
	})
	return ofKey, ofFields, err
}

// Delete removes the hash. Removing no hash is not an error.
func (s *Store[K, T]) Delete(ctx context.Context, key K) error {
	return s.do(ctx, "delete", key, func(full string, _ way) error {
		return sendonce.Write(ctx, s.redis, full, "eval", remove, 1, full)
	})
}

// remove deletes key if it is a hash; a plain DEL would delete anything.
const remove = `redis.call('HLEN', KEYS[1])
return redis.call('DEL', KEYS[1])`

// DeleteFields removes fields. With the last one the hash is gone. Removing what does not exist is not an error.
func (s *Store[K, T]) DeleteFields(ctx context.Context, key K, fields ...string) error {
	return s.do(ctx, "delete fields of", key, func(full string, _ way) error {
		some, err := s.plan.find(fields)
		if err != nil {
			return err
		}
		return sendonce.Write(ctx, s.redis, full, append([]any{"hdel", full}, s.plan.namesOf(some)...)...)
	})
}
