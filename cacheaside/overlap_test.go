package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/redistest"
)

// A list whose keys another list of the process is loading is not loaded key by key when what that brings is not for it.
func TestAListThatComesTooLateIsLoadedByOneMoreCall(t *testing.T) {
	const takes = 200 * time.Millisecond
	for _, why := range []string{"deleted", "deleted twice", "NoStore"} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls atomic.Int32
				c := must[int, user](t)(cacheaside.NewBatchEntry(namespace(t, redistest.Start(t).Client()), func(_ context.Context, keys []int, _ map[int]cacheaside.Entry[user]) (map[int]cacheaside.Loaded[user], error) {
					version := int(calls.Add(1))
					time.Sleep(takes)
					got := map[int]cacheaside.Loaded[user]{}
					for _, key := range keys {
						got[key] = cacheaside.Loaded[user]{Value: user{Version: version}, NoStore: why == "NoStore"}
					}
					return got, nil
				}, cacheaside.Options{}))
				var wg sync.WaitGroup
				wg.Go(func() { c.GetMany(t.Context(), hundred()) })
				time.Sleep(80 * time.Millisecond)
				if why != "NoStore" {
					wg.Go(func() {
						time.Sleep(60 * time.Millisecond)
						c.Delete(t.Context(), hundred()...)
						if why == "deleted twice" {
							time.Sleep(150 * time.Millisecond)
							c.Delete(t.Context(), hundred()...)
						}
					})
				}
				begun := time.Now()
				got, err := c.GetMany(t.Context(), hundred())
				if took := time.Since(begun); len(got) != 100 || err != nil || calls.Load() != 2 || took > 2*takes {
					t.Errorf("%d values, %v, after %v and %d calls", len(got), err, took, calls.Load())
				}
				if got[7].Version != 2 {
					t.Errorf("it got what was loaded before: %+v", got[7])
				}
				wg.Wait()
			})
		})
	}
}

// A Get of a key of several lists waits for the loads that run, and so does a short list.
func TestListsThatOverlapHoldUpNoGet(t *testing.T) {
	const takes = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		c := must[int, user](t)(cacheaside.New(namespace(t, redistest.Start(t).Client()), func(_ context.Context, key int) (user, error) {
			time.Sleep(takes)
			return user{Version: key}, nil
		}, cacheaside.Options{LoadLimit: 4, LoadTimeout: time.Second}))
		var lists sync.WaitGroup
		for range 3 {
			lists.Go(func() {
				if got, err := c.GetMany(t.Context(), hundred()); len(got) != 100 || err != nil {
					t.Errorf("a list: %d values, %v", len(got), err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		lists.Go(func() {
			begun := time.Now()
			_, err := c.GetMany(t.Context(), []int{97, 98, 99})
			if took := time.Since(begun); err != nil || took > 3*takes {
				t.Errorf("a short list after %v: %v", took, err)
			}
		})
		time.Sleep(time.Millisecond)
		begun := time.Now()
		_, err := c.Get(t.Context(), 90)
		if took := time.Since(begun); err != nil || took > 2*takes {
			t.Errorf("a Get after %v: %v", took, err)
		}
		lists.Wait()
	})
}

// While Hold lasts nothing may be stored, and a list is still one query.
func TestAListIsOneCallWhileHoldLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls, running atomic.Int32
		var most atomic.Bool
		rdb := redistest.Start(t).Client()
		c := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(_ context.Context, keys []int) (map[int]user, error) {
			calls.Add(1)
			if running.Add(1) > 2 {
				most.Store(true)
			}
			defer running.Add(-1)
			time.Sleep(100 * time.Millisecond)
			got := map[int]user{}
			for _, key := range keys {
				got[key] = user{Version: key}
			}
			return got, nil
		}, cacheaside.Options{Hold: time.Hour, LoadLimit: 4}))
		for held, want := range map[int]int32{100: 1, 50: 2} {
			if err := rdb.FlushDB(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if err := c.Delete(t.Context(), hundred()[:held]...); err != nil {
				t.Fatal(err)
			}
			calls.Store(0)
			begun := time.Now()
			got, err := c.GetMany(t.Context(), hundred())
			if took := time.Since(begun); len(got) != 100 || err != nil || calls.Load() != want || most.Load() || took > 150*time.Millisecond {
				t.Errorf("%d held, more than two at once %v: %d values, %v, after %v and %d calls, want %d", held, most.Load(), len(got), err, took, calls.Load(), want)
			}
		}
	})
}

