package fieldttl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Update replaces the named fields of key's hash with the result of change, each with its whole TTL. It leaves the other fields and the
// key's TTL as they are. If another writer has changed a named field meanwhile, Update calls change again with the new value, so no update
// is lost; change must therefore have no side effects. It sees only the named fields, of which those present are alive, and only those are
// stored from its result. A nil pointer deletes its field. If change returns an error, Update returns it and stores nothing. Update returns
// what was stored, and [mayfly.ErrNotFound] if there is no hash to change. It is sent once: if its reply is lost, the error is
// [mayfly.ErrUnknownOutcome].
func (s *Store[K, T]) Update(ctx context.Context, key K, change func(Entry[T]) (T, error), fields ...string) (stored T, err error) {
	err = s.do(ctx, "update fields of", key, func(full string, _ way) error {
		some, err := s.plan.find(fields)
		if err != nil {
			return err
		}
		if change == nil {
			return errors.New("change is nil: pass a function that returns the fields' new values")
		}
		for try := 0; ; try++ {
			e, held, err := s.see(ctx, full, some)
			if err != nil {
				return err
			}
			value, err := change(e)
			if err != nil {
				return err
			}
			done, err := s.swap(ctx, full, some, held, &value)
			if done {
				stored = value
			}
			if done || err != nil {
				return err
			}
			if err := sendonce.Rest(ctx, try); err != nil {
				return err
			}
		}
	})
	return stored, err
}

// see reads fields, and also returns what Redis holds for each: a string, or nil.
func (s *Store[K, T]) see(ctx context.Context, full string, fields []int) (e Entry[T], held []any, err error) {
	get := redis.NewSliceCmd(ctx, append([]any{"hmget", full}, s.plan.namesOf(fields)...)...)
	size := redis.NewIntCmd(ctx, "hlen", full)
	s.redis.Ask(ctx, full, get, size)
	if err := cmp.Or(get.Err(), size.Err()); err != nil {
		return e, nil, sendonce.Answer(ctx, s.redis, full, err)
	}
	if size.Val() == 0 {
		return e, nil, mayfly.ErrNotFound
	}
	e.plan = s.plan
	return e, get.Val(), e.fill(fields, get.Val())
}

// swap stores fields of value if Redis still holds for them what was read, and reports whether it does.
func (s *Store[K, T]) swap(ctx context.Context, full string, fields []int, held []any, value *T) (done bool, err error) {
	v := reflect.ValueOf(value).Elem()
	args := make([]any, 0, len(fields)*6)
	for n, i := range fields {
		f := s.plan.fields[i]
		old, had := held[n].(string)
		to := v.FieldByIndex(f.index)
		has := !f.form.optional || !to.IsNil()
		var text []byte
		if has {
			if text, err = f.form.append(nil, to); err != nil {
				return false, fmt.Errorf("field %q: %w", f.name, err)
			}
		}
		args = append(args, f.name, had, old, has, text, f.ttl.Milliseconds())
	}
	answer, err := update.RunOnce(ctx, s.redis, full, args...).Int64()
	if err == nil && answer < 0 {
		return false, mayfly.ErrNotFound
	}
	return answer == 1, sendonce.Outcome(ctx, s.redis, full, err)
}

// update  k, and for each field its name, whether and what it was, whether and what it will be, and its TTL or 0. It returns 1, or 0 if a
// field is not what it was, or -1 if there is no hash.
var update = sendonce.NewScript(`if redis.call('HLEN', KEYS[1]) == 0 then return -1 end
for i = 1, #ARGV, 6 do
	if redis.call('HGET', KEYS[1], ARGV[i]) ~= (ARGV[i + 1] == '1' and ARGV[i + 2]) then return 0 end
end
for i = 1, #ARGV, 6 do
	if ARGV[i + 3] == '0' then
		redis.call('HDEL', KEYS[1], ARGV[i])
	else
		redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 4])
		if ARGV[i + 5] ~= '0' then redis.call('HPEXPIRE', KEYS[1], ARGV[i + 5], 'FIELDS', 1, ARGV[i]) end
	end
end
return 1`)
