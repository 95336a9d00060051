package sliding_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// took returns how long f takes.
func took(f func()) time.Duration {
	begun := time.Now()
	f()
	return time.Since(begun)
}

// A Redis that hangs costs a caller 150 ms, and soon nothing, whatever the client's own timeouts are. When it answers again, that is noticed.
func TestARedisThatHangs(t *testing.T) {
	for name, set := range map[string]func(*redis.Options){
		"go-redis's defaults": func(o *redis.Options) { o.ContextTimeoutEnabled = false },
		"contexts respected":  func(*redis.Options) {},
		"no deadlines":        func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -2, -2 },
	} {
		for what, use := range map[string]func(t *testing.T, rdb redis.UniversalClient, events *expect.Events) (call func() error){
			"limiter": func(t *testing.T, rdb redis.UniversalClient, events *expect.Events) func() error {
				ns := calls(rdb, time.Hour)
				ns.Observer = events
				l := mayfly.Must(sliding.NewLimiter(ns, sliding.LimiterOptions{Limit: 1e6, FailOpen: true}))
				return func() error {
					d, err := l.Allow(t.Context(), "ada", 1)
					if !d.Allowed {
						t.Error("FailOpen did not")
					}
					return err
				}
			},
			"store": func(t *testing.T, rdb redis.UniversalClient, events *expect.Events) func() error {
				ns := namespace(rdb)
				ns.Observer = events
				s := mayfly.Must(sliding.New(ns, sliding.Options{MaxAge: time.Hour}))
				want(t, s.Create(t.Context(), "ada", cart{}), nil)
				return func() error { _, err := s.Get(t.Context(), "ada"); return err }
			},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					o := srv.Options()
					set(o)
					rdb := redis.NewClient(o)
					defer rdb.Close()
					var events expect.Events
					call := use(t, rdb, &events)
					want(t, call(), nil)
					srv.Hang()
					for i := range 100 {
						most := 150 * time.Millisecond
						if i >= 5 {
							most = 0
						}
						var err error
						if d := took(func() { err = call() }); d > most || err == nil || errors.Is(err, mayfly.ErrNotFound) {
							t.Fatalf("call %d took %v, and is %v", i, d, err)
						}
					}
					if n := events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed); n != 1 {
						t.Errorf("%d events say that it is not asked", n)
					}
					srv.Thaw()
					time.Sleep(500 * time.Millisecond)
					want(t, call(), nil)
					if n := events.Count(mayfly.KindBreaker, mayfly.OutcomeOK); n != 1 {
						t.Errorf("%d events say that it is asked again", n)
					}
				})
			})
		}
	}
}

// After a lost reply, a store's write checks once what became of it, and not at all if nobody answers any more.
func TestWritesToARedisThatHangs(t *testing.T) {
	for _, way := range ways {
		way.opt.RedisTimeout = 0
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			ctx := t.Context()
			s := mayfly.Must(sliding.New(namespace(srv.Client()), way.opt))
			change := func(c cart) (cart, error) { return c, nil }
			want(t, s.Create(ctx, "ada", cart{}), nil)
			srv.Hang()
			for what, call := range map[string]func() error{
				"create": func() error { return s.Create(ctx, "bob", cart{}) },
				"set":    func() error { return s.Set(ctx, "ada", cart{}) },
				"delete": func() error { return s.Delete(ctx, "ada") },
				"touch":  func() error { return s.Touch(ctx, "ada") },
				"rotate": func() error { return s.Rotate(ctx, "ada", "eve") },
				"peek":   func() error { _, err := s.Peek(ctx, "ada"); return err },
				"ttl":    func() error { _, err := s.TTL(ctx, "ada"); return err },
				"update": func() error { _, err := s.Update(ctx, "ada", change); return err },
			} {
				var err error
				if d := took(func() { err = call() }); d > 300*time.Millisecond || err == nil || errors.Is(err, mayfly.ErrNotFound) {
					t.Errorf("%s, %s: %v after %v", way.name, what, err, d)
				}
			}
			time.Sleep(time.Second) // so that the next call is the probe
			srv.Thaw()
			want(t, s.Delete(ctx, "ada"), nil)
			srv.Hang()
			for range 5 {
				s.Peek(ctx, "ada")
			}
			if err := s.Set(ctx, "ada", cart{}); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
				t.Errorf("%s: a write that was never sent says %v", way.name, err)
			}
		})
	}
}

// A crowd of the program's own callers waits, which is no failure of Redis.
func TestACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		srv.Latency(5 * time.Millisecond)
		o := srv.Options()
		o.PoolSize = 4
		rdb := redis.NewClient(o)
		defer rdb.Close()
		var events expect.Events
		ns := calls(rdb, time.Hour)
		ns.Observer = &events
		l := mayfly.Must(sliding.NewLimiter(ns, sliding.LimiterOptions{Limit: 1e6}))
		var wg sync.WaitGroup
		for range 400 { // which takes three times the RedisTimeout
			wg.Go(func() {
				if d, err := l.Allow(t.Context(), "ada", 1); err != nil || !d.Allowed {
					t.Errorf("got %+v, %v", d, err)
				}
			})
		}
		wg.Wait()
		if n := events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed); n != 0 {
			t.Errorf("the breaker opened %d times", n)
		}
	})
}

