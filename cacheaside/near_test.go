package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
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
		if r := l.Stats().Rung; r != "tracking" {
			t.Fatalf("the rung is %v", r)
		}
		var loads atomic.Int32
		c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
			return user{fmt.Sprint("user ", key), int(loads.Add(1))}, nil
		}, cacheaside.Options{Early: earlyrefresh.Never}))
		get := func(c *cacheaside.Cache[int, user], version int) {
			t.Helper()
			defer synctest.Wait() // for the pushes of a fill
			if u, err := c.Get(t.Context(), 7); u.Version != version || err != nil {
				t.Errorf("got %+v, %v; want version %d", u, err, version)
			}
		}
		source := func(want mayfly.Outcome) {
			t.Helper()
			if e, ok, err := c.Lookup(t.Context(), 7); e.Outcome != want || !ok || err != nil {
				t.Errorf("Lookup: %+v, %v, %v; want source %v", e, ok, err, want)
			}
		}
		get(c, 1) // loads
		source(mayfly.OutcomeHitRedis)
		get(c, 1) // from Redis, and copies
		source(mayfly.OutcomeHitLocal)
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
		source(mayfly.OutcomeHitLocal)
		if err := c.Set(t.Context(), 7, user{"set", 9}); err != nil {
			t.Fatal(err)
		}
		get(c, 9)
		synctest.Wait()
		get(c, 9)
		source(mayfly.OutcomeHitLocal)
		if err := c.Delete(t.Context(), 7); err != nil {
			t.Fatal(err)
		}
		get(c, 3)
		time.Sleep(time.Minute + time.Second)
		get(c, 4)
	})
}

// localHits returns functions whose gets are local hits, by key type.
func localHits(t testing.TB) map[string]func() {
	srv := redistest.Start(t)
	ctx := t.Context()
	value := page{7, "a title", "some text", []string{"a", "b"}}
	ns := mayfly.Namespace[int, page]{Name: "pages", Redis: srv.Client(), Prefix: "cache:page:", TTL: time.Hour}
	withLocal(t, &ns, mayfly.LocalOptions{})
	ints := must[int, page](t)(cacheaside.New(ns, func(context.Context, int) (page, error) { return value, nil }, cacheaside.Options{}))
	named := mayfly.Namespace[string, user]{Name: "named", Redis: srv.Client(), Prefix: "cache:page:n:", TTL: time.Hour, Local: ns.Local}
	texts := must[string, user](t)(cacheaside.New(named, func(context.Context, string) (user, error) { return user{"Ada", 7}, nil }, cacheaside.Options{}))
	gets := map[string]func(){
		"int": func() {
			if p, err := ints.Get(ctx, 1001); p.ID != 7 || err != nil {
				t.Fatal(p, err)
			}
		},
		"string": func() {
			if u, err := texts.Get(ctx, "a-key-of-16-byte"); u.Version != 7 || err != nil {
				t.Fatal(u, err)
			}
		},
	}
	for _, get := range gets {
		hits := ns.Local.Stats().Hits
		// The push of the fill comes a moment after it.
		expect.Eventually(t, "there is a local hit", func() bool { get(); return ns.Local.Stats().Hits > hits })
	}
	return gets
}

func TestALocalHitAllocatesNothing(t *testing.T) {
	for kind, get := range localHits(t) {
		expect.Eventually(t, "a local hit by "+kind+" key allocates nothing", func() bool { // unless other goroutines allocate meanwhile, or the tier is in doubt
			return testing.AllocsPerRun(1000, get) == 0
		})
	}
}

func BenchmarkGetLocal(b *testing.B) {
	for kind, get := range localHits(b) {
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				get()
			}
		})
	}
}

// nearby is the setup of most tests of the local tier: a double, a cache with a tier of its own, and another process.
type nearby struct {
	srv   *redistest.Server
	rdb   *redis.Client
	other *redis.Client
	ns    mayfly.Namespace[int, user]
	local *mayfly.Local
	loads atomic.Int32
}

func inTheNear(t *testing.T, change func(n *nearby), test func(t *testing.T, n *nearby)) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		n := &nearby{srv: srv, rdb: srv.Client(), other: redis.NewClient(srv.Options())}
		t.Cleanup(func() { n.other.Close() })
		n.ns = namespace(t, n.rdb)
		if change != nil {
			change(n)
		}
		n.local = withLocal(t, &n.ns, mayfly.LocalOptions{})
		test(t, n)
	})
}

// load counts the versions.
func (n *nearby) load(context.Context, int) (user, error) {
	return user{"u", int(n.loads.Add(1))}, nil
}

// sent calls f and returns the number of commands that it sent, without the tier's own heartbeats.
func (n *nearby) sent(f func()) (sent int) {
	before := len(n.srv.Log())
	f()
	for _, line := range n.srv.Log()[before:] {
		if !strings.Contains(line, "mayfly:") {
			sent++
		}
	}
	return sent
}

// got gets a value and waits for the pushes that follow.
func got(t *testing.T, c *cacheaside.Cache[int, user], want int) {
	t.Helper()
	if u, err := c.Get(t.Context(), 7); u.Version != want || err != nil {
		t.Errorf("got %+v, %v; want version %d", u, err, want)
	}
	synctest.Wait()
}

// source returns where the value of 7 would come from now.
func source(t *testing.T, c *cacheaside.Cache[int, user]) mayfly.Outcome {
	t.Helper()
	e, _, err := c.Lookup(t.Context(), 7)
	if err != nil {
		t.Error(err)
	}
	return e.Outcome
}

