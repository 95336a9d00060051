package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

func TestTheWayOfARead(t *testing.T) {
	everywhere(t, func(t *testing.T, rdb redis.UniversalClient) {
		var loads atomic.Int32
		ns := namespace(t, rdb)
		var events seen
		ns.Observer = &events
		c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
			return user{fmt.Sprint("user ", key), int(loads.Add(1))}, nil
		}, cacheaside.Options{Faults: patient}))
		ctx := t.Context()

		if _, ok, err := c.Lookup(ctx, 7); ok || err != nil {
			t.Errorf("before: %v, %v", ok, err)
		}
		for range 3 {
			if u, err := c.Get(ctx, 7); u != (user{"user 7", 1}) || err != nil {
				t.Fatalf("got %+v, %v", u, err)
			}
		}
		e, ok, err := c.Lookup(ctx, 7)
		if !ok || err != nil || e.Value.Version != 1 || e.Source != cacheaside.SourceRedis ||
			e.Fresh != e.TTL || e.TTL <= 50*time.Second || e.TTL > time.Minute || e.Age != time.Minute-e.TTL {
			t.Errorf("Lookup: %+v, %v, %v", e, ok, err)
		}
		if err := c.Delete(ctx, 7); err != nil {
			t.Fatal(err)
		}
		if u, _ := c.Get(ctx, 7); u.Version != 2 {
			t.Errorf("after Delete: %+v", u)
		}
		if err := c.Set(ctx, 7, user{"set", 99}); err != nil {
			t.Fatal(err)
		}
		if u, _ := c.Get(ctx, 7); u.Version != 99 {
			t.Errorf("after Set: %+v", u)
		}
		if err := c.Clear(ctx); err != nil {
			t.Fatal(err)
		}
		if u, _ := c.Get(ctx, 7); u.Version != 3 {
			t.Errorf("after Clear: %+v", u)
		}
		for _, want := range []struct {
			kind    mayfly.Kind
			outcome mayfly.Outcome
			n       int
		}{
			{mayfly.Read, mayfly.Miss, 3}, {mayfly.Read, mayfly.HitRedis, 3}, {mayfly.Load, mayfly.OK, 3}, {mayfly.Fill, mayfly.OK, 3},
			{mayfly.Write, mayfly.OK, 1}, {mayfly.Removal, mayfly.OK, 2},
		} {
			if n := events.count(want.kind, want.outcome); n != want.n {
				t.Errorf("%d events %v %v, want %d", n, want.kind, want.outcome, want.n)
			}
		}
		ttl := rdb.PTTL(ctx, ns.Prefix+"7").Val()
		if ttl <= 0 || ttl > time.Minute {
			t.Errorf("the key's TTL is %v", ttl)
		}
	})
}

func TestAnAbsenceIsRememberedForItsOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		errNoRows := errors.New("sql: no rows in result set")
		var loads int
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			loads++
			return user{}, errNoRows
		}, cacheaside.Options{MissTTL: 10 * time.Second, NotFound: func(err error) bool { return errors.Is(err, errNoRows) }}))
		for _, want := range []int{1, 1, 2} {
			if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
				t.Errorf("got error %v", err)
			}
			if _, _, err := c.Lookup(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
				t.Errorf("Lookup: got error %v", err)
			}
			if loads != want {
				t.Errorf("%d loads, want %d", loads, want)
			}
			time.Sleep(6 * time.Second)
		}
		c.Set(t.Context(), 7, user{Name: "born"})
		if u, err := c.Get(t.Context(), 7); u.Name != "born" || err != nil {
			t.Errorf("after Set: %+v, %v", u, err)
		}
	})
}

func TestNothingIsRememberedByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, m := mini(t)
		fail := errors.New("the database is down")
		errs := []error{mayfly.ErrNotFound, fail, nil}
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			err := errs[0]
			errs = errs[1:]
			return user{"there", 1}, err
		}, cacheaside.Options{}))
		if _, err := c.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("got error %v", err)
		}
		if _, err := c.Get(t.Context(), 7); !errors.Is(err, fail) || errors.Is(err, mayfly.ErrNotFound) {
			t.Errorf("got error %v", err)
		}
		if keys := m.Keys(); len(keys) != 0 {
			t.Errorf("after a failed load Redis holds %q", keys)
		}
		if u, err := c.Get(t.Context(), 7); u.Name != "there" || err != nil {
			t.Errorf("got %+v, %v", u, err)
		}
	})
}

func TestOneLoadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		var loads atomic.Int32
		load := func(context.Context, int) (user, error) {
			loads.Add(1)
			time.Sleep(time.Second * 5) // five leases long: the heart beat keeps it
			return user{"u", 1}, nil
		}
		// Two caches are as two processes: they share nothing but Redis.
		a := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, cacheaside.Options{}))
		b := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, cacheaside.Options{}))
		begun := time.Now()
		var wg sync.WaitGroup
		for i := range 64 {
			c := a
			if i%2 == 0 {
				c = b
			}
			wg.Go(func() {
				if u, err := c.Get(t.Context(), 7); u.Version != 1 || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
			})
		}
		wg.Wait()
		if n := loads.Load(); n != 1 {
			t.Errorf("%d loads", n)
		}
		if took := time.Since(begun); took > 5200*time.Millisecond {
			t.Errorf("the last had it after %v", took)
		}
	})
}

func TestWhoLeavesDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		var loads atomic.Int32
		type trace struct{}
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, key int) (user, error) {
			loads.Add(1)
			if ctx.Value(trace{}) != "of the first" {
				t.Error("the loader does not see the values of the first caller's context")
			}
			select {
			case <-ctx.Done():
				return user{}, ctx.Err()
			case <-time.After(time.Second):
				return user{"u", 1}, nil
			}
		}, cacheaside.Options{}))
		hasty, cancel := context.WithTimeout(context.WithValue(t.Context(), trace{}, "of the first"), 100*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			begun := time.Now()
			if _, err := c.Get(hasty, 7); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 100*time.Millisecond {
				t.Errorf("the hasty one: %v after %v", err, time.Since(begun))
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if u, err := c.Get(t.Context(), 7); u.Name != "u" || err != nil {
				t.Errorf("the patient one: %+v, %v", u, err)
			}
		})
		wg.Wait()

		// All have left, and the load still warms the cache.
		hasty, cancel = context.WithTimeout(context.WithValue(t.Context(), trace{}, "of the first"), 100*time.Millisecond)
		defer cancel()
		c.Get(hasty, 8)
		time.Sleep(time.Second)
		if u, err := c.Get(t.Context(), 8); u.Name != "u" || err != nil || loads.Load() != 2 {
			t.Errorf("got %+v, %v after %d loads", u, err, loads.Load())
		}
	})
}

func TestAbandon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, m := mini(t)
		stopped := false
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, key int) (user, error) {
			<-ctx.Done()
			stopped = true
			return user{}, ctx.Err()
		}, cacheaside.Options{Load: cacheaside.Load{Abandon: true}}))
		hasty, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		c.Get(hasty, 7)
		synctest.Wait()
		if !stopped || len(m.Keys()) != 0 {
			t.Errorf("stopped %v, Redis holds %q", stopped, m.Keys())
		}
	})
}

func TestALoaderThatPanicsOrExits(t *testing.T) {
	for name, c := range map[string]struct {
		load func()
		want string
	}{
		"panic":  {func() { panic("oops") }, "panic: oops"},
		"Goexit": {runtime.Goexit, "Goexit"},
	} {
		synctest.Test(t, func(t *testing.T) {
			rdb, m := mini(t)
			first := true
			cache := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, key int) (user, error) {
				if first {
					first = false
					time.Sleep(100 * time.Millisecond)
					c.load()
				}
				return user{"u", 2}, nil
			}, cacheaside.Options{}))
			var wg sync.WaitGroup
			for range 10 {
				wg.Go(func() {
					_, err := cache.Get(t.Context(), 7)
					if err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("%s: got error %v", name, err)
					}
					var p *cacheaside.PanicError
					if errors.As(err, &p) != (name == "panic") {
						t.Errorf("%s: is it a PanicError? %v", name, err)
					}
				})
			}
			wg.Wait()
			if len(m.Keys()) != 0 {
				t.Errorf("%s: Redis holds %q", name, m.Keys())
			}
			if u, err := cache.Get(t.Context(), 7); u.Version != 2 || err != nil {
				t.Errorf("%s: the key is stuck: %+v, %v", name, u, err)
			}
		})
	}
}

func TestALoaderPastItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		release := make(chan struct{})
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, key int) (user, error) {
			<-release // heeds nothing
			return user{}, nil
		}, cacheaside.Options{Load: cacheaside.Load{Timeout: 3 * time.Second}}))
		begun := time.Now()
		_, err := c.Get(t.Context(), 7)
		if took := time.Since(begun); !errors.Is(err, cacheaside.ErrLoadTimeout) || took > 3200*time.Millisecond {
			t.Errorf("got error %v after %v", err, took)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close while a loader hangs: %v", err)
		}
		close(release)
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// The order that would serve an older value after Delete:
//
//  1. a Get begins a load, which reads version 1
//  2. the database changes to version 2, Delete returns
//  3. a second Get begins; were it to join the first load, it would see version 1
func TestAGetAfterDeleteNeverSeesAnOlderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func(c *cacheaside.Cache[int, user]) error{
			"Delete": func(c *cacheaside.Cache[int, user]) error { return c.Delete(t.Context(), 7) },
			"Clear":  func(c *cacheaside.Cache[int, user]) error { return c.Clear(t.Context()) },
			"Set":    func(c *cacheaside.Cache[int, user]) error { return c.Set(t.Context(), 7, user{"set", 2}) },
		} {
			rdb, _ := mini(t)
			var version atomic.Int32
			version.Store(1)
			var events seen
			ns := namespace(t, rdb)
			ns.Observer = &events
			c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
				read := int(version.Load())
				time.Sleep(time.Second)
				return user{"u", read}, nil
			}, cacheaside.Options{}))
			var wg sync.WaitGroup
			wg.Go(func() {
				if u, _ := c.Get(t.Context(), 7); u.Version != 1 {
					t.Errorf("%s: the first Get: %+v", name, u)
				}
			})
			time.Sleep(500 * time.Millisecond)
			version.Store(2)
			if err := change(c); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if u, err := c.Get(t.Context(), 7); u.Version != 2 || err != nil {
					t.Errorf("%s: a Get that began later: %+v, %v", name, u, err)
				}
			}
			wg.Wait()
			if u, _ := c.Get(t.Context(), 7); u.Version != 2 {
				t.Errorf("%s: stored is %+v", name, u)
			}
			if n := events.count(mayfly.Fill, mayfly.Refused); n != 1 {
				t.Errorf("%s: %d fills refused", name, n)
			}
		}
	})
}

func TestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		version := 1 // as the lagging replica has it
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			return user{"u", version}, nil
		}, cacheaside.Options{Hold: 5 * time.Second}))
		c.Get(t.Context(), 7)
		c.Delete(t.Context(), 7)
		if u, _ := c.Get(t.Context(), 7); u.Version != 1 {
			t.Errorf("got %+v", u)
		}
		version = 2 // the replica has caught up
		if u, _ := c.Get(t.Context(), 7); u.Version != 2 {
			t.Errorf("what was loaded from the lagging replica was stored: %+v", u)
		}
		time.Sleep(5 * time.Second)
		c.Get(t.Context(), 7)
		version = 3
		if u, _ := c.Get(t.Context(), 7); u.Version != 2 {
			t.Errorf("after Hold nothing is stored: %+v", u)
		}
	})
}

func TestGetMany(t *testing.T) {
	everywhere(t, func(t *testing.T, rdb redis.UniversalClient) {
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
		}, cacheaside.Options{MissTTL: time.Minute, Faults: patient}))
		check := func(keys, want []int, failed ...int) {
			t.Helper()
			got, err := c.GetMany(ctx, keys)
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(got)), cmp.Transformer("nil", func(s []int) []int { return append([]int{}, s...) })); diff != "" {
				t.Error(diff)
			}
			for key, u := range got {
				if u.Version != key {
					t.Errorf("%d is %+v", key, u)
				}
			}
			var many *cacheaside.ManyError[int]
			if errors.As(err, &many) {
				if diff := cmp.Diff(failed, slices.Sorted(maps.Keys(many.Errs))); diff != "" || !errors.Is(err, broken) {
					t.Error(diff, err)
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
		if diff := cmp.Diff([][]int{{1, 2, 3}, {4, 500}, {5, 2000}}, calls); diff != "" {
			t.Error(diff)
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
	})
}

