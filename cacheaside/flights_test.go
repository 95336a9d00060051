package cacheaside_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

// Two caches are like two processes: they share nothing but Redis.
func oneLoadForAll(t *testing.T, rdb redis.UniversalClient) {
	var loads, asking atomic.Int32
	load := func(context.Context, int) (user, error) {
		loads.Add(1)
		for end := time.After(400 * time.Millisecond); ; { // more than a beat of the heart, which keeps the lease
			select {
			case <-end:
				if asking.Load() == 64 {
					return user{"u", 1}, nil
				}
				end = time.After(10 * time.Millisecond)
			case <-t.Context().Done():
				return user{}, t.Context().Err()
			}
		}
	}
	a := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, cacheaside.Options{RedisTimeout: patient}))
	b := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, cacheaside.Options{RedisTimeout: patient}))
	crowd(t, func() { asking.Add(1) }, a, b)
	if n := loads.Load(); n != 1 {
		t.Errorf("%d loads", n)
	}
}

// crowd lets 64 callers get key 7 at once, from the caches in turn, each after calling asking.
func crowd(t *testing.T, asking func(), caches ...*cacheaside.Cache[int, user]) {
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			asking()
			if u, err := caches[i%len(caches)].Get(t.Context(), 7); u.Version != 1 || err != nil {
				t.Errorf("got %+v, %v", u, err)
			}
		})
	}
	wg.Wait()
}

func TestWaitersHaveItSoonAfterTheLoad(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var loads atomic.Int32
		load := func(context.Context, int) (user, error) {
			loads.Add(1)
			time.Sleep(5 * time.Second) // five leases
			return user{"u", 1}, nil
		}
		a := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, cacheaside.Options{}))
		b := must[int, user](t)(cacheaside.New(namespace(t, rdb), load, cacheaside.Options{}))
		begun := time.Now()
		crowd(t, func() {}, a, b)
		if took := time.Since(begun); took > 5200*time.Millisecond || loads.Load() != 1 {
			t.Errorf("the last had it after %v, %d loads", took, loads.Load())
		}
		synctest.Wait()
	})
}

func whoLeavesDisturbsNobody(t *testing.T, rdb redis.UniversalClient) {
	type trace struct{}
	var loads atomic.Int32
	loading, goOn := make(chan struct{}), make(chan struct{})
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(ctx context.Context, _ int) (user, error) {
		loads.Add(1)
		if ctx.Value(trace{}) != "of the first" {
			t.Error("the loader does not see the values of the first caller's context")
		}
		loading <- struct{}{}
		select {
		case <-ctx.Done():
			return user{}, ctx.Err()
		case goOn <- struct{}{}:
			return user{"u", 1}, nil
		}
	}, cacheaside.Options{RedisTimeout: patient}))
	hasty := func(key int) (leave func()) {
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), trace{}, "of the first"))
		left := make(chan struct{})
		go func() {
			defer close(left)
			if _, err := c.Get(ctx, key); !errors.Is(err, context.Canceled) {
				t.Errorf("the hasty one: %v", err)
			}
		}()
		<-loading
		return func() { cancel(); <-left }
	}
	leave := hasty(7) // leads the load
	got := make(chan error, 1)
	go func() {
		u, err := c.Get(t.Context(), 7) // follows
		if err == nil && u.Name != "u" {
			err = errors.New("got " + u.Name)
		}
		got <- err
	}()
	leave()
	<-goOn
	if err := <-got; err != nil {
		t.Errorf("the patient one: %v", err)
	}

	hasty(8)() // all have left, and the load still warms the cache
	<-goOn
	expect.Eventually(t, "it is stored", func() bool { _, ok, _ := c.Lookup(t.Context(), 8); return ok })
	if loads.Load() != 2 {
		t.Errorf("%d loads", loads.Load())
	}
}

func aLoadThatNobodyWantsAnyMore(t *testing.T, rdb redis.UniversalClient) {
	var stopped atomic.Bool
	loading := make(chan struct{}, 1)
	ns := namespace(t, rdb)
	c := must[int, user](t)(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
		loading <- struct{}{}
		<-ctx.Done()
		stopped.Store(true)
		return user{}, ctx.Err()
	}, cacheaside.Options{LoadAbandon: true, RedisTimeout: patient}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-loading; cancel() }()
	if _, err := c.Get(ctx, 7); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	expect.Eventually(t, "the load stops and the lease is given back", func() bool { return stopped.Load() && !stored(t, rdb, ns.Prefix+"7") })
}

