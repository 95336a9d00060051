package cacheaside_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// crowded is a database that runs a number of queries at once, in order, each for some time. It finishes queries without waiters too.
type crowded struct {
	workers chan struct{}
	takes   time.Duration
}

func (d *crowded) query(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		d.workers <- struct{}{} // waiting senders are served in order
		time.Sleep(d.takes)
		<-d.workers
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// played is the result of play.
type played struct {
	recovered time.Duration // until 99 % of a second's gets were answered; 0: never
	queries   int
	keys      int
}

// manyProcesses returns that many caches, each with a client of its own, whose loads ask one origin.
func manyProcesses(t *testing.T, srv *redistest.Server, n int, o cacheaside.Options, query func(context.Context) error) []*cacheaside.Cache[int, user] {
	o.RedisTimeout = patient
	caches := make([]*cacheaside.Cache[int, user], n)
	for i := range caches {
		connect := srv.Options()
		connect.PoolSize = 5000
		rdb := redis.NewClient(connect)
		t.Cleanup(func() { rdb.Close() })
		ns := namespace(t, rdb)
		ns.TTL = time.Hour
		caches[i] = must[int, user](t)(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
			return user{Version: key}, query(ctx)
		}, o))
	}
	return caches
}

// play empties a Redis in front of a database that can do a quarter of the queries that are then wanted, and returns what happened. Loading all
// keys takes the database ten seconds at full length.
func play(t *testing.T, limit, processes int, full bool) (p played) {
	synctest.Test(t, func(t *testing.T) {
		const capacity = 200
		seconds := 4
		if full {
			seconds = 10
		}
		p.keys = capacity * seconds
		srv := redistest.Start(t)
		d := &crowded{workers: make(chan struct{}, 4), takes: 4 * time.Second / capacity}
		var mu sync.Mutex
		caches := manyProcesses(t, srv, processes, cacheaside.Options{LoadTimeout: 2 * time.Second, LoadLimit: limit}, func(ctx context.Context) error {
			mu.Lock()
			p.queries++
			mu.Unlock()
			return d.query(ctx)
		})
		r := rand.New(rand.NewPCG(1, 2))
		last := 3 * seconds
		answered, asked := make([]int, last+1), make([]int, last+1)
		var gets sync.WaitGroup
		for begun := time.Now(); ; time.Sleep(time.Second / (4 * capacity)) {
			second := int(time.Since(begun) / time.Second)
			if second == last {
				break
			}
			cache, key := caches[r.IntN(processes)], r.IntN(p.keys)
			asked[second]++
			gets.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				if _, err := cache.Get(ctx, key); err == nil {
					mu.Lock()
					defer mu.Unlock()
					answered[second]++
				} else if limit >= 0 && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		}
		gets.Wait()
		time.Sleep(time.Hour) // the database finishes what was abandoned
		for s := range last {
			if 100*answered[s] >= 99*asked[s] {
				p.recovered = time.Duration(s) * time.Second
				break
			}
		}
		t.Logf("limit %d, %d processes: answered %v of %v; %d queries for %d keys", limit, processes, answered[:last], asked[0], p.queries, p.keys)
	})
	return p
}

// A database of 200 queries a second, an empty Redis, and 800 gets a second that wait for half a second each. 99 % are answered again within
// 1.2 times the time that loading all keys takes at least, with at most 5 % more queries than keys; without a limit, never.
func TestAnEmptyRedisDoesNotBringTheOriginDown(t *testing.T) {
	full := effort.Long()
	for _, processes := range []int{1, 3}[:effort.Times(1, 2)] {
		p := play(t, 0, processes, full)
		ideal := time.Duration(p.keys) * time.Second / 200
		if p.recovered == 0 || p.recovered > ideal*12/10 {
			t.Errorf("%d processes: recovered after %v, want %v", processes, p.recovered, ideal*12/10)
		}
		if p.queries > p.keys*105/100 {
			t.Errorf("%d processes: %d queries for %d keys", processes, p.queries, p.keys)
		}
	}
	if full {
		if p := play(t, -1, 1, full); p.recovered != 0 {
			t.Errorf("without a limit: recovered after %v", p.recovered)
		}
	}
}
