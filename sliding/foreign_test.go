package sliding_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// A limiter whose key holds a value that no limiter wrote reports it, changes nothing, and decides as it does without Redis.
func TestALimitersKeyIsSomebodyElses(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, o := range windows {
			for holds, put := range map[string]func(full string) error{
				"a count without a TTL": func(full string) error { return rdb.Set(t.Context(), full, 1, 0).Err() },
				"a great one":           func(full string) error { return rdb.Set(t.Context(), full, "99999999999", time.Hour).Err() },
				"a text":                func(full string) error { return rdb.Set(t.Context(), full, "hello", time.Hour).Err() },
				"half a count":          func(full string) error { return rdb.Set(t.Context(), full, "1 2", time.Hour).Err() },
				"a negative one":        func(full string) error { return rdb.Set(t.Context(), full, "-5", time.Hour).Err() },
				"nothing":               func(full string) error { return rdb.Set(t.Context(), full, "", time.Hour).Err() },
				"a list":                func(full string) error { return rdb.LPush(t.Context(), full, "a").Err() },
			} {
				full := "calls:" + name + holds
				want(t, put(full), nil)
				was, end := rdb.Dump(t.Context(), full).Val(), rdb.PTTL(t.Context(), full).Val()
				for _, o.FailOpen = range []bool{false, true} {
					o.Limit = 10
					l := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Minute), o))
					for _, n := range []int{0, 1} {
						d, err := l.Allow(t.Context(), name+holds, n)
						if !errors.Is(err, mayfly.ErrForeign) || errors.Is(err, mayfly.ErrUnknownOutcome) || !strings.Contains(err.Error(), name+holds) || d.Allowed != o.FailOpen {
							t.Errorf("%s, %s, %d calls: %+v, %v", name, holds, n, d, err)
						}
					}
				}
				if is := rdb.Dump(t.Context(), full).Val(); is != was {
					t.Errorf("%s, %s: it was %q and is %q", name, holds, was, is)
				}
				if left := rdb.PTTL(t.Context(), full).Val(); left > end || end > 0 && left < end-time.Minute || end < 0 && left != end {
					t.Errorf("%s, %s: %v were left, and now %v", name, holds, end, left)
				}
				want(t, rdb.Del(t.Context(), full).Err(), nil)
				if d, err := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Minute), o)).Allow(t.Context(), name+holds, 1); err != nil || d.Remaining != 9 {
					t.Errorf("%s, %s, after it was deleted: %+v, %v", name, holds, d, err)
				}
			}
		}
	})
}

// A program that counts in a new way begins anew.
func TestAnotherWayToCount(t *testing.T) {
	rdb := redistest.Start(t).Client()
	for before, was := range windows {
		for after, is := range windows {
			if before == after {
				continue
			}
			was.Limit, is.Limit = 10, 10
			key := before + after
			for range 3 {
				if d, err := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Hour), was)).Allow(t.Context(), key, 1); !d.Allowed {
					t.Fatal(d, err)
				}
			}
			d, err := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Hour), is)).Allow(t.Context(), key, 1)
			if left := rdb.PTTL(t.Context(), "calls:"+key).Val(); err != nil || d.Remaining != 9 || left <= 0 {
				t.Errorf("%s, then %s: %+v, %v, ends in %v", before, after, d, err, left)
			}
		}
	}
}