func aLoaderThatPanicsOrExits(t *testing.T, rdb redis.UniversalClient) {
	for key, x := range []struct {
		end  func()
		want string
	}{{func() { panic("oops") }, "panic: oops"}, {runtime.Goexit, "Goexit"}} {
		ns := namespace(t, rdb)
		var asking, loads atomic.Int32
		c := must[int, user](t)(cacheaside.New(ns, func(context.Context, int) (user, error) {
			if loads.Add(1) == 1 {
				expect.Eventually(t, "all ask", func() bool { return asking.Load() == 10 })
				x.end()
			}
			return user{"u", 2}, nil
		}, cacheaside.Options{RedisTimeout: patient}))
		var failed atomic.Int32
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				asking.Add(1)
				_, err := c.Get(t.Context(), key)
				if err == nil { // came after the failure
					return
				}
				if strings.Contains(err.Error(), x.want) && errors.Is(err, mayfly.ErrFailedElsewhere) { // see TestAFailureThatIsToldByRedis
					return
				}
				failed.Add(1)
				var p *mayfly.PanicError
				if !strings.Contains(err.Error(), x.want) || errors.As(err, &p) != (x.want != "Goexit") {
					t.Errorf("%s: got error %v", x.want, err)
				}
			})
		}
		wg.Wait()
		if failed.Load() == 0 {
			t.Errorf("%s: nobody was told", x.want)
		}
		if u, err := c.Get(t.Context(), key); u.Version != 2 || err != nil {
			t.Errorf("%s: the key is stuck: %+v, %v", x.want, u, err)
		}
	}
}

// A call that finds a load under way, and comes to join it only after it failed, learns of the failure from Redis, although the load was of its
// own process.
func TestAFailureThatIsToldByRedis(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		fail, late := make(chan struct{}), lateGets{goOn: make(chan struct{})}
		rdb.AddHook(&late)
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			<-fail
			panic("oops")
		}, cacheaside.Options{RedisTimeout: patient}))
		get := func() <-chan error {
			got := make(chan error, 1)
			go func() { _, err := c.Get(t.Context(), 7); got <- err }()
			synctest.Wait()
			return got
		}
		first := get()
		late.on.Store(true)
		second := get() // its reply, the lease of the first, is under way until that has failed
		late.on.Store(false)
		close(fail)
		var panicked *mayfly.PanicError
		if err := <-first; !errors.As(err, &panicked) {
			t.Errorf("the call whose load it is: %v", err)
		}
		synctest.Wait()
		close(late.goOn)
		if err := <-second; !errors.Is(err, mayfly.ErrFailedElsewhere) || !strings.Contains(err.Error(), "oops") || strings.Contains(err.Error(), "process") {
			t.Errorf("the call that came too late: %v", err)
		}
	})
}

// lateGets holds the replies to GETs back while it is on, until goOn is closed.
type lateGets struct {
	on   atomic.Bool
	goOn chan struct{}
}

func (l *lateGets) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *lateGets) hold(cmd redis.Cmder, ask func() error) error {
	held := cmd.Name() == "get" && l.on.Load()
	err := ask()
	if held {
		<-l.goOn
	}
	return err
}

func (l *lateGets) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return l.hold(cmd, func() error { return next(ctx, cmd) })
	}
}

func (l *lateGets) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return l.hold(cmds[0], func() error { return next(ctx, cmds) })
	}
}

func TestALoaderPastItsTimeout(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		release := make(chan struct{})
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
			<-release // ignores its context
			return user{}, nil
		}, cacheaside.Options{LoadTimeout: 3 * time.Second}))
		begun := time.Now()
		_, err := c.Get(t.Context(), 7)
		if took := time.Since(begun); !errors.Is(err, mayfly.ErrLoadTimeout) || took > 3200*time.Millisecond {
			t.Errorf("got error %v after %v", err, took)
		}
		time.Sleep(10 * time.Second)
		if !stored(t, rdb, namespace(t, rdb).Prefix+"7") {
			t.Error("others may load beside a load that still runs")
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

// running counts the goroutines of caches.
func running() (n int) {
	for _, name := range []string{"cacheaside.(*", "internal/client/lease.(*", "internal/client/flight."} {
		n += len(processes.Stacks("mayfly/" + name))
	}
	return n
}

func closeWaits(t *testing.T, rdb redis.UniversalClient) {
	before := running()
	loading := make(chan struct{}, 2)
	c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) {
		loading <- struct{}{}
		<-time.After(50 * time.Millisecond)
		return user{Version: 1}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	var wg sync.WaitGroup
	for key := range 2 {
		wg.Go(func() {
			if u, err := c.Get(t.Context(), key); u.Version != 1 || err != nil {
				t.Errorf("a load that runs when Close is called: %+v, %v", u, err)
			}
		})
		<-loading
	}
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	expect.Eventually(t, "goroutines are as before", func() bool { return running() <= before })
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("Close again: %v", err)
	}
	_, get := c.Get(t.Context(), 7)
	_, many := c.GetMany(t.Context(), []int{7})
	_, fetch := c.Fetch(t.Context(), 7, func(context.Context) (user, error) { return user{}, nil })
	_, _, lookup := c.Lookup(t.Context(), 7)
	for name, err := range map[string]error{"Get": get, "GetMany": many, "Fetch": fetch, "Lookup": lookup, "Set": c.Set(t.Context(), 7, user{}),
		"Delete": c.Delete(t.Context(), 7), "Clear": c.Clear(t.Context()),
		"Warm": c.Warm(t.Context(), func(yield func(int) bool) { yield(7) }, nil)} {
		if !errors.Is(err, mayfly.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
