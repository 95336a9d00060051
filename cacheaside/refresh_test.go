package cacheaside_test

import (
	"context"
	"sync"
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

// always renews at every hit.
type always struct{}

func (always) Due(time.Duration, time.Duration, time.Duration, float64) bool { return true }

func aRenewalInTheBackground(t *testing.T, rdb redis.UniversalClient) {
	ns := namespace(t, rdb)
	ns.TTL = time.Hour
	var loads atomic.Int32
	loading, goOn := make(chan struct{}, 9), make(chan struct{})
	load := func(ctx context.Context, _ int) (user, error) {
		n := loads.Add(1)
		if loading <- struct{}{}; n == 2 {
			<-goOn
		}
		return user{Version: int(n)}, nil
	}
	early := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{Early: always{}, RedisTimeout: patient}))
	other := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{Early: always{}, RedisTimeout: patient}))
	never := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{Early: earlyrefresh.Never, RedisTimeout: patient}))
	ctx := t.Context()
	early.Get(ctx, 7)
	<-loading
	for range 3 {
		if u, err := early.Get(ctx, 7); u.Version != 1 || err != nil {
			t.Errorf("a Get during the renewal: %+v, %v", u, err)
		}
	}
	<-loading
	for range 3 { // like other processes, which decide as well
		if u, err := other.Get(ctx, 7); u.Version != 1 || err != nil {
			t.Errorf("a Get elsewhere: %+v, %v", u, err)
		}
	}
	close(goOn)
	expect.Eventually(t, "the value is renewed", func() bool { u, _ := never.Get(ctx, 7); return u.Version == 2 })
	if n := loads.Load(); n != 2 {
		t.Errorf("%d loads", n)
	}
}

// Due values beyond RenewLimit wait for a later reader, and an event reports it.
func renewalsAreBounded(t *testing.T, rdb redis.UniversalClient) {
	ns := namespace(t, rdb)
	var events expect.Events
	ns.Observer = &events
	var running, most atomic.Int32
	var renew atomic.Bool
	goOn := make(chan struct{})
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
		if !renew.Load() {
			return user{Version: key}, nil
		}
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer running.Add(-1)
		<-goOn
		return user{Version: key}, nil
	}, cacheaside.Options{RenewLimit: 2, StaleWhile: time.Minute, RedisTimeout: patient}))
	keys := []int{0, 1, 2, 3, 4, 5, 6, 7}
	c.GetMany(t.Context(), keys)
	renew.Store(true)
	for _, key := range keys {
		full, _ := ns.FullKey(key)
		rdb.PExpire(t.Context(), full, 30*time.Second) // stale
	}
	if got, err := c.GetMany(t.Context(), keys); len(got) != len(keys) || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	expect.Eventually(t, "two are renewed", func() bool { return running.Load() == 2 })
	if n := events.Count(mayfly.KindRefresh, mayfly.OutcomeDropped); n != len(keys)-2 {
		t.Errorf("%d renewals dropped", n)
	}
	close(goOn)
	expect.Eventually(t, "they end", func() bool { return events.Count(mayfly.KindRefresh, mayfly.OutcomeOK) == 2 })
	if most.Load() != 2 {
		t.Errorf("%d at once", most.Load())
	}
}

func TestEarlyRefresh(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
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
		for end := time.Now().Add(480 * time.Second); time.Now().Before(end); time.Sleep(300 * time.Millisecond) {
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
		synctest.Wait()
	})
}

// slowAfterTheFirst loads at once the first time, and takes 15 seconds after that.
type slowAfterTheFirst struct{ loads, running, most atomic.Int32 }

func (o *slowAfterTheFirst) load(context.Context, int) (user, error) {
	o.most.Store(max(o.most.Load(), o.running.Add(1)))
	defer o.running.Add(-1)
	n := int(o.loads.Add(1))
	if n > 1 {
		time.Sleep(15 * time.Second)
	}
	return user{Version: n}, nil
}