// Touch and Get give no TTL to values that the store cannot read, and Touch changes none.
func TestAKeyOfSomebodyElsesIsNotRenewed(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for name, o := range map[string]sliding.Options{"": {}, "seldom": {TouchBelow: 0.5}, "aged": {MaxAge: time.Hour}} {
			o.RedisTimeout = patient
			s := mayfly.Must(sliding.New(namespace(rdb), o))
			p := namespace(rdb).Prefix
			for holds, put := range map[string]func(full string, ttl time.Duration) error{
				"list": func(full string, ttl time.Duration) error {
					if err := rdb.LPush(t.Context(), full, "a").Err(); err != nil || ttl == 0 {
						return err
					}
					return rdb.PExpire(t.Context(), full, ttl).Err()
				},
				"text": func(full string, ttl time.Duration) error { return rdb.Set(t.Context(), full, "no cart", ttl).Err() },
			} {
				for _, ttl := range []time.Duration{0, 100 * time.Hour} {
					key := "foreign" + name + holds + ttl.String()
					want(t, put(p+key, ttl), nil)
					if err := s.Touch(t.Context(), key); err == nil || errors.Is(err, mayfly.ErrNotFound) || holds == "list" && !errors.Is(err, mayfly.ErrForeign) {
						t.Errorf("%s, %s, %v: Touch: %v", name, holds, ttl, err)
					}
					if ttl == 0 {
						if _, err := s.Get(t.Context(), key); err == nil || errors.Is(err, mayfly.ErrNotFound) {
							t.Errorf("%s, %s: Get: %v", name, holds, err)
						}
					}
					if left := rdb.PTTL(t.Context(), p+key).Val(); ttl == 0 && left != -1 || ttl > 0 && left < 99*time.Hour {
						t.Errorf("%s, %s: of %v %v are left", name, holds, ttl, left)
					}
				}
			}
			// The store renews values that another program wrote in the codec's form, and gives an end to a value whose end somebody removed.
			want(t, rdb.Set(t.Context(), p+"theirs", `{}`, 0).Err(), nil)
			if o.MaxAge == 0 {
				want(t, s.Touch(t.Context(), "theirs"), nil)
				if left := rdb.PTTL(t.Context(), p+"theirs").Val(); left <= 0 {
					t.Errorf("%s: %v are left", name, left)
				}
				want(t, rdb.Persist(t.Context(), p+"theirs").Err(), nil)
				_, err := s.Get(t.Context(), "theirs")
				want(t, err, nil)
				if left := rdb.PTTL(t.Context(), p+"theirs").Val(); left <= 0 {
					t.Errorf("%s: after Get %v are left", name, left)
				}
			}
		}
	})
}

// If one of a call's keys holds another type, the error names that key.
func TestTheKeyThatIsSomebodyElsesIsNamed(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		o := sliding.LimiterOptions{Limit: 10, RedisTimeout: patient}
		a, b := limiterOf(rdb, "a", o), limiterOf(rdb, "b", o)
		check := func(what string, err error, says string) {
			t.Helper()
			if !errors.Is(err, mayfly.ErrForeign) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", what, err, says)
			}
		}
		all := func() error {
			_, _, err := sliding.AllowAll(t.Context(), a.Ask("{ada}", 1), b.Ask("{ada}", 1))
			return err
		}
		a.Allow(t.Context(), "{ada}", 1)
		want(t, rdb.LPush(t.Context(), "b:{ada}", "1").Err(), nil)
		check("the second of two", all(), `the key "b:{ada}" holds a list of somebody else's`)
		want(t, rdb.Del(t.Context(), "a:{ada}").Err(), nil)
		check("the second, where the first is not there", all(), `: the key "b:{ada}" holds a list of somebody else's`)
		want(t, rdb.HSet(t.Context(), "a:{ada}", "f", "1").Err(), nil)
		check("both", all(), `the key "a:{ada}" holds a hash, and the key "b:{ada}" holds a list of somebody else's`)

		s := mayfly.Must(sliding.New(namespace(rdb), sliding.Options{MaxAge: time.Hour, RedisTimeout: patient}))
		want(t, s.Create(t.Context(), "{old}", cart{}), nil)
		to := namespace(rdb).Prefix + "{old}new"
		want(t, rdb.LPush(t.Context(), to, "1").Err(), nil)
		check("Rotate", s.Rotate(t.Context(), "{old}", "{old}new"), fmt.Sprintf("the key %q holds a list", to))
	})
}

// deletes deletes a key before its type is asked for.
type deletes struct {
	trips
	rdb redis.UniversalClient
	key string
}

func (d *deletes) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "type" {
			d.rdb.Del(ctx, d.key)
		}
		return next(ctx, cmds)
	}
}

func (d *deletes) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "type" {
			d.rdb.Del(ctx, d.key)
		}
		return next(ctx, cmd)
	}
}

// A key of another type that ends before its type is asked for does not hold "a none".
func TestAKeyOfSomebodyElsesThatEnds(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client()
	rdb.AddHook(&deletes{rdb: redis.NewClient(srv.Options()), key: "b:ada"})
	a, b := limiterOf(rdb, "a", sliding.LimiterOptions{Limit: 10}), limiterOf(rdb, "b", sliding.LimiterOptions{Limit: 10})
	for says, ask := range map[string]func() error{
		`the key "b:ada" held another type, and no longer does`: func() error {
			_, err := b.Allow(t.Context(), "ada", 1)
			return err
		},
		`one of the keys ["a:ada" "b:ada"] held another type, and no longer does`: func() error {
			_, _, err := sliding.AllowAll(t.Context(), a.Ask("ada", 1), b.Ask("ada", 1))
			return err
		},
	} {
		want(t, rdb.LPush(t.Context(), "b:ada", "1").Err(), nil)
		if err := ask(); !errors.Is(err, mayfly.ErrForeign) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}
