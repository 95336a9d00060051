package cacheaside_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/client/record"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

// long turns on experiments at full length, and tests that need much memory.
var long = flag.Bool("long", false, "experiments at their full length")

// patient is the RedisTimeout of tests that are not about time: the machine may be busy.
var patient = time.Minute

type user struct {
	Name    string
	Version int
}

func namespace(t testing.TB, rdb redis.UniversalClient) mayfly.Namespace[int, user] {
	return mayfly.Namespace[int, user]{Name: "users", Redis: rdb, Prefix: strings.ReplaceAll(t.Name(), "/", "_") + ":", TTL: time.Minute}
}

// must unwraps a constructor's result; the cache is closed at the end of the test.
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

// exists reports whether Redis holds anything under key.
func exists(t testing.TB, rdb redis.UniversalClient, key string) bool {
	t.Helper()
	n, err := rdb.Exists(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	return n == 1
}

// stored reports whether Redis holds more under key than the note of a failed load, which expires within a second.
func stored(t testing.TB, rdb redis.UniversalClient, key string) bool {
	t.Helper()
	raw, _ := rdb.Get(t.Context(), key).Bytes()
	kind, _, _ := record.Parse(raw)
	return kind != record.Failure && exists(t, rdb, key)
}

// TestMain runs the tests, or one of the processes that they start from this same program, and looks for goroutines of the cache that
// outlived it.
func TestMain(m *testing.M) {
	os.Exit(processes.Main(m, "mayfly/cacheaside.(*"))
}
