package cacheaside_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/redistest"
)

// A Close that cancels loads gives their leases back, so that others load at once instead of a second later.
func TestCloseHandsLeasesBack(t *testing.T) {
	for name, x := range map[string]struct {
		plain, hangs bool
		load         func(ctx context.Context)
		others       time.Duration // when others begin to load, at most
	}{
		"a loader that heeds its context":   {load: func(ctx context.Context) { <-ctx.Done() }, others: 150 * time.Millisecond},
		"a plain value":                     {plain: true, load: func(ctx context.Context) { <-ctx.Done() }, others: 150 * time.Millisecond},
		"a loader that ignores its context": {load: func(context.Context) { time.Sleep(time.Minute) }, others: 300 * time.Millisecond},
		"a load that was over its time": {load: func(ctx context.Context) {
			<-ctx.Done()
			time.Sleep(time.Minute)
		}, others: 300 * time.Millisecond},
		"a Redis that hangs": {hangs: true, load: func(ctx context.Context) { <-ctx.Done() }, others: 1200 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				open := func(load func(ctx context.Context)) *cacheaside.Cache[int, user] {
					rdb := redis.NewClient(srv.Options())
					t.Cleanup(func() { rdb.Close() })
					ns := namespace(t, rdb)
					ns.Plain = x.plain
					return must[int, user](t)(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
						load(ctx)
						return user{Version: key}, ctx.Err()
					}, cacheaside.Options{LoadTimeout: 4 * time.Second}))
				}
				var loaded time.Time
				one, other := open(x.load), open(func(context.Context) { loaded = time.Now() })
				failed := make(chan error, 1)
				go func() { _, err := one.Get(t.Context(), 7); failed <- err }()
				time.Sleep(3 * time.Second)
				got := make(chan error, 1)
				go func() { _, err := other.Get(t.Context(), 7); got <- err }()
				time.Sleep(500 * time.Millisecond)
				if name == "a load that was over its time" {
					time.Sleep(time.Second)
					<-got // the failure
					go func() { _, err := other.Get(t.Context(), 7); got <- err }()
				}
				if x.hangs {
					srv.Hang()
				}
				now, cancel := context.WithCancel(t.Context())
				cancel()
				begun := time.Now()
				if err := one.Close(now); !errors.Is(err, context.Canceled) {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(begun); took > 300*time.Millisecond {
					t.Errorf("Close took %v", took)
				}
				srv.Thaw()
				if err := <-failed; !errors.Is(err, mayfly.ErrClosed) && name != "a load that was over its time" {
					t.Errorf("whose load was cancelled: %v", err)
				}
				if err := <-got; err != nil || loaded.Sub(begun) > x.others {
					t.Errorf("the other: %v, %v after Close, want %v at most", err, loaded.Sub(begun), x.others)
				}
				time.Sleep(2 * time.Minute)
			})
		})
	}
}
