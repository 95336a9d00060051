package cacheaside_test

import (
	"context"
	"errors"
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
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/redistest"
)

// slowOrigin is a number of processes that get one key all the time, and the results.
type slowOrigin struct {
	processes int
	lasts     time.Duration
	options   cacheaside.Options
	ttl       time.Duration
	load      func(ctx context.Context) error
	redis     func(srv *redistest.Server) // disturbs Redis meanwhile, until lasts
	held      time.Duration               // for how long an earlier process holds the key before ends; zero: there is none
	ends      func(c *lease.Claim)
	deleted   bool // before, with Hold

	loads, running, most int
	took                 []time.Duration // by Gets
	errs                 map[string]int
}

// p50 is the median time of a Get.
func (s *slowOrigin) p50() time.Duration {
	slices.Sort(s.took)
	return s.took[len(s.took)/2]
}

func (s *slowOrigin) play(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var mu sync.Mutex
		s.errs = make(map[string]int)
		end := time.Now().Add(s.lasts)
		var all sync.WaitGroup
		if s.held > 0 {
			c := holds(t, srv.Client(), namespace(t, nil).Prefix+"1")
			all.Go(func() { keeps(t, c, s.held); s.ends(c) })
		}
		for range s.processes {
			o := srv.Options()
			o.PoolSize, o.ContextTimeoutEnabled = 1000, true
			rdb := redis.NewClient(o)
			defer rdb.Close()
			ns := namespace(t, rdb)
			ns.TTL = s.ttl
			c := must[int, user](t)(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
				mu.Lock()
				s.loads++
				s.running++
				s.most = max(s.most, s.running)
				mu.Unlock()
				defer func() { mu.Lock(); defer mu.Unlock(); s.running-- }()
				return user{Version: key}, s.load(ctx)
			}, s.options))
			if s.deleted {
				c.Delete(t.Context(), 1)
			}
			for range 3 {
				all.Go(func() {
					for time.Now().Before(end) {
						begun := time.Now()
						_, err := c.Get(t.Context(), 1)
						mu.Lock()
						s.took = append(s.took, time.Since(begun))
						for err != nil && errors.Unwrap(err) != nil {
							err = errors.Unwrap(err)
						}
						if err != nil {
							s.errs[err.Error()]++
						}
						mu.Unlock()
						time.Sleep(10 * time.Millisecond)
					}
				})
			}
		}
		if s.redis != nil {
			all.Go(func() { s.redis(srv) })
		}
		all.Wait()
		t.Logf("%d processes, %v: %d loads, %d at once; a Get took %v, %v at most; %v", s.processes, s.lasts, s.loads, s.most, s.p50(), s.took[len(s.took)-1], s.errs)
		time.Sleep(time.Hour) // for loads that could not be cancelled
	})
}

// stalls makes a Redis stall for 200 ms each second.
func stalls(times int) func(srv *redistest.Server) {
	return func(srv *redistest.Server) {
		for range times {
			time.Sleep(800 * time.Millisecond)
			srv.Hang()
			time.Sleep(200 * time.Millisecond)
			srv.Thaw()
		}
	}
}

// patiently is a query that takes the given time and respects its context.
func patiently(takes time.Duration) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(takes):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stubbornly is a query that is quick once, and then takes three seconds and ignores its context.
func stubbornly() func(context.Context) error {
	var loads atomic.Int64
	return func(context.Context) error {
		if loads.Add(1) > 1 {
			time.Sleep(3 * time.Second)
		}
		return nil
	}
}

// However slow the origin is, one caller at a time loads a key, over all processes, except where the documentation says otherwise.
func TestOneLoadAtATimeOfASlowOrigin(t *testing.T) {
	down := errors.New("the database is down")
	second := cacheaside.Options{LoadTimeout: time.Second}
	held := second
	held.Hold = time.Minute
	for _, c := range []struct {
		name     string
		play     slowOrigin
		atOnce   int // documented
		mostEver int // loads
	}{
		{"loads take longer than LoadTimeout", slowOrigin{processes: 10, lasts: 10 * time.Second, options: second, load: patiently(3 * time.Second)}, 1, 11},
		{"a loader that fails after a second", slowOrigin{processes: 12, lasts: 10 * time.Second, options: cacheaside.Options{LoadTimeout: 5 * time.Second},
			load: func(ctx context.Context) error { return errors.Join(patiently(time.Second)(ctx), down) }}, 1, 11},
		{"a loader that ignores its context", slowOrigin{processes: 3, lasts: 6 * time.Second, options: second,
			load: func(context.Context) error { time.Sleep(time.Minute); return nil }}, 1, 1},
		{"the same, and Redis is gone", slowOrigin{processes: 1, lasts: 6 * time.Second, options: second, redis: func(srv *redistest.Server) { srv.Hang(); time.Sleep(6 * time.Second); srv.Thaw() },
			load: func(context.Context) error { time.Sleep(time.Minute); return nil }}, 1, 1},
		{"a Redis that stalls", slowOrigin{processes: 12, lasts: 11 * time.Second, options: cacheaside.Options{LoadTimeout: 5 * time.Second},
			load: func(ctx context.Context) error { return errors.Join(patiently(time.Second)(ctx), down) }, redis: stalls(11)}, 1, 12},
		{"a renewal that ignores its context outlasts the stale value", slowOrigin{processes: 2, lasts: 3 * time.Second, ttl: 400 * time.Millisecond,
			options: cacheaside.Options{LoadTimeout: 300 * time.Millisecond, StaleWhile: 700 * time.Millisecond, Early: earlyrefresh.Never}, load: stubbornly()}, 1, 2},
		{"the same, in the foreground", slowOrigin{processes: 2, lasts: 3 * time.Second, ttl: 400 * time.Millisecond,
			options: cacheaside.Options{LoadTimeout: 300 * time.Millisecond, StaleIfError: 700 * time.Millisecond, LoadSoftTimeout: 50 * time.Millisecond, Early: earlyrefresh.Never}, load: stubbornly()}, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.play.ttl == 0 {
				c.play.ttl = time.Minute
			}
			c.play.play(t)
			if c.play.most > c.atOnce || c.play.loads > c.mostEver {
				t.Errorf("%d at once, %d loads; want %d and %d", c.play.most, c.play.loads, c.atOnce, c.mostEver)
			}
			if c.name == "a loader that fails after a second" && c.play.p50() > 1200*time.Millisecond {
				t.Errorf("a Get takes %v, in one process a second", c.play.p50())
			}
		})
	}
}