// A list that cannot be stored waits for the load of its keys that was given up and goes on, as a Get does.
func TestAListWaitsForAnOverdueLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running [100]atomic.Int32
		var calls atomic.Int32
		c := must[int, user](t)(cacheaside.NewBatch(namespace(t, redistest.Start(t).Client()), func(_ context.Context, keys []int) (map[int]user, error) {
			got := map[int]user{}
			for _, key := range keys {
				if running[key].Add(1) > 1 {
					t.Errorf("two loads of %d at once", key)
				}
				defer running[key].Add(-1)
				got[key] = user{Version: key}
			}
			if calls.Add(1) == 1 {
				time.Sleep(1500 * time.Millisecond) // whatever its context says
			}
			return got, nil
		}, cacheaside.Options{Hold: time.Hour, LoadTimeout: time.Second}))
		if err := c.Delete(t.Context(), hundred()...); err != nil {
			t.Fatal(err)
		}
		if got, err := c.GetMany(t.Context(), hundred()[:50]); len(got) != 0 || !errors.Is(err, mayfly.ErrLoadTimeout) {
			t.Errorf("%d values, %v", len(got), err)
		}
		begun := time.Now()
		got, err := c.GetMany(t.Context(), hundred())
		if took := time.Since(begun); len(got) != 100 || err != nil || calls.Load() != 3 || took > 600*time.Millisecond {
			t.Errorf("%d values, %v, after %v and %d calls", len(got), err, took, calls.Load())
		}
	})
}

// A list that another process is loading is waited for together, and loaded by one call if that brings nothing, for whatever reason.
func TestAListThatAnotherProcessLoads(t *testing.T) {
	const takes = 500 * time.Millisecond
	for how, want := range map[string]struct {
		calls int32
		took  time.Duration
	}{"stored": {0, takes + 200*time.Millisecond}, "deleted": {1, 2 * takes}, "deleted, plain": {1, 2 * takes}, "flushed": {1, 2 * takes}, "closed": {1, 2 * takes}, "NoStore": {1, 2*takes + 200*time.Millisecond},
		"killed": {1, 2*takes + time.Second}, "fails": {0, takes + 200*time.Millisecond}, "one key deleted": {1, 2 * takes}} {
		for _, batch := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, batch %v", how, batch), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					open := func(calls *atomic.Int32) *cacheaside.Cache[int, user] {
						ns := namespace(t, srv.Client())
						ns.Plain = how == "deleted, plain"
						one := func(ctx context.Context, key int, _ *cacheaside.Entry[user]) (cacheaside.Loaded[user], error) {
							select {
							case <-time.After(takes):
							case <-ctx.Done():
								return cacheaside.Loaded[user]{}, ctx.Err()
							}
							if how == "fails" {
								return cacheaside.Loaded[user]{}, errors.New("down")
							}
							return cacheaside.Loaded[user]{Value: user{Version: key}, NoStore: how == "NoStore"}, nil
						}
						if !batch {
							return must[int, user](t)(cacheaside.NewEntry(ns, one, cacheaside.Options{LoadLimit: -1}))
						}
						return must[int, user](t)(cacheaside.NewBatchEntry(ns, func(ctx context.Context, keys []int, _ map[int]cacheaside.Entry[user]) (map[int]cacheaside.Loaded[user], error) {
							calls.Add(1)
							got := map[int]cacheaside.Loaded[user]{}
							l, err := one(ctx, 0, nil)
							for _, key := range keys {
								if l.Value.Version = key; err == nil {
									got[key] = l
								}
							}
							return got, err
						}, cacheaside.Options{}))
					}
					var theirs, ours atomic.Int32
					a, b := open(&theirs), open(&ours)
					keys := hundred()[:30] // which a loader of single keys is asked for at once
					var wg sync.WaitGroup
					wg.Go(func() { a.GetMany(t.Context(), keys) })
					time.Sleep(100 * time.Millisecond)
					wg.Go(func() {
						time.Sleep(50 * time.Millisecond)
						switch how {
						case "deleted", "deleted, plain":
							b.Delete(t.Context(), keys...)
						case "one key deleted":
							b.Delete(t.Context(), 7)
						case "flushed":
							srv.Client().FlushAll(t.Context())
						case "closed":
							now, cancel := context.WithCancel(t.Context())
							cancel()
							a.Close(now)
						case "killed": // as if: its leases end
							for _, key := range keys {
								srv.Client().PExpire(t.Context(), namespace(t, nil).Prefix+fmt.Sprint(key), time.Millisecond)
							}
						}
					})
					begun := time.Now()
					got, err := b.GetMany(t.Context(), keys)
					took := time.Since(begun)
					if how == "fails" {
						if !errors.Is(err, mayfly.ErrFailedElsewhere) || took > want.took {
							t.Errorf("%v after %v", err, took)
						}
					} else if len(got) != 30 || err != nil || took > want.took || got[29].Version != 29 {
						t.Errorf("%d values, %v, after %v", len(got), err, took)
					}
					if batch && ours.Load() != want.calls {
						t.Errorf("%d calls, want %d", ours.Load(), want.calls)
					}
					wg.Wait()
				})
			})
		}
	}
}

