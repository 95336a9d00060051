package fieldttl

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/onlycopy"
)

// Get returns the value of key as it is now, or [mayfly.ErrNotFound]: it was never set, was deleted, its time came, or all its
// fields have ended.
func (s *Store[K, T]) Get(ctx context.Context, key K) (Entry[T], error) {
	e := Entry[T]{plan: s.plan}
	err := s.do(ctx, "get", key, func(full string, _ way) error {
		cmd := redis.NewSliceCmd(ctx, append(append(make([]any, 0, 2+len(s.plan.names)), "hmget", full), s.plan.names...)...)
		if err := s.room.Redis.Process(ctx, cmd); err != nil {
			return s.room.Explain(ctx, full, err)
		}
		return found(e.fill(s.plan.every, cmd.Val()), e)
	})
	if err != nil {
		return Entry[T]{}, err
	}
	return e, nil
}

// GetAndTouch is Get, and Touch of the named fields, in one step: fields that are alive get their whole TTL again. It is a write.
func (s *Store[K, T]) GetAndTouch(ctx context.Context, key K, fields ...string) (Entry[T], error) {
	e := Entry[T]{plan: s.plan}
	err := s.do(ctx, "get and touch", key, func(full string, way way) error {
		touched, err := s.plan.volatile(fields)
		if err != nil {
			return err
		}
		pipe := s.room.Redis.TxPipeline()
		var parts []part
		read := func(fields []int, args ...any) {
			cmd := redis.NewSliceCmd(ctx, append(args, s.plan.namesOf(fields)...)...)
			pipe.Process(ctx, cmd)
			parts = append(parts, part{fields, cmd})
		}
		others := slices.DeleteFunc(slices.Clone(s.plan.every), func(i int) bool { return way == together && slices.Contains(touched, i) })
		if len(others) > 0 {
			read(others, "hmget", full)
		}
		s.plan.byTTL(touched, func(ttl time.Duration, fields []int) {
			if way == together {
				read(fields, "hgetex", full, "px", ttl.Milliseconds(), "fields", len(fields))
			} else {
				pipe.Do(ctx, s.plan.hpexpire(full, ttl, fields)...)
			}
		})
		if _, err := pipe.Exec(ctx); err != nil {
			return s.room.Typed(ctx, full, onlycopy.Repeated(err))
		}
		for _, p := range parts {
			if err := e.fill(p.fields, p.cmd.Val()); err != nil {
				return err
			}
		}
		return found(nil, e)
	})
	if err != nil {
		return Entry[T]{}, err
	}
	return e, nil
}

// part is a reply with the values of some fields.
type part struct {
	fields []int
	cmd    *redis.SliceCmd
}

// fill sets fields to what Redis holds: a string each, or nil.
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
			return fmt.Errorf("field %q holds what is no %v: %w", f.name, to.Type(), err)
		}
		e.alive[i/64] |= 1 << (i % 64)
	}
	return nil
}

func found[T any](err error, e Entry[T]) error {
	if err == nil && e.alive == [maxFields / 64]uint64{} {
		return mayfly.ErrNotFound
	}
	return err
}