// A renewal that begins in time and is not done when the value ends goes on as the load for which all wait.
func TestAValueEndsWhileItIsRenewed(t *testing.T) {
	inBubbles(t, func(t *testing.T, rdb *redis.Client) {
		var origin slowAfterTheFirst
		o := cacheaside.Options{Early: earlyrefresh.Window(0.1), LoadTimeout: time.Minute}
		a := must[int, user](t)(cacheaside.New(namespace(t, rdb), origin.load, o))
		b := must[int, user](t)(cacheaside.New(namespace(t, rdb), origin.load, o))
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
		if origin.loads.Load() != 2 || origin.most.Load() != 1 {
			t.Errorf("%d loads, %d at once", origin.loads.Load(), origin.most.Load())
		}
	})
}

// It does so too if Redis or the process stalls just when the value ends, and with a batch loader, and its value is stored.
func TestAValueEndsWhileRedisStandsStill(t *testing.T) {
	for name, batch := range map[string]bool{"one by one": false, "together": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				var origin slowAfterTheFirst
				o := cacheaside.Options{Early: earlyrefresh.Never, StaleIfError: time.Minute, LoadTimeout: time.Minute}
				open := func() *cacheaside.Cache[int, user] {
					rdb := srv.Client()
					if !batch {
						return must[int, user](t)(cacheaside.New(namespace(t, rdb), origin.load, o))
					}
					return must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(ctx context.Context, keys []int) (map[int]user, error) {
						u, err := origin.load(ctx, keys[0])
						return map[int]user{keys[0]: u}, err
					}, o))
				}
				a, b := open(), open()
				a.Get(t.Context(), 7)
				time.Sleep(110 * time.Second) // the value serves only if a load fails, and ends in ten seconds
				var wg sync.WaitGroup
				wg.Go(func() { a.GetMany(t.Context(), []int{7}) })
				time.Sleep(9900 * time.Millisecond)
				srv.Hang()
				time.Sleep(130 * time.Millisecond)
				srv.Thaw()
				for range 20 {
					wg.Go(func() {
						if u, err := b.Get(t.Context(), 7); u.Version != 2 || err != nil {
							t.Errorf("got %+v, %v", u, err)
						}
					})
					time.Sleep(100 * time.Millisecond)
				}
				wg.Wait()
				if _, ok, _ := b.Lookup(t.Context(), 7); !ok || origin.loads.Load() != 2 || origin.most.Load() != 1 {
					t.Errorf("%d loads, %d at once, stored %v", origin.loads.Load(), origin.most.Load(), ok)
				}
			})
		})
	}
}

// A deploy that changes the codec: every process finds bytes it cannot use, and each key is loaded once by all of them.
func aDeployCostsOneLoadPerKey(t *testing.T, rdb redis.UniversalClient) {
	const keys, processes = 20, 6
	var loads atomic.Int32
	load := func(_ context.Context, key int) (user, error) {
		loads.Add(1)
		<-time.After(5 * time.Millisecond)
		return user{Version: key}, nil
	}
	ns := namespace(t, rdb)
	o := cacheaside.Options{Early: earlyrefresh.Never, RedisTimeout: patient}
	before := must[int, user](t)(cacheaside.New(ns, load, o))
	for key := range keys {
		before.Get(t.Context(), key)
	}
	loads.Store(0)
	ns.Codec = mayfly.JSON[user]{Schema: 1}
	var wg sync.WaitGroup
	for range processes {
		c := must[int, user](t)(cacheaside.New(ns, load, o))
		for key := range keys {
			wg.Go(func() {
				if u, err := c.Get(t.Context(), key); u.Version != key || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
			})
		}
	}
	wg.Wait()
	if n := loads.Load(); n != keys {
		t.Errorf("%d loads of %d keys by %d processes", n, keys, processes)
	}
}
