package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
	"github.com/mayflycache/mayfly/redistest"
)

func getMany(t *testing.T, rdb redis.UniversalClient) {
	ctx := t.Context()
	broken := errors.New("shard 3 is down")
	var calls [][]int
	var mu sync.Mutex
	c := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(_ context.Context, keys []int) (map[int]user, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, slices.Sorted(slices.Values(keys)))
		found := map[int]user{}
		var err error
		for _, key := range keys {
			switch {
			case key >= 1000:
				err = broken
			case key < 100:
				found[key] = user{Version: key}
			}
		}
		return found, err
	}, cacheaside.Options{MissTTL: time.Minute, RedisTimeout: patient}))
	check := func(keys, want []int, failed ...int) {
		t.Helper()
		got, err := c.GetMany(ctx, keys)
		if d := diff.Of(want, append([]int{}, slices.Sorted(maps.Keys(got))...)); d != "" {
			t.Error(d)
		}
		for key, u := range got {
			if u.Version != key {
				t.Errorf("%d is %+v", key, u)
			}
		}
		var many *cacheaside.ManyError[int]
		if errors.As(err, &many) {
			if d := diff.Of(failed, slices.Sorted(maps.Keys(many.Errs))); d != "" || !errors.Is(err, broken) {
				t.Error(d, err)
			}
		} else if err != nil || failed != nil {
			t.Errorf("got error %v", err)
		}
	}
	check([]int{1, 2, 3}, []int{1, 2, 3})
	check([]int{3, 4, 3, 500, 1}, []int{1, 3, 4})
	check([]int{1, 2, 500, 3, 4}, []int{1, 2, 3, 4}) // 500 is remembered as absent
	check([]int{1, 5, 2000}, []int{1, 5}, 2000)
	check(nil, []int{})
	if d := diff.Of([][]int{{1, 2, 3}, {4, 500}, {5, 2000}}, calls); d != "" {
		t.Error(d)
	}
	if u, err := c.Get(ctx, 5); u.Version != 5 || err != nil || len(calls) != 3 {
		t.Errorf("5 was not stored: %+v, %v", u, err)
	}
	if _, err := c.Get(ctx, 700); !errors.Is(err, mayfly.ErrNotFound) {
		t.Errorf("got error %v", err)
	}
	if _, err := c.Get(ctx, 2000); !errors.Is(err, broken) {
		t.Errorf("got error %v", err)
	}
}

func setMany(t *testing.T, rdb redis.UniversalClient) {
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
		return user{}, errors.New("it was not stored")
	}, cacheaside.Options{RedisTimeout: patient}))
	want := map[int]user{}
	for i := range 50 {
		want[i] = user{"set", i}
	}
	if err := c.SetMany(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := c.GetMany(t.Context(), slices.Collect(maps.Keys(want)))
	if d := diff.Of(want, got); d != "" || err != nil {
		t.Error(d, err)
	}
	if err := c.Delete(t.Context(), slices.Collect(maps.Keys(want))...); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, ok, err := c.Lookup(t.Context(), i); ok || err != nil {
			t.Errorf("key %d after Delete: %v, %v", i, ok, err)
		}
	}
}

func warm(t *testing.T, rdb redis.UniversalClient) {
	var loads atomic.Int32
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(_ context.Context, key int) (user, error) {
		loads.Add(1)
		if key == 13 {
			return user{}, errors.New("unlucky")
		}
		return user{Version: key}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	var last [2]int
	steps := 0
	err := c.Warm(t.Context(), func(yield func(int) bool) {
		for i := range 250 {
			if !yield(i) {
				return
			}
		}
	}, func(keys, failed int) { last = [2]int{keys, failed}; steps++ })
	if err == nil || !strings.Contains(err.Error(), "unlucky") || last != [2]int{250, 1} || steps != 3 {
		t.Errorf("got %v, %+v in %d steps", err, last, steps)
	}
	for i := range 250 {
		if i != 13 {
			if u, err := c.Get(t.Context(), i); u.Version != i || err != nil {
				t.Fatalf("key %d: %+v, %v", i, u, err)
			}
		}
	}
	if loads.Load() != 250 {
		t.Errorf("%d loads", loads.Load())
	}
}

// crossing calls two caches of the same keys for overlapping lists, all at once.
func crossing(t *testing.T, rdb redis.UniversalClient, o cacheaside.Options, takes time.Duration) {
	loaded := map[int]int{}
	var mu sync.Mutex
	load := func(_ context.Context, keys []int) (map[int]user, error) {
		<-time.After(takes)
		mu.Lock()
		defer mu.Unlock()
		found := map[int]user{}
		for _, key := range keys {
			loaded[key]++
			found[key] = user{Version: key}
		}
		return found, nil
	}
	a := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), load, o))
	b := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), load, o))
	var wg sync.WaitGroup
	for _, call := range []struct {
		c    *cacheaside.Cache[int, user]
		keys []int
	}{{a, []int{1, 2}}, {b, []int{2, 3}}, {a, []int{3, 1}}, {b, []int{1, 3, 2}}, {a, []int{2, 3}}} {
		wg.Go(func() {
			got, err := call.c.GetMany(t.Context(), call.keys)
			if len(got) != len(call.keys) || err != nil {
				t.Errorf("%v: got %v, %v", call.keys, got, err)
			}
		})
	}
	wg.Wait()
	if d := diff.Of(map[int]int{1: 1, 2: 1, 3: 1}, loaded); d != "" {
		t.Error(d)
	}
}

