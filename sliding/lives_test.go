package sliding_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

const day = 24 * time.Hour

// lives are the options of stores whose values can have lives of their own.
var lives = []sliding.Options{
	{RedisTimeout: patient}, {RedisTimeout: patient, TouchBelow: 0.5}, {RedisTimeout: patient, MaxAge: 12 * time.Hour},
	{RedisTimeout: patient, MaxAge: 12 * time.Hour, TouchBelow: 0.5},
}

// A value keeps its own life among others, whatever is done to it, on every server.
func TestALifeOfItsOwn(t *testing.T) {
	backends.Each(t, func(t *testing.T, rdb redis.UniversalClient) {
		for i, o := range lives {
			t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
				ctx, ns := t.Context(), namespace(rdb)
				ns.Prefix, ns.MaxTTL = fmt.Sprintf("lives:%d:", i), 90*day
				s := mayfly.Must(sliding.New(ns, o))
				lives := func(what, key string, want time.Duration) {
					t.Helper()
					if left := rdb.PTTL(ctx, ns.Prefix+key).Val(); left > want || left < want-time.Minute {
						t.Errorf("%s: %s has %v left, want %v", what, key, left, want)
					}
				}
				month := sliding.Life{TTL: 30 * day, MaxAge: 60 * day}
				want(t, s.CreateFor(ctx, "ada", cart{Count: 1}, month), nil)
				want(t, s.CreateFor(ctx, "ada", cart{}, month), mayfly.ErrExists)
				lives("CreateFor", "ada", 30*day)
				want(t, s.Create(ctx, "bob", cart{Count: 2}), nil)
				lives("Create", "bob", idle)
				for what, use := range map[string]func() error{
					"Get":    func() error { _, err := s.Get(ctx, "ada"); return err },
					"Touch":  func() error { return s.Touch(ctx, "ada") },
					"Set":    func() error { return s.Set(ctx, "ada", cart{Count: 3}) },
					"Update": func() error { _, err := s.Update(ctx, "ada", func(c cart) (cart, error) { return c, nil }); return err },
					"Rotate": func() error { return errors.Join(s.Rotate(ctx, "ada", "eve"), s.Rotate(ctx, "eve", "ada")) },
				} {
					rdb.PExpire(ctx, ns.Prefix+"ada", time.Hour) // as if much of its life had passed
					want(t, use(), nil)
					lives(what, "ada", 30*day)
					if c, err := s.Peek(ctx, "ada"); err != nil || c.Count == 0 {
						t.Errorf("%s: got %+v, %v", what, c, err)
					}
				}
				want(t, s.SetFor(ctx, "ada", cart{Count: 4}, sliding.Life{TTL: time.Minute}), nil)
				if _, err := s.Get(ctx, "ada"); err != nil {
					t.Error(err)
				}
				lives("a short life", "ada", time.Minute)
				want(t, s.SetFor(ctx, "ada", cart{Count: 5}, sliding.Life{}), nil)
				lives("as others", "ada", idle)
				if c, err := s.Get(ctx, "ada"); c.Count != 5 || err != nil {
					t.Errorf("got %+v, %v", c, err)
				}
				want(t, s.Delete(ctx, "ada", "bob"), nil)
			})
		}
	})
}

// A value's own life ends at its declared time, to the millisecond, however much the value is used.
func TestTheEndOfALifeOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, o := range lives {
		for _, local := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				ns := namespace(srv.Client())
				ns.MaxTTL = 90 * day
				if local {
					l := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: srv.Client(), Prefixes: []string{"cart:"}, MaxEntries: 100}))
					defer l.Close(context.Background())
					ns.Local = l
				}
				s := mayfly.Must(sliding.New(ns, o))
				begun := time.Now()
				want(t, s.CreateFor(t.Context(), "ada", cart{}, sliding.Life{TTL: day, MaxAge: 3 * day}), nil)
				want(t, s.CreateFor(t.Context(), "bob", cart{}, sliding.Life{TTL: day, MaxAge: 3 * day}), nil)
				for time.Since(begun)+5*time.Hour < 3*day {
					if _, err := s.Get(t.Context(), "ada"); err != nil {
						t.Fatalf("%+v, local %v: gone after %v: %v", o, local, time.Since(begun), err)
					}
					time.Sleep(5 * time.Hour)
				}
				time.Sleep(3*day - time.Since(begun) - time.Millisecond)
				if _, err := s.Get(t.Context(), "ada"); err != nil {
					t.Errorf("%+v, local %v: gone before its end: %v", o, local, err)
				}
				time.Sleep(2 * time.Millisecond)
				for _, gone := range []string{"ada", "bob"} { // bob was idle for a day
					_, err := s.Get(t.Context(), gone)
					want(t, err, mayfly.ErrNotFound)
				}
			})
		}
	}
}