func TestManyFromTheLocalTier(t *testing.T) {
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.NewBatch(n.ns, func(_ context.Context, keys []int) (map[int]user, error) {
			n.loads.Add(int32(len(keys)))
			found := map[int]user{}
			for _, key := range keys {
				found[key] = user{"u", key}
			}
			return found, nil
		}, cacheaside.Options{}))
		many := func(keys ...int) (sent int) {
			t.Helper()
			return n.sent(func() {
				m, err := c.GetMany(t.Context(), keys)
				for _, key := range keys {
					if m[key].Version != key {
						t.Errorf("got %v, %v", m, err)
					}
				}
				synctest.Wait()
			})
		}
		many(1, 2, 3)
		many(1, 2, 3)
		if sent := many(1, 2, 3, 2); sent != 0 {
			t.Errorf("local hits sent %d commands", sent)
		}
		if sent := many(1, 2, 3, 4); sent > 4 || n.loads.Load() != 4 {
			t.Errorf("one miss sent %d commands, %d loads", sent, n.loads.Load())
		}
	})
}

func TestCloneAndCost(t *testing.T) {
	inTheNear(t, func(n *nearby) {
		n.ns.Clone = func(u user) user { u.Name += "'"; return u }
		n.ns.Cost = func(user) int { return 10_000 }
	}, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{}))
		got(t, c, 1)
		got(t, c, 1)
		if u, _ := c.Get(t.Context(), 7); u.Name != "u''" { // into the tier, and out of it
			t.Errorf("got %+v", u)
		}
		if b := n.local.Stats().Bytes; b < 10_000 || b > 10_500 {
			t.Errorf("the copy costs %d", b)
		}
		for key := range 200 {
			c.Get(t.Context(), key)
			synctest.Wait()
			c.Get(t.Context(), key)
		}
		if s := n.local.Stats(); s.Bytes > 1<<20 || s.Evictions == 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestWithoutTracking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := mini(t)
		ns := namespace(t, rdb)
		var caches [2]*cacheaside.Cache[int, user] // as two processes
		for i := range caches {
			ns := ns
			if l := withLocal(t, &ns, mayfly.LocalOptions{}); l.Stats().Rung != "pubsub" {
				t.Fatalf("the rung is %v", l.Stats().Rung)
			}
			version := 0
			caches[i] = must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
				version++
				return user{"u", version}, nil
			}, cacheaside.Options{Early: earlyrefresh.Never}))
		}
		a, b := caches[0], caches[1]
		copied := func(want int) {
			t.Helper()
			for range 3 {
				got(t, b, want)
			}
			if s := source(t, b); s != mayfly.OutcomeHitLocal {
				t.Errorf("the source is %v", s)
			}
		}
		copied(1)
		a.Set(t.Context(), 7, user{"set", 9})
		synctest.Wait()
		copied(9)
		a.Delete(t.Context(), 7)
		synctest.Wait()
		copied(2)
		a.Clear(t.Context())
		synctest.Wait()
		copied(3)
	})
}

func TestAClosedLocalTierIsNotUsed(t *testing.T) {
	inTheNear(t, nil, func(t *testing.T, n *nearby) {
		c := must[int, user](t)(cacheaside.New(n.ns, n.load, cacheaside.Options{}))
		got(t, c, 1)
		got(t, c, 1)
		n.local.Close(t.Context())
		if s := source(t, c); s != mayfly.OutcomeHitRedis {
			t.Errorf("the source is %v", s)
		}
		got(t, c, 1)
		if _, err := cacheaside.New(n.ns, n.load, cacheaside.Options{}); !errors.Is(err, mayfly.ErrClosed) {
			t.Errorf("a cache with a closed tier: %v", err)
		}
		c.Close(t.Context())
		if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrClosed) {
			t.Errorf("a closed cache: %v", err)
		}
	})
}

func TestALocalTierOnACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redistest.StartCluster(t, 3)
		rdb := cluster.Client()
		ns := namespace(t, rdb)
		l := withLocal(t, &ns, mayfly.LocalOptions{})
		var loads atomic.Int32
		c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			return user{"u", int(loads.Add(1))}, nil
		}, cacheaside.Options{Early: earlyrefresh.Never}))
		for range 3 {
			got(t, c, 1)
		}
		if s := source(t, c); s != mayfly.OutcomeHitLocal {
			t.Errorf("the source is %v", s)
		}
		if m, err := c.GetMany(t.Context(), []int{1, 2, 3, 4, 5}); len(m) != 5 || err != nil {
			t.Errorf("got %v, %v", m, err)
		}
		// The slot moves without any push. A client that gets MOVED drops all copies, and copies again when it is connected to all servers.
		slot := cluster.Slot(ns.Prefix + "8")
		for _, node := range cluster.Nodes() {
			if node != cluster.Owner(ns.Prefix+"8") {
				cluster.MoveSlots(slot, slot, node)
				break
			}
		}
		flushes := l.Stats().Flushes
		if _, err := c.Get(t.Context(), 8); err != nil {
			t.Error(err)
		}
		if l.Stats().Flushes == flushes {
			t.Error("MOVED has dropped nothing")
		}
		time.Sleep(time.Second)
		for range 3 {
			got(t, c, 1)
		}
		if s := source(t, c); s != mayfly.OutcomeHitLocal {
			t.Errorf("after a slot has moved the source is %v", s)
		}
	})
}
