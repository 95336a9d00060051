package cacheaside_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// workbench is a cache of one bubble whose loads take a second.
type workbench struct {
	*cacheaside.Cache[int, user]
	rdb    *redis.Client
	events *expect.Events

	mu            sync.Mutex
	running, most int
	loads         []int // keys
}

// load is the loader: it takes a second, or until ctx ends.
func (w *workbench) load(ctx context.Context, key int) (user, error) {
	w.mu.Lock()
	w.running++
	w.most = max(w.most, w.running)
	w.loads = append(w.loads, key)
	w.mu.Unlock()
	defer func() { w.mu.Lock(); defer w.mu.Unlock(); w.running-- }()
	select {
	case <-time.After(time.Second):
		return user{Version: key}, nil
	case <-ctx.Done():
		return user{}, ctx.Err()
	}
}

// begun is how many loads have begun.
func (w *workbench) begun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.loads)
}

// admitted plays in a bubble with a cache of these options. load nil is the workbench's own.
func admitted(t *testing.T, o cacheaside.Options, load func(w *workbench) func(context.Context, int) (user, error), play func(t *testing.T, w *workbench)) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		ro := srv.Options()
		ro.PoolSize = 1000
		w := &workbench{rdb: redis.NewClient(ro), events: new(expect.Events)}
		defer w.rdb.Close()
		ns := namespace(t, w.rdb)
		ns.TTL, ns.Observer = time.Hour, w.events
		loader := w.load
		if load != nil {
			loader = load(w)
		}
		w.Cache = must[int, user](t)(cacheaside.New(ns, loader, o))
		play(t, w)
	})
}

// results collects the errors of gets that run in the background.
type results struct {
	all  sync.WaitGroup
	mu   sync.Mutex
	errs map[int]error
}

func (r *results) get(ctx context.Context, w *workbench, keys ...int) {
	for _, key := range keys {
		r.all.Go(func() {
			_, err := w.Get(ctx, key)
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.errs == nil {
				r.errs = make(map[int]error)
			}
			r.errs[key] = err
		})
	}
	synctest.Wait()
}

func limit(n int) cacheaside.Options {
	return cacheaside.Options{LoadLimit: n, RedisTimeout: patient}
}

func TestAQueuedLoadIsNotBegunWhenAllItsCallersLeave(t *testing.T) {
	admitted(t, limit(1), nil, func(t *testing.T, w *workbench) {
		var r results
		hasty, cancel := context.WithCancel(t.Context())
		defer cancel()
		r.get(t.Context(), w, 1)
		r.get(hasty, w, 2, 3)
		r.get(t.Context(), w, 3) // one of whose callers stays
		if s := w.Origin().Stats(); s.InFlight != 1 || s.Queued != 2 || s.Limit != 1 {
			t.Errorf("%+v", s)
		}
		cancel()
		synctest.Wait()
		if s := w.Origin().Stats(); s.Queued != 1 {
			t.Errorf("after the callers have left: %+v", s)
		}
		r.all.Wait()
		if got := fmt.Sprint(w.loads); got != "[1 3]" {
			t.Errorf("loaded %v", got)
		}
		if !errors.Is(r.errs[2], context.Canceled) || r.errs[1] != nil || r.errs[3] != nil {
			t.Errorf("%v", r.errs)
		}
		if n := w.events.Count(mayfly.KindAdmission, mayfly.OutcomeDropped); n != 1 {
			t.Errorf("%d dropped are reported", n)
		}
		for _, e := range w.events.All() {
			if e.Kind == mayfly.KindAdmission && e.Outcome == mayfly.OutcomeOK && e.Took != time.Second {
				t.Errorf("told that it waited %v", e.Took)
			}
		}
		r.get(t.Context(), w, 2) // the abandoned key can be loaded
		if r.all.Wait(); r.errs[2] != nil {
			t.Error(r.errs[2])
		}
	})
}

func TestARunningLoadGoesOnWhenItsCallersLeave(t *testing.T) {
	admitted(t, limit(1), nil, func(t *testing.T, w *workbench) {
		var r results
		hasty, cancel := context.WithCancel(t.Context())
		r.get(hasty, w, 1)
		cancel()
		r.all.Wait()
		time.Sleep(2 * time.Second)
		if _, ok, err := w.Lookup(t.Context(), 1); !ok || err != nil {
			t.Errorf("it is not stored: %v", err)
		}
	})
}

