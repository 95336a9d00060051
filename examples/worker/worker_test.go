package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// visits is what hosts saw of workers: when each was asked.
type visits struct {
	mu sync.Mutex // guards at
	at map[string][]time.Time

	complaints atomic.Int64
}

func (v *visits) worker(limits *sliding.Limiter[string]) worker {
	return worker{limits, v.fetch, func(error) { v.complaints.Add(1) }}
}

func (v *visits) fetch(_ context.Context, address string) error {
	u, err := url.Parse(address)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.at == nil {
		v.at = make(map[string][]time.Time)
	}
	v.at[u.Host] = append(v.at[u.Host], time.Now())
	return err
}

func (v *visits) of(host string) []time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.at[host])
}

// pages returns n URLs of a host.
func pages(host string, n int) (urls []string) {
	for i := range n {
		urls = append(urls, fmt.Sprintf("https://%s/%d", host, i))
	}
	return urls
}

// work runs workers, as of so many processes, until they have fetched what there is.
func work(t *testing.T, rdb redis.UniversalClient, v *visits, processes, limit int, window time.Duration, urls []string) {
	t.Helper()
	all := make(chan string, len(urls))
	for _, u := range urls {
		all <- u
	}
	close(all)
	var running sync.WaitGroup
	for range processes {
		limits, err := newLimits(rdb, limit, window)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			if err := v.worker(limits).run(t.Context(), all, 4); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
}

func TestAllWorkersTogetherKeepTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, window, n = 5, time.Second, 60
		var v visits
		begun := time.Now()
		work(t, redistest.Start(t).Client(), &v, 3, limit, window, pages("a.example", n))
		at := v.of("a.example")
		if len(at) != n {
			t.Fatalf("%d were fetched, want %d", len(at), n)
		}
		for i := range at { // in any so many windows
			for windows := 1; windows < 10; windows++ {
				if last := i + limit*(windows+1); last < n && at[last].Sub(at[i]) < time.Duration(windows)*window {
					t.Fatalf("%d calls in %v", limit*(windows+1)+1, at[last].Sub(at[i]))
				}
			}
		}
		if took, least := time.Since(begun), n/limit*window; took > 2*least {
			t.Errorf("it took %v, where the limit would allow for %v", took, least)
		}
	})
}

func TestAHostWaitsForNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v visits
		begun := time.Now()
		urls := append(pages("busy.example", 3), pages("quiet.example", 1)...)
		work(t, redistest.Start(t).Client(), &v, 1, 1, time.Hour, urls)
		if at := v.of("quiet.example"); len(at) != 1 || at[0].Sub(begun) > time.Minute {
			t.Errorf("the quiet host was asked at %v", at)
		}
	})
}

func TestNothingIsFetchedWhileNobodyKnowsTheCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		srv.Hang()
		var v visits
		done := make(chan struct{})
		go func() {
			defer close(done)
			work(t, srv.Client(), &v, 2, 100, time.Minute, pages("a.example", 10))
		}()
		time.Sleep(5 * time.Minute)
		if at := v.of("a.example"); len(at) != 0 {
			t.Errorf("%d were fetched without Redis", len(at))
		}
		srv.Thaw()
		<-done
		if at := v.of("a.example"); len(at) != 10 {
			t.Errorf("%d were fetched when Redis was back, want 10", len(at))
		}
	})
}

func TestAWorkerStops(t *testing.T) {
	for _, n := range []int{0, 2} { // it waits for a URL, or for the turn of the second
		synctest.Test(t, func(t *testing.T) {
			limits, err := newLimits(redistest.Start(t).Client(), 1, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			urls := make(chan string, n)
			for _, u := range pages("a.example", n) {
				urls <- u
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			begun := time.Now()
			err = new(visits).worker(limits).run(ctx, urls, 1)
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > time.Minute {
				t.Errorf("with %d URLs it stopped with %v after %v", n, err, time.Since(begun))
			}
		})
	}
}

func TestARealRedis(t *testing.T) {
	for _, b := range backends.Only("redis 8", "redis 7.0", "valkey", "given") {
		t.Run(b.Name, func(t *testing.T) {
			rdb := b.Open(t)
			var v visits
			urls := append(pages("a.example", 20), "not a URL", "/relative")
			work(t, rdb, &v, 2, 10, time.Second, urls)
			if at := v.of("a.example"); len(at) != 20 || v.complaints.Load() != 2 {
				t.Errorf("%d were fetched and %d complained of, want 20 and 2", len(at), v.complaints.Load())
			}
		})
	}
}
