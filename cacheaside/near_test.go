package cacheaside_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/redistest"
)

// withLocal gives ns a local tier of its own.
func withLocal[K comparable, V any](t testing.TB, ns *mayfly.Namespace[K, V], o mayfly.LocalOptions) *mayfly.Local {
	t.Helper()
	o.Redis, o.Prefixes = ns.Redis, []string{ns.Prefix}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	l, err := mayfly.OpenLocal(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(context.Background()) })
	ns.Local = l
	return l
}

func TestALocalHit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ns := namespace(t, srv.Client())
		l := withLocal(t, &ns, mayfly.LocalOptions{})
		if r := l.Stats().Rung; r != mayfly.Tracking {
			t.Fatalf("the rung is %v", r)
		}
		var loads atomic.Int32
		c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
			return user{fmt.Sprint("user ", key), int(loads.Add(1))}, nil
		}, cacheaside.Options{Early: earlyrefresh.Never}))
		get := func(c *cacheaside.Cache[int, user], version int) {
			t.Helper()
			if u, err := c.Get(t.Context(), 7); u.Version != version || err != nil {
				t.Errorf("got %+v, %v; want version %d", u, err, version)
			}
		}
		source := func(want cacheaside.Source) {
			t.Helper()
			if e, ok, err := c.Lookup(t.Context(), 7); e.Source != want || !ok || err != nil {
				t.Errorf("Lookup: %+v, %v, %v; want source %v", e, ok, err, want)
			}
		}
		get(c, 1) // loads
		source(cacheaside.SourceRedis)
		get(c, 1) // from Redis, and copies
		source(cacheaside.SourceLocal)
		asked := len(srv.Log())
		for range 10 {
			get(c, 1)
		}
		if n := len(srv.Log()) - asked; n != 0 {
			t.Errorf("local hits sent %d commands", n)
		}

		// Another process deletes.
		other := redis.NewClient(srv.Options())
		defer other.Close()
		other.Del(t.Context(), ns.Prefix+"7")
		synctest.Wait()
		get(c, 2)
		get(c, 2)
		source(cacheaside.SourceLocal)
		if err := c.Set(t.Context(), 7, user{"set", 9}); err != nil {
			t.Fatal(err)
		}
		get(c, 9)
		synctest.Wait()
		get(c, 9)
		source(cacheaside.SourceLocal)
		if err := c.Delete(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		get(c, 3)
		time.Sleep(time.Minute + time.Second)
		get(c, 4)
	})
}