// A list that progresses by what others store goes on, however long it waits for its turns.
func TestAListThatOthersLoadGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := cacheaside.Options{Origin: mayfly.Must(mayfly.NewOrigin(mayfly.OriginOptions{Limit: 1})), LoadTimeout: time.Second}
		ns := namespace(t, srv.Client())
		ns.Prefix = "busy:"
		busy := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			time.Sleep(300 * time.Millisecond)
			return user{}, nil
		}, o))
		c := must[int, user](t)(cacheaside.New(namespace(t, srv.Client()), func(_ context.Context, key int) (user, error) {
			return user{}, errors.New("it was asked")
		}, o))
		var wg sync.WaitGroup
		for i := range 2 { // one of them stands in the queue when the other is done
			wg.Go(func() {
				for key := range 10 {
					busy.Get(t.Context(), 10*i+key)
				}
			})
		}
		synctest.Wait()
		wg.Go(func() {
			if got, err := c.GetMany(t.Context(), []int{1, 2, 3, 4, 5}); len(got) != 5 || err != nil {
				t.Errorf("%d values, %v", len(got), err)
			}
		})
		synctest.Wait()
		other := must[int, user](t)(cacheaside.New(namespace(t, srv.Client()), func(context.Context, int) (user, error) { return user{}, nil }, cacheaside.Options{}))
		for key := range 6 {
			if err := other.Set(t.Context(), key, user{}); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
	})
}

// A loader of single keys works through a list that cannot be stored as through another.
func TestAListThatCannotBeStoredIsWorkedThrough(t *testing.T) {
	for _, why := range []string{"Hold", "Redis hangs"} {
		t.Run(why, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				c := must[int, user](t)(cacheaside.New(namespace(t, srv.Client()), func(_ context.Context, key int) (user, error) {
					time.Sleep(100 * time.Millisecond)
					return user{Version: key}, nil
				}, cacheaside.Options{Hold: time.Hour, LoadLimit: 4, LoadTimeout: time.Second}))
				if why == "Hold" {
					if err := c.Delete(t.Context(), hundred()...); err != nil {
						t.Fatal(err)
					}
				} else {
					srv.Hang()
				}
				var wg sync.WaitGroup
				wg.Go(func() {
					if got, err := c.GetMany(t.Context(), hundred()); len(got) != 100 || err != nil {
						t.Errorf("%d values, %v", len(got), err)
					}
				})
				time.Sleep(500 * time.Millisecond)
				begun := time.Now()
				if _, err := c.Get(t.Context(), 99); err != nil || time.Since(begun) > 500*time.Millisecond {
					t.Errorf("a Get meanwhile: %v after %v", err, time.Since(begun))
				}
				wg.Wait()
				srv.Thaw()
			})
		})
	}
}