// Hold is one documented exception: loaded values may not be stored, so each process loads for itself, one load at a time.
func TestWhileHoldLastsEachProcessLoadsForItself(t *testing.T) {
	s := slowOrigin{processes: 6, lasts: 5 * time.Second, ttl: time.Minute, options: cacheaside.Options{Hold: time.Hour, LoadTimeout: 5 * time.Second},
		load: patiently(time.Second), deleted: true}
	s.play(t)
	if s.most > s.processes || s.most < 2 {
		t.Errorf("%d at once in %d processes", s.most, s.processes)
	}
}

// Callers that wait for a load of another process get its failure, as one error whose text is bounded. Later callers load.
func TestWaitersLearnOfAFailureElsewhere(t *testing.T) {
	long := strings.Repeat("long ", 1000)
	for name, x := range map[string]struct {
		fail  func(ctx context.Context) error
		plain bool
		text  string
		after time.Duration // all have their error
	}{
		"an error":             {fail: func(context.Context) error { time.Sleep(time.Second); return errors.New("the database is down") }, text: "the database is down"},
		"an error, plain":      {fail: func(context.Context) error { time.Sleep(time.Second); return errors.New("the database is down") }, plain: true, text: "the database is down"},
		"a long one":           {fail: func(context.Context) error { time.Sleep(time.Second); return errors.New(long) }, text: long[:200]},
		"a panic":              {fail: func(context.Context) error { time.Sleep(time.Second); panic("oh") }, text: "panic: oh"},
		"past its time":        {fail: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, text: "the load took too long", after: 3 * time.Second},
		"past it, and goes on": {fail: func(context.Context) error { time.Sleep(time.Minute); return nil }, text: "the load took too long", after: 3 * time.Second},
		"plain, and goes on":   {fail: func(context.Context) error { time.Sleep(time.Minute); return nil }, plain: true, text: "the load took too long", after: 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				var ill atomic.Bool
				ill.Store(true)
				open := func() *cacheaside.Cache[int, user] {
					o := srv.Options()
					o.PoolSize = 100
					rdb := redis.NewClient(o)
					t.Cleanup(func() { rdb.Close() })
					ns := namespace(t, rdb)
					ns.Plain = x.plain
					return must[int, user](t)(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
						if ill.Load() {
							return user{}, x.fail(ctx)
						}
						return user{Version: key}, nil
					}, cacheaside.Options{LoadTimeout: 3 * time.Second, RedisTimeout: patient}))
				}
				one, other := open(), open()
				begun := time.Now()
				var all sync.WaitGroup
				all.Go(func() { one.Get(t.Context(), 7) })
				time.Sleep(time.Second / 2)
				for range 3 {
					all.Go(func() {
						_, err := other.Get(t.Context(), 7)
						if !errors.Is(err, mayfly.ErrFailedElsewhere) || !strings.Contains(err.Error(), x.text) || len(err.Error()) > 400 {
							t.Errorf("got %v", err)
						}
						if took := time.Since(begun); took > max(x.after, time.Second)+200*time.Millisecond {
							t.Errorf("after %v", took)
						}
					})
				}
				all.Wait()
				ill.Store(false)
				if strings.Contains(name, "goes on") {
					before := time.Now()
					if _, err := other.Get(t.Context(), 7); !errors.Is(err, mayfly.ErrLoadTimeout) || time.Since(before) != 3*time.Second {
						t.Errorf("while it goes on: %v after %v", err, time.Since(before))
					}
					time.Sleep(time.Minute)
				}
				if u, err := other.Get(t.Context(), 7); u.Version != 7 || err != nil {
					t.Errorf("a later caller: %+v, %v", u, err)
				}
				time.Sleep(2 * time.Second)
			})
		})
	}
}

// A load that never ends keeps others from its key for eleven times LoadTimeout at most.
func TestALoadThatNeverEndsIsBounded(t *testing.T) {
	s := slowOrigin{processes: 2, lasts: 25 * time.Second, ttl: time.Minute, options: cacheaside.Options{LoadTimeout: time.Second},
		load: func(context.Context) error { time.Sleep(time.Hour); return nil }}
	s.play(t)
	if s.loads != 3 {
		t.Errorf("%d loads in 25 s, want one each 11 s", s.loads)
	}
}