// One hung master does not delay calls for the keys of others.
func TestAMasterThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redistest.StartCluster(t, 3)
		l := mayfly.Must(sliding.NewLimiter(calls(cluster.Client(), time.Hour), sliding.LimiterOptions{Limit: 1e6, FailOpen: true}))
		site := l.Middleware(func(r *http.Request) (string, bool) { return r.URL.Path, true })(http.NotFoundHandler())
		request := func(i int) time.Duration {
			return took(func() {
				rec := httptest.NewRecorder()
				if site.ServeHTTP(rec, httptest.NewRequest("GET", fmt.Sprintf("/%d", i), nil)); rec.Code != http.StatusNotFound {
					t.Errorf("answered %d", rec.Code)
				}
			})
		}
		for i := range 30 {
			request(i)
		}
		cluster.Nodes()[1].Hang()
		var slow int
		for i := range 300 {
			if d := request(i % 30); d > 150*time.Millisecond {
				t.Errorf("request %d took %v", i, d)
			} else if d > 0 {
				slow++
			}
		}
		if slow < 5 || slow > 10 { // those that open the breaker, and a probe now and then
			t.Errorf("%d requests waited", slow)
		}
		cluster.Nodes()[1].Thaw()
	})
}

// The same on real servers, with go-redis's defaults.
func TestAFrozenMaster(t *testing.T) {
	cluster := realredis.StartCluster(t, 3, 0, realredis.Options{})
	o := cluster.Options()
	o.ContextTimeoutEnabled = false
	rdb := redis.NewClusterClient(o)
	defer rdb.Close()
	l := mayfly.Must(sliding.NewLimiter(calls(rdb, time.Hour), sliding.LimiterOptions{Limit: 1e6, FailOpen: true}))
	var mine, others []string
	frozen := cluster.Owner("calls:0")
	for i := range 60 {
		if key := strconv.Itoa(i); cluster.Owner("calls:"+key) == frozen {
			mine = append(mine, key)
		} else {
			others = append(others, key)
		}
		if _, err := l.Allow(t.Context(), strconv.Itoa(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	frozen.Pause()
	defer frozen.Resume()
	const slack = 100 * time.Millisecond // for a busy machine
	for i := range 6 {
		key := mine[i%len(mine)]
		if took := took(func() { l.Allow(t.Context(), key, 1) }); took > 150*time.Millisecond+slack {
			t.Errorf("call %d took %v", i, took)
		}
	}
	var quickest time.Duration = time.Hour
	for i := range 100 {
		quickest = min(quickest, took(func() { l.Allow(t.Context(), mine[i%len(mine)], 1) }))
	}
	if quickest > time.Millisecond {
		t.Errorf("the quickest call after that took %v", quickest)
	}
	for _, key := range others {
		if _, err := l.Allow(t.Context(), key, 1); err != nil {
			t.Errorf("another master's: %v", err)
		}
	}
}

func TestRedisTimeoutOfBadInput(t *testing.T) {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer rdb.Close()
	_, limiter := sliding.NewLimiter(calls(rdb, time.Hour), sliding.LimiterOptions{Limit: 1, RedisTimeout: -1})
	_, store := sliding.New(namespace(rdb), sliding.Options{RedisTimeout: 10})
	for says, err := range map[string]error{
		"LimiterOptions.RedisTimeout must be at least 1ms, got -1ns": limiter,
		"Options.RedisTimeout must be at least 1ms, got 10ns":        store,
	} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	}
}

// Nothing is sent for a caller who has left, and the error does not claim that it was.
func TestACallerThatLeftSendsNothing(t *testing.T) {
	srv := redistest.Start(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, way := range ways {
		s := mayfly.Must(sliding.New(namespace(srv.Client()), way.opt))
		for what, err := range map[string]error{
			"create": s.Create(gone, "ada", cart{}), "set": s.Set(gone, "ada", cart{}), "delete": s.Delete(gone, "ada"), "rotate": s.Rotate(gone, "ada", "eve"),
		} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, mayfly.ErrUnknownOutcome) {
				t.Errorf("%s, %s: %v", way.name, what, err)
			}
		}
	}
}

// The report that a hung server has recovered does not depend on the next call: nobody logs in at night.
func TestARecoveryIsToldWithoutACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var events expect.Events
		ns := calls(srv.Client(), time.Hour)
		ns.Observer = &events
		l := mayfly.Must(sliding.NewLimiter(ns, sliding.LimiterOptions{Limit: 5}))
		srv.Hang()
		for range 5 {
			l.Allow(t.Context(), "ada", 1)
		}
		time.Sleep(20 * time.Second)
		if opened, closed := events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed), events.Count(mayfly.KindBreaker, mayfly.OutcomeOK); opened != 1 || closed != 0 {
			t.Errorf("of a Redis that hangs: opened %d times, closed %d times", opened, closed)
		}
		srv.Thaw()
		time.Sleep(11 * time.Second)
		if closed := events.Count(mayfly.KindBreaker, mayfly.OutcomeOK); closed != 1 {
			t.Errorf("half a minute after the latest call: closed %d times", closed)
		}
	})
}

// Nobody has to close a limiter, so a bubble may end at any moment of an outage: no goroutine is left waiting.
func TestABubbleMayEndInAnOutage(t *testing.T) {
	for ms := range effort.Times(20, 400) {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			l := mayfly.Must(sliding.NewLimiter(calls(srv.Client(), time.Hour), sliding.LimiterOptions{Limit: 5}))
			srv.Hang()
			for range 5 {
				l.Allow(t.Context(), "ada", 1)
			}
			time.Sleep(time.Duration(ms) * time.Second / 27)
		})
	}
}