func TestNoTurnWithinTheTimeout(t *testing.T) {
	o := limit(1)
	o.LoadTimeout = 3500 * time.Millisecond
	o.StaleIfError = time.Hour
	admitted(t, o, nil, func(t *testing.T, w *workbench) {
		w.Set(t.Context(), 9, user{Version: 9})
		w.rdb.PExpire(t.Context(), t.Name()+":9", 30*time.Minute) // stale
		var r results
		r.get(t.Context(), w, 1, 2, 3, 4, 5, 6, 9)
		r.all.Wait()
		overloaded := 0
		for key, err := range r.errs {
			switch {
			case err == nil:
			case errors.Is(err, mayfly.ErrOverloaded) && key != 9:
				overloaded++
			default:
				t.Errorf("%d: %v", key, err)
			}
		}
		if told := w.events.Count(mayfly.KindAdmission, mayfly.OutcomeTimedOut); overloaded < 2 || overloaded > 3 || told != 3 {
			t.Errorf("%d overloaded, %d told, %d loads", overloaded, told, w.begun())
		}
	})
}

func TestRenewalsOnlyTry(t *testing.T) {
	o := limit(1)
	o.StaleWhile = time.Hour
	admitted(t, o, nil, func(t *testing.T, w *workbench) {
		w.Set(t.Context(), 9, user{Version: 1})
		w.rdb.PExpire(t.Context(), t.Name()+":9", 30*time.Minute)
		var r results
		r.get(t.Context(), w, 1)
		for range 3 {
			if u, err := w.Get(t.Context(), 9); u.Version != 1 || err != nil {
				t.Errorf("%+v, %v", u, err)
			}
		}
		synctest.Wait()
		if keys := w.rdb.DBSize(t.Context()).Val(); keys != 2 || w.begun() != 1 {
			t.Errorf("%d keys, %d loads: a renewal without a permit left something behind", keys, w.begun())
		}
		if n := w.events.Count(mayfly.KindRefresh, mayfly.OutcomeDropped); n != 3 {
			t.Errorf("%d dropped are reported", n)
		}
		r.all.Wait()
		w.Get(t.Context(), 9)
		time.Sleep(2 * time.Second)
		if u, _ := w.Get(t.Context(), 9); u.Version != 9 {
			t.Errorf("it is not renewed when there is room: %+v", u)
		}
	})
}

func TestABatchTakesOnePermitForEachQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := redis.NewClient(srv.Options())
		defer rdb.Close()
		var mu sync.Mutex
		queries, running, most := 0, 0, 0
		c := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(_ context.Context, keys []int) (map[int]user, error) {
			mu.Lock()
			queries, running = queries+1, running+1
			most = max(most, running)
			mu.Unlock()
			time.Sleep(time.Second)
			found := make(map[int]user)
			for _, key := range keys {
				found[key] = user{Version: key}
			}
			mu.Lock()
			running--
			mu.Unlock()
			return found, nil
		}, limit(2)))
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if got, err := c.GetMany(t.Context(), []int{10 * i, 10*i + 1, 10*i + 2}); len(got) != 3 || err != nil {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		all.Wait()
		if s := c.Origin().Stats(); queries != 4 || most != 2 || s.Entered != 4 || s.InFlight != 0 {
			t.Errorf("%d queries, %d at once, %+v", queries, most, s)
		}
	})
}

func TestManyKeysOneByOneKeepToTheLimit(t *testing.T) {
	admitted(t, limit(3), nil, func(t *testing.T, w *workbench) {
		begun := time.Now()
		got, err := w.GetMany(t.Context(), []int{1, 2, 3, 4, 5, 6, 7})
		if took := time.Since(begun); len(got) != 7 || err != nil || w.most != 3 || took != 3*time.Second {
			t.Errorf("%v, %v, %d at once, %v", got, err, w.most, took)
		}
		if s := w.Origin().Stats(); s.InFlight != 0 || s.Queued != 0 {
			t.Errorf("%+v", s)
		}
		hasty, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		before := w.begun()
		w.GetMany(hasty, []int{11, 12, 13, 14, 15, 16, 17})
		time.Sleep(5 * time.Second)
		if n := w.begun() - before; n != 3 {
			t.Errorf("%d loads for a caller who left while three ran", n)
		}
	})
}