func TestWarm(t *testing.T) {
	everywhere(t, func(t *testing.T, rdb redis.UniversalClient) {
		var loads atomic.Int32
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(_ context.Context, key int) (user, error) {
			loads.Add(1)
			if key == 13 {
				return user{}, errors.New("unlucky")
			}
			return user{Version: key}, nil
		}, cacheaside.Options{Faults: patient}))
		var last cacheaside.Progress
		steps := 0
		err := c.Warm(t.Context(), func(yield func(int) bool) {
			for i := range 250 {
				if !yield(i) {
					return
				}
			}
		}, func(p cacheaside.Progress) { last = p; steps++ })
		if err == nil || !strings.Contains(err.Error(), "unlucky") || last != (cacheaside.Progress{Keys: 250, Failed: 1}) || steps != 3 {
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
	})
}

// Two calls about overlapping keys, in two processes and in one: each loads what it claimed before it waits.
func TestCrossingBatchesDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		loaded := map[int]int{}
		var mu sync.Mutex
		load := func(_ context.Context, keys []int) (map[int]user, error) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			found := map[int]user{}
			for _, key := range keys {
				loaded[key]++
				found[key] = user{Version: key}
			}
			return found, nil
		}
		a := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), load, cacheaside.Options{}))
		b := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), load, cacheaside.Options{}))
		begun := time.Now()
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
		if diff := cmp.Diff(map[int]int{1: 1, 2: 1, 3: 1}, loaded); diff != "" {
			t.Error(diff)
		}
		if took := time.Since(begun); took > 1500*time.Millisecond {
			t.Errorf("all after %v: somebody waited before it loaded", took)
		}
	})
}

func TestNewEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, m := mini(t)
		ns := namespace(t, rdb)
		var answer cacheaside.Loaded[user]
		var shown *cacheaside.Entry[user]
		c := must[int, user](t)(cacheaside.NewEntry(ns, func(_ context.Context, key int, previous *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
			shown = previous
			return answer, nil
		}, cacheaside.Options{Stale: cacheaside.Stale{While: time.Minute}}))
		ctx := t.Context()

		answer = cacheaside.Loaded[user]{Value: user{Version: 1}, TTL: 10 * time.Second}
		c.Get(ctx, 7)
		if e, ok, _ := c.Lookup(ctx, 7); !ok || e.Fresh != 10*time.Second || e.TTL != 70*time.Second || shown != nil {
			t.Errorf("its own TTL: %+v, shown %v", e, shown)
		}
		time.Sleep(20 * time.Second) // stale
		answer = cacheaside.Loaded[user]{NotModified: true}
		if u, _ := c.Get(ctx, 7); u.Version != 1 {
			t.Errorf("stale: %+v", u)
		}
		synctest.Wait()
		if e, _, _ := c.Lookup(ctx, 7); shown == nil || shown.Value.Version != 1 || shown.Age != 20*time.Second || e.Value.Version != 1 || e.Fresh != time.Minute {
			t.Errorf("not modified: stored %+v, shown %+v", e, shown)
		}
		answer = cacheaside.Loaded[user]{Value: user{Version: 3}, NoStore: true}
		if u, err := c.Get(ctx, 8); u.Version != 3 || err != nil || m.Exists(ns.Prefix+"8") {
			t.Errorf("do not keep: %+v, %v, stored %v", u, err, m.Exists(ns.Prefix+"8"))
		}
		for _, bad := range []cacheaside.Loaded[user]{{NotModified: true}, {TTL: -time.Second}, {TTL: time.Microsecond}, {TTL: 1 << 62}} {
			answer = bad
			if _, err := c.Get(ctx, 9); err == nil || m.Exists(ns.Prefix+"9") {
				t.Errorf("%+v: got error %v, stored %v", bad, err, m.Exists(ns.Prefix+"9"))
			}
		}
	})
}

func TestFetch(t *testing.T) {
	rdb, _ := mini(t)
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
		return user{}, errors.New("not this one")
	}, cacheaside.Options{}))
	for range 2 {
		u, err := c.Fetch(t.Context(), 7, func(context.Context) (user, error) { return user{"fetched", 1}, nil })
		if u.Name != "fetched" || err != nil {
			t.Errorf("got %+v, %v", u, err)
		}
	}
}

func TestEarlyRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		var loads, running, most atomic.Int32
		load := func(context.Context, int) (user, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(100 * time.Millisecond)
			return user{Version: int(loads.Add(1))}, nil
		}
		ns := namespace(t, rdb)
		a := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{Early: earlyrefresh.Window(0.2)}))
		b := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{Early: earlyrefresh.Window(0.2)}))
		a.Get(t.Context(), 7)
		worst := time.Duration(0)
		for end := time.Now().Add(480 * time.Second); time.Now().Before(end); time.Sleep(120 * time.Millisecond) {
			for _, c := range []*cacheaside.Cache[int, user]{a, b} {
				begun := time.Now()
				if _, err := c.Get(t.Context(), 7); err != nil {
					t.Fatal(err)
				}
				worst = max(worst, time.Since(begun))
			}
		}
		if n := loads.Load(); n != 10 { // the first, and one each 48 seconds
			t.Errorf("%d loads", n)
		}
		if most.Load() != 1 || worst > 10*time.Millisecond {
			t.Errorf("%d loads at once, and a reader waited %v", most.Load(), worst)
		}
	})
}

// A renewal that begins in time and is not done when the value ends goes on as the load that all wait for.
func TestAValueEndsWhileItIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		var loads, running, most atomic.Int32
		load := func(context.Context, int) (user, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			n := int(loads.Add(1))
			if n > 1 {
				time.Sleep(15 * time.Second)
			}
			return user{Version: n}, nil
		}
		o := cacheaside.Options{Early: earlyrefresh.Window(0.1), Load: cacheaside.Load{Timeout: time.Minute}}
		a := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, o))
		b := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, o))
		a.Get(t.Context(), 7)
		time.Sleep(55 * time.Second)
		a.Get(t.Context(), 7) // begins the renewal, which ends at 70 s; the value ends at 60 s
		var wg sync.WaitGroup
		for at := range 20 {
			for _, c := range []*cacheaside.Cache[int, user]{a, b} {
				wg.Go(func() {
					time.Sleep(time.Duration(at) * time.Second)
					if u, err := c.Get(t.Context(), 7); u.Version == 0 || err != nil {
						t.Errorf("got %+v, %v", u, err)
					}
				})
			}
		}
		wg.Wait()
		if loads.Load() != 2 || most.Load() != 1 {
			t.Errorf("%d loads, %d at once", loads.Load(), most.Load())
		}
	})
}

func TestStaleWhileRevalidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, m := mini(t)
		var loads atomic.Int32
		down := false
		var events seen
		ns := namespace(t, rdb)
		ns.Observer = &events
		c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			time.Sleep(time.Second)
			n := int(loads.Add(1))
			if down {
				return user{}, errors.New("down")
			}
			return user{Version: n}, nil
		}, cacheaside.Options{Early: earlyrefresh.Never, Stale: cacheaside.Stale{While: 30 * time.Second, Throttle: 5 * time.Second}}))
		ctx := t.Context()
		get := func(want int, source cacheaside.Source) {
			t.Helper()
			begun := time.Now()
			if u, err := c.Get(ctx, 7); u.Version != want || err != nil {
				t.Errorf("got %+v, %v, want version %d", u, err, want)
			}
			if source != cacheaside.SourceOrigin && time.Since(begun) > 10*time.Millisecond {
				t.Errorf("it took %v", time.Since(begun))
			}
		}
		get(1, cacheaside.SourceOrigin)
		if ttl := m.TTL(ns.Prefix + "7"); ttl != 90*time.Second {
			t.Errorf("kept for %v, want TTL and window", ttl)
		}
		time.Sleep(65 * time.Second)
		get(1, cacheaside.SourceStale)
		time.Sleep(2 * time.Second)
		get(2, cacheaside.SourceRedis)

		// The origin is down: stale until the window ends, and one attempt per Throttle.
		down = true
		time.Sleep(60 * time.Second)
		before := loads.Load()
		for range 250 {
			get(2, cacheaside.SourceStale)
			time.Sleep(100 * time.Millisecond)
		}
		if n := loads.Load() - before; n < 3 || n > 6 {
			t.Errorf("%d attempts in 25 s", n)
		}
		time.Sleep(10 * time.Second)
		if _, err := c.Get(ctx, 7); err == nil {
			t.Error("served past its window")
		}
		if events.count(mayfly.Read, mayfly.Stale) != 251 {
			t.Errorf("%d stale reads told", events.count(mayfly.Read, mayfly.Stale))
		}
	})
}

func TestDeleteKillsTheStaleCopyToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		down := false
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			if down {
				return user{}, errors.New("down")
			}
			return user{Version: 1}, nil
		}, cacheaside.Options{Stale: cacheaside.Stale{While: time.Hour, IfError: time.Hour}}))
		c.Get(t.Context(), 7)
		down = true
		c.Delete(t.Context(), 7)
		if u, err := c.Get(t.Context(), 7); err == nil {
			t.Errorf("got %+v", u)
		}
	})
}

func TestStaleIfErrorAndSoftTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		var loads atomic.Int32
		var takes atomic.Int64
		var fails atomic.Bool
		load := func(context.Context, int) (user, error) {
			n := int(loads.Add(1))
			time.Sleep(time.Duration(takes.Load()))
			if fails.Load() {
				return user{}, errors.New("down")
			}
			return user{Version: n}, nil
		}
		o := cacheaside.Options{Early: earlyrefresh.Never, Load: cacheaside.Load{Soft: 200 * time.Millisecond},
			Stale: cacheaside.Stale{IfError: time.Hour, Throttle: 10 * time.Second}}
		a := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, o))
		b := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, o))
		ctx := t.Context()
		get := func(c *cacheaside.Cache[int, user], want int, within time.Duration) {
			t.Helper()
			begun := time.Now()
			if u, err := c.Get(ctx, 7); u.Version != want || err != nil || time.Since(begun) > within {
				t.Errorf("got %+v, %v after %v; want version %d within %v", u, err, time.Since(begun), want, within)
			}
		}
		get(a, 1, 0)

		time.Sleep(61 * time.Second)
		fails.Store(true)
		get(a, 1, 10*time.Millisecond) // the load fails: stale
		get(b, 1, 10*time.Millisecond) // nobody tries again yet
		if loads.Load() != 2 {
			t.Errorf("%d loads", loads.Load())
		}
		time.Sleep(11 * time.Second)
		fails.Store(false)
		takes.Store(int64(time.Second))
		get(a, 1, 200*time.Millisecond) // too slow: stale, and the load goes on
		get(b, 1, 200*time.Millisecond) // the other process loads: too slow as well
		time.Sleep(time.Second)
		get(b, 3, 10*time.Millisecond)
		get(a, 3, 10*time.Millisecond)
		if loads.Load() != 3 {
			t.Errorf("%d loads", loads.Load())
		}
	})
}

func TestTheOriginForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, m := mini(t)
		var gone atomic.Bool
		ns := namespace(t, rdb)
		c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			if gone.Load() {
				return user{}, mayfly.ErrNotFound
			}
			return user{Version: 1}, nil
		}, cacheaside.Options{Stale: cacheaside.Stale{While: time.Hour}}))
		c.Get(t.Context(), 7)
		gone.Store(true)
		time.Sleep(61 * time.Second)
		c.Get(t.Context(), 7)
		synctest.Wait()
		if m.Exists(ns.Prefix + "7") {
			t.Error("the stale copy of what no longer exists is kept")
		}
	})
}

func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb, _ := mini(t)
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, key int) (user, error) {
			time.Sleep(time.Second)
			return user{Version: 1}, nil
		}, cacheaside.Options{}))
		var wg sync.WaitGroup
		wg.Go(func() {
			if u, err := c.Get(t.Context(), 7); u.Version != 1 || err != nil {
				t.Errorf("a load that runs when Close is called: %+v, %v", u, err)
			}
		})
		time.Sleep(100 * time.Millisecond)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("Close again: %v", err)
		}
		_, get := c.Get(t.Context(), 7)
		_, many := c.GetMany(t.Context(), []int{7})
		_, _, lookup := c.Lookup(t.Context(), 7)
		for name, err := range map[string]error{"Get": get, "GetMany": many, "Lookup": lookup, "Set": c.Set(t.Context(), 7, user{}),
			"Delete": c.Delete(t.Context(), 7), "Clear": c.Clear(t.Context())} {
			if !errors.Is(err, mayfly.ErrClosed) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
