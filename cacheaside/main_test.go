package cacheaside_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

// long is for experiments at their full length, and for what needs much memory.
var long = flag.Bool("long", false, "experiments at their full length")

// patient is for tests that are not about time, on machines that are busy with others.
var patient = cacheaside.Faults{RedisTimeout: time.Minute}

type user struct {
	Name    string
	Version int
}

func namespace(t testing.TB, rdb redis.UniversalClient) mayfly.Namespace[int, user] {
	return mayfly.Namespace[int, user]{Name: "users", Redis: rdb, Prefix: strings.ReplaceAll(t.Name(), "/", "_") + ":", TTL: time.Minute}
}

// must is for constructors; the cache is closed at the end of the test.
func must[K comparable, V any](t testing.TB) func(c *cacheaside.Cache[K, V], err error) *cacheaside.Cache[K, V] {
	return func(c *cacheaside.Cache[K, V], err error) *cacheaside.Cache[K, V] {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
		return c
	}
}

// seen collects events.
type seen struct {
	mu     sync.Mutex
	events []mayfly.Event
}

func (s *seen) Observe(_ context.Context, e mayfly.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// count says how many events of a kind and outcome there were.
func (s *seen) count(k mayfly.Kind, o mayfly.Outcome) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if e.Kind == k && e.Outcome == o {
			n++
		}
	}
	return n
}

// forget empties the collection.
func (s *seen) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = nil
}

// eventually asks until ok, as other processes do not tell us.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(time.Minute); !ok(); {
		select {
		case <-end:
			t.Fatalf("it did not happen: %s", what)
		case <-tick.C:
		}
	}
}

// exists says whether Redis holds anything under key.
func exists(t testing.TB, rdb redis.UniversalClient, key string) bool {
	t.Helper()
	n, err := rdb.Exists(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// TestMain runs the tests, or one of the processes that they start of this same program, and looks for goroutines of
// the cache that outlived it.
func TestMain(m *testing.M) {
	os.Exit(processes.Main(m, "mayfly/cacheaside.(*"))
}
