package sliding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/localview"
	"github.com/mayflycache/mayfly/internal/client/sendonce"
)

// Get returns the value of key and renews it: the value now lives for the namespace's TTL, but not beyond [Options.MaxAge]; see also
// [Options.TouchBelow]. Get is one round trip, and sometimes two if TouchBelow is below 1 and there is no MaxAge. With a local tier most
// calls need none. The error is mayfly.ErrNotFound if there is no such value.
//
// If the key holds something else, such as a list or bytes that the codec cannot read, Get returns an error, and never adds a TTL to a key without
// one. If the key has a TTL, the second of the two default commands has already changed it; so has Atomic's command, if the key holds a string. With
// MaxAge or a TouchBelow below 1, Get looks first.
func (s *Store[K, V]) Get(ctx context.Context, key K) (v V, err error) {
	if s.local != nil {
		if c, _ := s.local.At(key); c != nil {
			return localview.Cloned(s.room.Clone, *c), nil
		}
	}
	full, err := s.room.FullKey(key)
	if err != nil {
		return v, s.room.Nameless("get", key, err)
	}
	if v, err = s.get(ctx, full); err != nil {
		return v, s.room.Fail("get", full, sendonce.Answer(ctx, s.redis, full, err))
	}
	return v, nil
}

func (s *Store[K, V]) get(ctx context.Context, full string) (v V, err error) {
	ticket := s.local.Begin(full)
	raw, life, err := s.read(ctx, full)
	if err != nil {
		return v, err
	}
	if v, err = s.decode(raw); err == nil && s.local != nil && life > 0 {
		cost := len(raw)
		if s.room.Cost != nil {
			cost = s.room.Cost(v)
		}
		s.local.Insert(full, ticket, localview.Cloned(s.room.Clone, v), int64(cost), life)
	}
	return v, err
}

// read reads and renews the value. life is how long a copy may be served before an access has to renew the value.
func (s *Store[K, V]) read(ctx context.Context, full string) (raw []byte, life time.Duration, err error) {
	switch {
	case s.scripted():
		return s.readAged(ctx, full)
	case s.below < always:
		return s.readSeldomRenewed(ctx, full)
	case s.opt.Atomic:
		raw, err = s.ask1(ctx, full, "getex", full, "px", s.ttl)
		return raw, 0, err
	}
	name := any(full) // converted once for both commands
	get, renew := redis.NewStringCmd(ctx, "get", name), redis.NewBoolCmd(ctx, "pexpire", name, s.ttl, "xx")
	s.redis.Ask(ctx, full, get, renew)
	if raw, err = get.Bytes(); err != nil {
		return nil, 0, err
	}
	if err = renewed(renew); errors.Is(err, redis.Nil) { // the value has just ended, or has no end
		err = s.renew(ctx, full, raw)
	}
	return raw, 0, err
}

// renew renews raw, but only if this store could have written it.
func (s *Store[K, V]) renew(ctx context.Context, full string, raw []byte) error {
	if _, err := s.decode(bytes.Clone(raw)); err != nil {
		return err
	}
	renew := redis.NewBoolCmd(ctx, "pexpire", full, s.ttl)
	s.redis.Ask(ctx, full, renew)
	return renewed(renew)
}

// ask1 reads the value of full with one command.
func (s *Store[K, V]) ask1(ctx context.Context, full string, command ...any) ([]byte, error) {
	cmd := redis.NewStringCmd(ctx, command...)
	s.redis.Ask(ctx, full, cmd)
	return cmd.Bytes()
}

// readSeldomRenewed reads the remaining time too, and renews the value only if little is left.
func (s *Store[K, V]) readSeldomRenewed(ctx context.Context, full string) ([]byte, time.Duration, error) {
	name := any(full)
	get, pttl := redis.NewStringCmd(ctx, "get", name), redis.NewDurationCmd(ctx, time.Millisecond, "pttl", name)
	s.redis.Ask(ctx, full, get, pttl)
	raw, err := get.Bytes()
	if err != nil {
		return nil, 0, err
	}
	left, err := pttl.Result()
	switch {
	case err != nil:
		return nil, 0, err
	case left == -2:
		return nil, 0, redis.Nil // the value ended between the two commands
	case left >= s.below && left <= s.room.TTL:
		return raw, left - s.below, nil
	}
	// Little is left, or more than a TTL because Redis's clock went back. No copy now: the tier is about to hear of the renewal as a change.
	return raw, 0, s.renew(ctx, full, raw)
}

// renewed returns the result of a PEXPIRE for the value that was read before it: if it found nothing, the value had just ended.
func renewed(cmd *redis.BoolCmd) error {
	if alive, err := cmd.Result(); err != nil {
		return fmt.Errorf("the value was read and not renewed: %w", err)
	} else if !alive {
		return redis.Nil
	}
	return nil
}

// Peek returns the value of key without renewing it.
func (s *Store[K, V]) Peek(ctx context.Context, key K) (v V, err error) {
	err = s.room.Do("peek at", key, func(full string) error {
		raw, err := s.ask1(ctx, full, "get", full)
		if err == nil {
			v, err = s.decode(raw)
		}
		return sendonce.Answer(ctx, s.redis, full, err)
	})
	return v, err
}

// TTL returns how much longer the value of key lives if it is not used, without renewing it.
func (s *Store[K, V]) TTL(ctx context.Context, key K) (left time.Duration, err error) {
	err = s.room.Do("look at the time of", key, func(full string) error {
		pttl := redis.NewDurationCmd(ctx, time.Millisecond, "pttl", full)
		s.redis.Ask(ctx, full, pttl)
		if left, err = pttl.Result(); err == nil && left == -2 {
			return mayfly.ErrNotFound
		}
		return err
	})
	return max(left, 0), err
}

// Touch renews the value of key like Get, without returning it. Like every renewal it may be repeated after a lost reply. If the key holds
// something else, Touch returns an error and leaves it alone.
func (s *Store[K, V]) Touch(ctx context.Context, key K) error {
	alive, err := s.TouchMany(ctx, key)
	if err != nil || alive[key] {
		return err
	}
	return s.room.Do("touch", key, func(string) error { return mayfly.ErrNotFound })
}

// TouchMany renews the values of keys in one round trip (in a cluster one per node, in parallel), and reports which of them exist.
func (s *Store[K, V]) TouchMany(ctx context.Context, keys ...K) (alive map[K]bool, err error) {
	alive = make(map[K]bool, len(keys))
	fulls, err := s.room.FullKeys("touch", keys)
	if err != nil {
		return alive, err
	}
	var cmds []*redis.Cmd
	if s.scripted() {
		cmds = touch.Each(ctx, s.redis, fulls, func(int) []any { return s.touchArgs(false) })
	} else {
		cmds = renew.Each(ctx, s.redis, fulls, func(int) []any { return []any{s.ttl, s.room.Plain} })
	}
	var wrong []error
	for i, cmd := range cmds {
		reply, err := cmd.Result()
		if other, is := reply.(string); is && err == nil { // not a record of ours: a foreign value is renewed if Get would accept it
			if _, err = s.decode([]byte(other)); err == nil {
				err = renew.Run(ctx, s.redis, fulls[i], s.ttl, true).Err()
			}
		}
		alive[keys[i]] = err == nil
		if err != nil && !errors.Is(err, redis.Nil) {
			wrong = append(wrong, s.room.Fail("touch", fulls[i], sendonce.Answer(ctx, s.redis, fulls[i], err)))
		}
	}
	return alive, errors.Join(wrong...)
}
