package fieldttl

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Get returns the current value of key. It returns [mayfly.ErrNotFound] if the hash was never set, was deleted or has expired, or if all
// its fields have expired.
func (s *Store[K, T]) Get(ctx context.Context, key K) (Entry[T], error) {
	return s.read(ctx, "get", key, func(full string, _ way, e *Entry[T]) error {
		cmd := redis.NewSliceCmd(ctx, slices.Concat([]any{"hmget", full}, s.plan.names)...)
		if err := s.redis.Process(ctx, cmd); err != nil {
			return sendonce.Answer(ctx, s.redis, full, err)
		}
		return e.fill(s.plan.every, cmd.Val())
	})
}

// GetAndTouchFields is Get and TouchFields in one step: the named fields that are alive get their whole TTL again. It is a write.
func (s *Store[K, T]) GetAndTouchFields(ctx context.Context, key K, fields ...string) (Entry[T], error) {
	return s.read(ctx, "get and touch", key, func(full string, way way, e *Entry[T]) error {
		touched, err := s.plan.volatile(fields)
		if err != nil {
			return err
		}
		var cmds []redis.Cmder
		var fills []func() error
		read := func(fields []int, args ...any) {
			cmd := redis.NewSliceCmd(ctx, append(args, s.plan.namesOf(fields)...)...)
			cmds = append(cmds, cmd)
			fills = append(fills, func() error { return e.fill(fields, cmd.Val()) })
		}
		others := slices.DeleteFunc(slices.Clone(s.plan.every), func(i int) bool { return way == together && slices.Contains(touched, i) })
		if len(others) > 0 {
			read(others, "hmget", full)
		}
		for ttl, fields := range s.plan.byTTL(touched) {
			if way == together {
				read(fields, "hgetex", full, "px", ttl.Milliseconds(), "fields", len(fields))
			} else {
				cmds = append(cmds, redis.NewCmd(ctx, s.plan.hpexpire(full, ttl, fields)...))
			}
		}
		if err := sendonce.Exec(ctx, s.redis, full, cmds...); err != nil {
			return err
		}
		for _, fill := range fills {
			if err := fill(); err != nil {
				return err
			}
		}
		return nil
	})
}

// read returns the entry that f fills, or [mayfly.ErrNotFound] if no field is alive.
func (s *Store[K, T]) read(ctx context.Context, doing string, key K, f func(full string, way way, e *Entry[T]) error) (Entry[T], error) {
	e := Entry[T]{plan: s.plan}
	err := s.do(ctx, doing, key, func(full string, way way) error {
		err := f(full, way, &e)
		if err == nil && e.alive == [maxFields / 64]uint64{} {
			return mayfly.ErrNotFound
		}
		return err
	})
	if err != nil {
		return Entry[T]{}, err
	}
	return e, nil
}

// fill sets fields to what Redis holds: for each a string, or nil.
func (e *Entry[T]) fill(fields []int, held []any) error {
	v := reflect.ValueOf(&e.Value).Elem()
	for n, i := range fields {
		text, ok := held[n].(string)
		if !ok {
			continue
		}
		f := &e.plan.fields[i]
		to := v.FieldByIndex(f.index)
		if err := f.form.parse(text, to); err != nil {
			return fmt.Errorf("field %q cannot be read as %v: %w", f.name, to.Type(), err)
		}
		e.alive[i/64] |= 1 << (i % 64)
	}
	return nil
}