func crossingBatchesLoadNothingTwice(t *testing.T, rdb redis.UniversalClient) {
	crossing(t, rdb, cacheaside.Options{RedisTimeout: patient}, 20*time.Millisecond)
}

// Two calls get overlapping keys, in two processes and in one: each loads the keys that it claimed before it waits for others.
func TestCrossingBatchesDoNotWaitForEachOther(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		begun := time.Now()
		crossing(t, rdb, cacheaside.Options{}, time.Second)
		if took := time.Since(begun); took > 1500*time.Millisecond {
			t.Errorf("all after %v: somebody waited before it loaded", took)
		}
	})
}

// trips counts round trips, without those in which a new connection introduces itself.
type trips struct{ n atomic.Int64 }

func (c *trips) count(first redis.Cmder) {
	if name := first.Name(); name != "hello" && name != "client" {
		c.n.Add(1)
	}
}

func (*trips) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

func (c *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds[0])
		return next(ctx, cmds)
	}
}

// counted returns a client of rdb's servers that counts, and the number of servers that a call for many keys asks.
func counted(t *testing.T, rdb redis.UniversalClient) (_ redis.UniversalClient, _ *trips, servers int64) {
	count := new(trips)
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		o := *c.Options()
		o.ContextTimeoutEnabled = true
		cluster := redis.NewClusterClient(&o)
		t.Cleanup(func() { cluster.Close() })
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(count) })
		return cluster, count, 3
	case *redis.Client:
		o := *c.Options()
		o.ContextTimeoutEnabled = true
		single := redis.NewClient(&o)
		t.Cleanup(func() { single.Close() })
		single.AddHook(count)
		return single, count, 1
	}
	t.Fatalf("a client of type %T", rdb)
	return nil, nil, 0
}

func roundTrips(t *testing.T, rdb redis.UniversalClient) {
	rdb, count, servers := counted(t, rdb)
	var atLoad int64
	c := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(_ context.Context, keys []int) (map[int]user, error) {
		atLoad = count.n.Load()
		found := map[int]user{}
		for _, key := range keys {
			if key < 5000 || key%2 == 0 {
				found[key] = user{Version: key}
			}
		}
		return found, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	span := func(from int) (keys []int) {
		for i := range 100 {
			keys = append(keys, from+i)
		}
		return keys
	}
	ctx := t.Context()
	c.GetMany(ctx, span(1000)) // the servers have their scripts now
	c.GetMany(ctx, span(6000))
	for _, x := range []struct {
		name        string
		call        func() error
		before, all int64 // a load, and in all
	}{
		{"a miss", func() error { _, err := c.Get(ctx, 1); return err }, 2, 3},
		{"a hit", func() error { _, err := c.Get(ctx, 1); return err }, 0, 1},
		{"100 misses", func() error { _, err := c.GetMany(ctx, span(100)); return err }, 2 * servers, 3 * servers},
		{"100 misses, half of them absent", func() error { _, err := c.GetMany(ctx, span(5000)); return err }, 2 * servers, 4 * servers},
		{"100 hits", func() error { _, err := c.GetMany(ctx, span(100)); return err }, 0, servers},
		{"Lookup", func() error { _, _, err := c.Lookup(ctx, 1); return err }, 0, 1},
		{"Set", func() error { return c.Set(ctx, 1, user{}) }, 0, 1},
		{"100 Sets", func() error {
			values := map[int]user{}
			for _, key := range span(200) {
				values[key] = user{}
			}
			return c.SetMany(ctx, values)
		}, 0, servers},
		{"Delete", func() error { return c.Delete(ctx, 1) }, 0, 1},
		{"100 Deletes", func() error { return c.Delete(ctx, span(100)...) }, 0, servers},
	} {
		count.n.Store(0)
		atLoad = 0
		if err := x.call(); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", x.name, err))
		}
		if n := count.n.Load(); n > x.all || n == 0 || atLoad > x.before {
			t.Errorf("%s: %d round trips, %d of them before the load; want at most %d and %d", x.name, n, atLoad, x.all, x.before)
		}
	}
}