// Programs with a MaxTTL read, use and change values written before there was one, and the other way round.
func TestMaxTTLComesLater(t *testing.T) {
	srv := redistest.Start(t)
	ctx, ns := t.Context(), namespace(srv.Client())
	before := mayfly.Must(sliding.New(ns, sliding.Options{RedisTimeout: patient}))
	ns.MaxTTL = 90 * day
	after := mayfly.Must(sliding.New(ns, sliding.Options{RedisTimeout: patient}))
	one := func(c cart) (cart, error) { c.Count++; return c, nil }
	want(t, before.Create(ctx, "ada", cart{Count: 1}), nil)
	want(t, after.CreateFor(ctx, "bob", cart{Count: 1}, sliding.Life{TTL: day}), nil)
	srv.Client().Set(ctx, "cart:plain", "{}", idle)
	for _, s := range []store{after, before} {
		for _, key := range []string{"ada", "bob", "plain"} {
			if _, err := s.Get(ctx, key); err != nil {
				t.Errorf("%s: %v", key, err)
			}
			if _, err := s.Update(ctx, key, one); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		}
	}
	if c, err := after.Peek(ctx, "bob"); c.Count != 3 || err != nil {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestBadLives(t *testing.T) {
	srv := redistest.Start(t)
	ctx, ns := t.Context(), namespace(srv.Client())
	none := mayfly.Must(sliding.New(ns, sliding.Options{RedisTimeout: patient}))
	ns.MaxTTL = day
	s := mayfly.Must(sliding.New(ns, sliding.Options{RedisTimeout: patient, MaxAge: 12 * time.Hour}))
	for says, err := range map[string]error{
		`create "cart:a": Namespace.MaxTTL is zero`:                           none.CreateFor(ctx, "a", cart{}, sliding.Life{TTL: time.Minute}),
		"Life.TTL must be at least 1ms, got -1s":                              s.SetFor(ctx, "a", cart{}, sliding.Life{TTL: -time.Second}),
		"Life.TTL is 48h0m0s, but Namespace.MaxTTL allows at most 24h0m0s":    s.SetFor(ctx, "a", cart{}, sliding.Life{TTL: 2 * day}),
		"Life.MaxAge is 48h0m0s, but Namespace.MaxTTL allows at most 24h0m0s": s.CreateFor(ctx, "a", cart{}, sliding.Life{MaxAge: 2 * day}),
		"Life.MaxAge must be at least 1ms, got 1ns":                           s.CreateFor(ctx, "a", cart{}, sliding.Life{MaxAge: 1}),
		"the value would live for 20h0m0s and be 12h0m0s old at most":         s.CreateFor(ctx, "a", cart{}, sliding.Life{TTL: 20 * time.Hour}),
		"the value would live for 30m0s and be 1m0s old at most":              s.CreateFor(ctx, "a", cart{}, sliding.Life{MaxAge: time.Minute}),
		"Namespace.MaxTTL needs a header":                                     newError(ns, true, sliding.Options{}),
		"Options.Atomic is set, and so is Namespace.MaxTTL":                   newError(ns, false, sliding.Options{Atomic: true}),
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
	if keys := srv.Keys(); len(keys) > 0 {
		t.Errorf("written: %v", keys)
	}
}

func newError(ns mayfly.Namespace[string, cart], plain bool, o sliding.Options) error {
	ns.Plain = plain
	_, err := sliding.New(ns, o)
	return err
}
