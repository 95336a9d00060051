package cacheaside_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/redistest"
)

// Without Redis, copies are served for LocalOptions.Outage, each within its own TTL, except those of keys that this process changes. When Redis
// is back they are dropped.
func TestLocalCopiesOutliveAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		var cut atomic.Bool
		o.ContextTimeoutEnabled, o.PoolSize = true, 100
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if cut.Load() {
				return nil, errors.New("no way to Redis")
			}
			return srv.Dial(ctx, network, addr)
		}
		rdb := redis.NewClient(o)
		other := srv.Client()
		ns := namespace(t, rdb)
		ns.TTL = time.Hour
		short := ns
		short.Prefix, short.TTL = "short:", 20*time.Second
		local, err := mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{ns.Prefix, "short:"}, MaxEntries: 100, Outage: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { local.Close(context.Background()); rdb.Close(); time.Sleep(time.Minute) }()
		ns.Local, short.Local = local, local
		loads := 0
		load := func(_ context.Context, key int) (user, error) { loads++; return user{Version: loads}, nil }
		long, brief := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{})), must[int, user](t)(cacheaside.New(short, load, cacheaside.Options{}))
		defer long.Close(context.Background())
		defer brief.Close(context.Background())
		// flat reports whether a Get is answered from this process.
		flat := func(c *cacheaside.Cache[int, user], key int) bool {
			before, begun := loads, time.Now()
			if _, err := c.Get(t.Context(), key); err != nil {
				t.Error(err)
			}
			return loads == before && time.Since(begun) == 0
		}
		for range 3 {
			for _, key := range []int{1, 2} {
				long.Get(t.Context(), key)
				brief.Get(t.Context(), key)
				synctest.Wait()
			}
		}

		srv.Hang()
		for range 100 { // the moment of the loss, too
			if !flat(long, 1) {
				t.Fatal("the outage is felt")
			}
			time.Sleep(100 * time.Millisecond)
		}
		if local.Stats().Rung != "off" {
			t.Errorf("the rung is %v", local.Stats().Rung)
		}
		long.Delete(t.Context(), 2)
		if flat(long, 2) {
			t.Error("what this process deletes is served")
		}
		time.Sleep(12 * time.Second)
		if flat(brief, 1) {
			t.Error("a copy outlives its TTL")
		}
		if !flat(long, 1) {
			t.Error("after 22 s of 60 it is not served any more")
		}
		time.Sleep(42 * time.Second)
		if flat(long, 1) {
			t.Error("it is served after Outage and Silence")
		}
		srv.Thaw()
		time.Sleep(5 * time.Second)

		for range 3 {
			long.Get(t.Context(), 3)
			synctest.Wait()
		}
		cut.Store(true)
		srv.KillConnections()
		time.Sleep(5 * time.Second)
		if !flat(long, 3) {
			t.Error("the second outage is felt")
		}
		if err := other.Del(t.Context(), ns.Prefix+"3").Err(); err != nil { // Redis is there, for others
			t.Fatal(err)
		}
		cut.Store(false)
		time.Sleep(5 * time.Second)
		if local.Stats().Rung != "tracking" || flat(long, 3) {
			t.Errorf("on %v: a copy of before the outage is served", local.Stats().Rung)
		}
	})
}
