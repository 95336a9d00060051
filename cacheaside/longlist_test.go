package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// hundred returns more keys than one round of loads can load.
func hundred() (keys []int) {
	for i := range 100 {
		keys = append(keys, i)
	}
	return keys
}

// A caller that gets one key of another's long list waits for the running loads, and not for the list. If the database hangs, nobody waits for
// longer than a load may take.
func TestALongListHoldsUpNobody(t *testing.T) {
	for _, limit := range []int{0, 4, -1} {
		for _, takes := range []time.Duration{time.Second, time.Hour} {
			t.Run(fmt.Sprintf("LoadLimit %d, loads of %v", limit, takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := must[int, user](t)(cacheaside.New(namespace(t, redistest.Start(t).Client()), func(ctx context.Context, key int) (user, error) {
						select {
						case <-time.After(takes):
							return user{Version: key}, nil
						case <-ctx.Done():
							return user{}, ctx.Err()
						}
					}, cacheaside.Options{LoadTimeout: 2 * time.Second, LoadLimit: limit}))
					listed := make(chan error)
					go func() {
						got, err := c.GetMany(t.Context(), hundred())
						if err == nil && len(got) != 100 {
							err = fmt.Errorf("%d values", len(got))
						}
						listed <- err
					}()
					time.Sleep(10 * time.Millisecond)
					begun := time.Now()
					u, err := c.Get(t.Context(), 99)
					took := time.Since(begun)
					begun = time.Now()
					many := <-listed
					if takes == time.Second {
						if err != nil || u.Version != 99 || took > 2*takes || many != nil {
							t.Errorf("%v after %v; the list: %v", err, took, many)
						}
					} else if err == nil || took > 2*time.Second || many == nil || time.Since(begun) > 2*time.Second {
						t.Errorf("%v after %v; the list %v after it: %v", err, took, time.Since(begun), many)
					}
					if takes == time.Hour && !errors.Is(many, mayfly.ErrLoadTimeout) {
						t.Errorf("the list: %v", many)
					}
				})
			})
		}
	}
}

// Processes that renew the same keys load each key once, however long that takes.
func TestALongListIsRenewedOnce(t *testing.T) {
	for _, limit := range []int{0, 4, -1}[:effort.Times(2, 3)] {
		for _, batch := range []bool{false, true} {
			t.Run(fmt.Sprintf("LoadLimit %d, batch %v", limit, batch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					var mu sync.Mutex
					loads, running := map[int]int{}, map[int]bool{}
					load := func(_ context.Context, keys []int) (map[int]user, error) {
						mu.Lock()
						for _, key := range keys {
							if loads[key]++; running[key] {
								t.Errorf("two loads of %d at once", key)
							}
							running[key] = true
						}
						mu.Unlock()
						time.Sleep(2 * time.Second)
						mu.Lock()
						defer mu.Unlock()
						got := map[int]user{}
						for _, key := range keys {
							running[key], got[key] = false, user{Version: key}
						}
						return got, nil
					}
					var all []*cacheaside.Cache[int, user]
					for range 3 {
						ns := namespace(t, srv.Client())
						ns.TTL = time.Minute
						o := cacheaside.Options{StaleIfError: time.Hour, LoadLimit: limit, Early: earlyrefresh.Never}
						if batch {
							all = append(all, must[int, user](t)(cacheaside.NewBatch(ns, load, o)))
							continue
						}
						all = append(all, must[int, user](t)(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
							got, err := load(ctx, []int{key})
							return got[key], err
						}, o)))
					}
					for _, key := range hundred() {
						if err := all[0].Set(t.Context(), key, user{Version: key}); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(70 * time.Second) // stale, whatever the jitter
					var wg sync.WaitGroup
					for i, c := range all {
						keys := hundred()
						rand.New(rand.NewPCG(uint64(i), 1)).Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
						wg.Go(func() {
							if got, err := c.GetMany(t.Context(), keys); len(got) != 100 || err != nil {
								t.Errorf("%d values, %v", len(got), err)
							}
						})
					}
					wg.Wait()
					n := 0
					for _, l := range loads {
						n += l
					}
					if n != 100 {
						t.Errorf("%d loads of 100 keys", n)
					}
				})
			})
		}
	}
}

// A value that another process renewed while a renewal was queued is not renewed again, for single keys and for lists.
func TestAValueRenewedMeanwhileIsNotRenewedAgain(t *testing.T) {
	for _, way := range []string{"Get", "GetMany", "GetMany of a batch loader"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				var loads atomic.Int32 // of key 1
				open := func() *cacheaside.Cache[int, user] {
					ns, o := namespace(t, srv.Client()), cacheaside.Options{StaleIfError: time.Hour, LoadLimit: 1, Early: earlyrefresh.Never}
					ns.TTL = time.Minute
					load := func(_ context.Context, key int) (user, error) {
						if key == 1 {
							loads.Add(1)
							return user{Version: 2}, nil
						}
						time.Sleep(3 * time.Second)
						return user{}, nil
					}
					if way != "GetMany of a batch loader" {
						return must[int, user](t)(cacheaside.New(ns, load, o))
					}
					return must[int, user](t)(cacheaside.NewBatch(ns, func(ctx context.Context, keys []int) (map[int]user, error) {
						u, err := load(ctx, keys[0])
						return map[int]user{keys[0]: u}, err
					}, o))
				}
				busy, other := open(), open()
				if err := busy.Set(t.Context(), 1, user{Version: 1}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(70 * time.Second) // stale, whatever the jitter
				var all sync.WaitGroup
				all.Go(func() { busy.Get(t.Context(), 0) })
				synctest.Wait()
				all.Go(func() {
					var u user
					var err error
					if way == "Get" {
						u, err = busy.Get(t.Context(), 1)
					} else {
						var got map[int]user
						got, err = busy.GetMany(t.Context(), []int{1})
						u = got[1]
					}
					if err != nil || u.Version != 2 {
						t.Errorf("%+v, %v", u, err)
					}
				})
				synctest.Wait()
				if u, err := other.Get(t.Context(), 1); err != nil || u.Version != 2 {
					t.Errorf("the other: %+v, %v", u, err)
				}
				if all.Wait(); loads.Load() != 1 {
					t.Errorf("%d loads", loads.Load())
				}
			})
		})
	}
}
