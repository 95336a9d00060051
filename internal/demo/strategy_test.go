package demo_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/internal/demo/strategy"
	"github.com/mayflycache/mayfly/redistest"
)

func Example_strategy() {
	ctx := context.Background()
	db, err := embedded.Open(embedded.Options{})
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)
	for _, way := range []strategy.Strategy{strategy.Plain, strategy.Mayfly} {
		loads := 0
		cache, err := strategy.Open(ctx, way, strategy.Options{Redis: db.Client(), Name: "lamps", Prefix: way.Name[:3] + ":", TTL: time.Minute},
			func(context.Context, int) (string, error) { loads++; return "lamp", nil })
		if err != nil {
			panic(err)
		}
		for range 3 {
			cache.Get(ctx, 7)
		}
		fmt.Println(way.Name, "-", loads, "load")
		cache.Close(ctx)
	}
	// Output:
	// GET, else load and SET EX - 1 load
	// mayfly, all of it - 1 load
}

// Whatever the way, a value is served until its end and not after it, errors of the load are the caller's, and a key has a TTL.
func TestEachWay(t *testing.T) {
	for _, way := range strategy.All {
		t.Run(way.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rdb := redistest.Start(t).Client()
				loads, fails := 0, false
				cache, err := strategy.Open(t.Context(), way, strategy.Options{Redis: rdb, Name: "numbers", Prefix: "n:", TTL: 10 * time.Second},
					func(context.Context, int) (int, error) {
						if fails {
							return 0, fmt.Errorf("no origin")
						}
						loads++
						time.Sleep(time.Millisecond)
						return loads, nil
					})
				if err != nil {
					t.Fatal(err)
				}
				defer cache.Close(context.Background())
				get := func() int {
					t.Helper()
					v, err := cache.Get(t.Context(), 7)
					if err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					return v
				}
				if get(); rdb.PTTL(t.Context(), "n:7").Val() <= 0 {
					t.Error("the key has no end")
				}
				if v := get(); way.Early == nil && v != 1 {
					t.Error("what is kept is not served")
				}
				time.Sleep(12 * time.Second)
				if before := loads; get() != before+1 {
					t.Error("what has ended is served")
				}
				time.Sleep(12 * time.Second)
				fails = true
				if _, err := cache.Get(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "no origin") {
					t.Errorf("the origin's error: %v", err)
				}
			})
		})
	}
}

func TestLocalNeedsTheLease(t *testing.T) {
	_, err := strategy.Open(t.Context(), strategy.Strategy{Local: true}, strategy.Options{}, func(context.Context, int) (int, error) { return 0, nil })
	if err == nil || !strings.Contains(err.Error(), "Local needs Lease") {
		t.Error(err)
	}
}

// Only a cache with the lease bounds its loads, unless it is told not to.
func TestWhatBoundsLoads(t *testing.T) {
	rdb := redistest.Start(t).Client()
	for _, test := range []struct {
		way     strategy.Strategy
		bounded bool
	}{
		{strategy.Plain, false},
		{strategy.Strategy{Lease: true}, true},
		{strategy.Strategy{Lease: true, Unbounded: true}, false},
	} {
		cache, err := strategy.Open(t.Context(), test.way, strategy.Options{Redis: rdb, Name: "numbers", Prefix: "n:", TTL: time.Second, LoadTimeout: time.Second},
			func(context.Context, int) (int, error) { return 1, nil })
		if err != nil {
			t.Fatal(err)
		}
		if l := cache.Loads(); l.Limit > 0 != test.bounded || l.Limit == 0 {
			t.Errorf("%+v: %+v", test.way, l)
		}
		if err := cache.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