// Keys about which Redis cannot be asked are loaded beside the others, not after them.
func TestKeysWithoutRedisDoNotWaitForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		c := must[int, user](t)(cacheaside.New(namespace(t, srv.Client()), func(_ context.Context, key int) (user, error) {
			time.Sleep(300 * time.Millisecond)
			return user{Version: key}, nil
		}, cacheaside.Options{RedisTimeout: patient}))
		srv.FailNext("DEL", "ERR no")
		if err := c.Delete(t.Context(), 1); err == nil {
			t.Fatal("the deletion did not fail")
		}
		begun := time.Now()
		if _, err := c.GetMany(t.Context(), []int{1, 2}); err != nil || time.Since(begun) > 400*time.Millisecond {
			t.Errorf("two loads of 300ms took %v, %v", time.Since(begun), err)
		}
	})
}

// A batch waits for a key that another caller has claimed meanwhile, and does not load it again.
func TestAKeyThatABatchLostIsClaimedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		theirs := make(chan struct{})
		other := must[int, user](t)(cacheaside.New(namespace(t, srv.Client()), func(_ context.Context, key int) (user, error) {
			close(theirs)
			time.Sleep(time.Second)
			return user{Version: key}, nil
		}, cacheaside.Options{}))
		o := srv.Options()
		o.ContextTimeoutEnabled = true // otherwise the hook does not see it
		rdb := redis.NewClient(o)
		defer rdb.Close()
		ns := namespace(t, rdb)
		rdb.AddHook(before{"set", sync.OnceFunc(func() {
			go other.Get(context.Background(), 1)
			<-theirs
			srv.ClearLog()
		})})
		c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
		if got, err := c.GetMany(t.Context(), []int{1}); err != nil || got[1].Version != 1 {
			t.Errorf("got %v, %v", got, err)
		}
		claims := slices.DeleteFunc(srv.Log(), func(line string) bool { return !strings.HasPrefix(line, "set ") })
		if len(claims) != 1 {
			t.Errorf("claimed by %q", claims)
		}
	})
}

// before is a hook that calls do before each command of a name.
type before struct {
	name string
	do   func()
}

func (b before) DialHook(next redis.DialHook) redis.DialHook { return next }

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == b.name {
			b.do()
		}
		return next(ctx, cmd)
	}
}

func (b before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == b.name {
				b.do()
			}
		}
		return next(ctx, cmds)
	}
}

// What is not stored costs as few trips as what is: a list of values that must not be kept, and one of stored values that have gone.
func TestWhatIsNotStoredCostsOneTrip(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		counting, count, _ := counted(t, rdb)
		ns := namespace(t, counting)
		there, kept := true, false
		c := must[int, user](t)(cacheaside.NewBatchEntry(ns, func(_ context.Context, keys []int, _ map[int]cacheaside.Entry[user]) (map[int]cacheaside.Loaded[user], error) {
			found := map[int]cacheaside.Loaded[user]{}
			for _, key := range keys {
				if there {
					found[key] = cacheaside.Loaded[user]{Value: user{Version: key}, NoStore: !kept}
				}
			}
			return found, nil
		}, cacheaside.Options{RedisTimeout: patient, StaleIfError: time.Hour}))
		var keys []int
		for key := range 40 {
			keys = append(keys, key)
		}
		call := func(what string, want int) {
			t.Helper()
			count.n.Store(0)
			if got, err := c.GetMany(t.Context(), keys); len(got) != want || err != nil {
				t.Errorf("%s: %d values, %v", what, len(got), err)
			}
			if n := count.n.Load(); n > 5 {
				t.Errorf("%s: %d trips", what, n)
			}
		}
		call("not to be kept", 40)
		kept = true
		call("kept", 40)
		time.Sleep(ns.TTL + time.Minute)
		there = false
		call("gone", 0)
	})
}