// A loader that gets another key holds a permit. It must not wait for a second one, nor for a caller that waits for one.
func TestALoaderThatAsksTheSameOriginDoesNotWaitForItself(t *testing.T) {
	nested := func(w *workbench) func(context.Context, int) (user, error) {
		return func(ctx context.Context, key int) (user, error) {
			if key%10 == 0 {
				return w.load(ctx, key)
			}
			return w.Get(ctx, key-1)
		}
	}
	t.Run("it leads", func(t *testing.T) {
		admitted(t, limit(1), nested, func(t *testing.T, w *workbench) {
			begun := time.Now()
			u, err := w.Get(t.Context(), 5)
			if took := time.Since(begun); u.Version != 0 || err != nil || took != time.Second {
				t.Errorf("%+v, %v, %v", u, err, took)
			}
			if s := w.Origin().Stats(); s.Entered != 1 || s.InFlight != 0 {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("it joins a load in the queue", func(t *testing.T) {
		var gate chan struct{}
		admitted(t, limit(1), func(w *workbench) func(context.Context, int) (user, error) {
			gate = make(chan struct{})
			return func(ctx context.Context, key int) (user, error) {
				if key == 1 {
					<-gate
					return w.Get(ctx, 12)
				}
				if key == 12 {
					return w.Get(ctx, 11) // with a permit of its own, because 1 was in a hurry
				}
				return w.load(ctx, key)
			}
		}, func(t *testing.T, w *workbench) {
			var r results
			begun := time.Now()
			r.get(t.Context(), w, 1)  // holds the permit
			r.get(t.Context(), w, 12) // queues
			r.get(t.Context(), w, 11) // behind it
			close(gate)
			r.all.Wait()
			if took := time.Since(begun); r.errs[1] != nil || r.errs[12] != nil || took != time.Second {
				t.Errorf("%v after %v", r.errs, took)
			}
			if s := w.Origin().Stats(); s.InFlight != 0 || s.Queued != 0 {
				t.Errorf("%+v", s)
			}
		})
	})
}

func TestCachesShareAnOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rdb := redistest.Start(t).Client()
		defer rdb.Close()
		origin := mayfly.Must(mayfly.NewOrigin(mayfly.OriginOptions{Limit: 1}))
		var atOnce most
		var all sync.WaitGroup
		for i := range 3 {
			ns := namespace(t, rdb)
			ns.Prefix = fmt.Sprint(i, ":")
			c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
				atOnce.during(time.Second)
				return user{}, nil
			}, cacheaside.Options{Origin: origin, RedisTimeout: patient}))
			if c.Origin() != origin {
				t.Error("the cache has another origin")
			}
			all.Go(func() { c.Get(t.Context(), 1) })
		}
		all.Wait()
		if atOnce.seen != 1 || origin.Stats().Entered != 3 {
			t.Errorf("%d at once, %+v", atOnce.seen, origin.Stats())
		}
	})
}

// Whatever a loader does, its permit comes back, and the next in the queue gets it.
func TestPermitsComeBack(t *testing.T) {
	for name, bad := range map[string]func(ctx context.Context) error{
		"an error":   func(context.Context) error { return errors.New("down") },
		"a panic":    func(context.Context) error { panic("of the loader") },
		"not found":  func(context.Context) error { return mayfly.ErrNotFound },
		"no end":     func(context.Context) error { time.Sleep(time.Hour); return nil },
		"its ctx":    func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
		"alone, too": nil,
	} {
		t.Run(name, func(t *testing.T) {
			o := limit(1)
			o.LoadTimeout = 3 * time.Second
			admitted(t, o, func(w *workbench) func(context.Context, int) (user, error) {
				return func(ctx context.Context, key int) (user, error) {
					if key == 1 && bad != nil {
						return user{}, bad(ctx)
					}
					return w.load(ctx, key)
				}
			}, func(t *testing.T, w *workbench) {
				var r results
				if bad == nil {
					o := *w.rdb.Options()
					w.rdb.Set(t.Context(), t.Name()+":1", "", time.Minute)
					w.rdb.Del(t.Context(), t.Name()+":1")
					w.rdb.LPush(t.Context(), t.Name()+":1", o.Addr) // of the wrong type: the key can neither be read nor written
				}
				r.get(t.Context(), w, 1)
				time.Sleep(time.Second / 2)
				r.get(t.Context(), w, 2)
				if r.all.Wait(); r.errs[2] != nil {
					t.Errorf("the next: %v", r.errs[2])
				}
				runsOn := 0
				if name == "no end" {
					runsOn = 1
				}
				if s := w.Origin().Stats(); s.InFlight != runsOn || s.Queued != 0 {
					t.Errorf("%+v", s)
				}
				time.Sleep(2 * time.Hour)
				if n := w.Origin().Stats().InFlight; n != 0 {
					t.Errorf("in the end %d are in flight", n)
				}
			})
		})
	}
}

func TestCloseWithAFullQueue(t *testing.T) {
	admitted(t, limit(1), nil, func(t *testing.T, w *workbench) {
		var r results
		r.get(t.Context(), w, 1, 2, 3, 4, 5)
		begun := time.Now()
		if err := w.Close(t.Context()); err != nil {
			t.Error(err)
		}
		r.all.Wait()
		ok := 0
		for key, err := range r.errs {
			switch {
			case err == nil:
				ok++
			case !errors.Is(err, mayfly.ErrClosed):
				t.Errorf("%d: %v", key, err)
			}
		}
		if took := time.Since(begun); ok != 1 || took != time.Second {
			t.Errorf("%d were loaded, Close took %v: want the one that ran, and its second", ok, took)
		}
		if s := w.Origin().Stats(); s.InFlight != 0 || s.Queued != 0 {
			t.Errorf("%+v", s)
		}
	})
}
