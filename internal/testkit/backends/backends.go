// Package backends is for tests only: the servers on which the library's promises must hold.
package backends

import (
	"context"
	"net"
	"os"
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// Backend makes clients of an empty server of one kind.
type Backend struct {
	Name string
	Open func(t testing.TB) redis.UniversalClient
}

// Miniredis is the backend with the fewest features: suites use this name to skip what it cannot do.
const Miniredis = "miniredis"

// All are the backends. Those that need a real server are skipped, with a line that says so, if there is none; see realredis.
var All = append([]Backend{
	{"redistest", func(t testing.TB) redis.UniversalClient { return redistest.Start(t).Client() }},
	{Miniredis, func(t testing.TB) redis.UniversalClient {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { rdb.Close() })
		return rdb
	}},
	{"redis 8", real(realredis.Redis8)},
	{"redis 7.0", real(realredis.Redis7)},
	{"valkey", real(realredis.Valkey)},
	{"cluster", func(t testing.TB) redis.UniversalClient {
		return realredis.StartCluster(t, 3, 3, realredis.Options{}).Client()
	}},
}, given(os.Getenv("MAYFLY_REDIS_URL"))...)

// given is the server at url, of any version, if a URL is set. It is emptied for each test, so these must not run in parallel: go test -p 1
// -parallel 1.
func given(url string) []Backend {
	if url == "" {
		return nil
	}
	return []Backend{{"given", func(t testing.TB) redis.UniversalClient {
		o, err := redis.ParseURL(url)
		if err != nil {
			t.Fatalf("MAYFLY_REDIS_URL: %v", err)
		}
		rdb := redis.NewClient(o)
		t.Cleanup(func() { rdb.Close() })
		if err := rdb.FlushDB(t.Context()).Err(); err != nil {
			t.Fatalf("MAYFLY_REDIS_URL: %v", err)
		}
		return rdb
	}}}
}

// DoubleCluster is the double's own cluster, for suites that need no more than that.
var DoubleCluster = Backend{"cluster of redistest", func(t testing.TB) redis.UniversalClient { return redistest.StartCluster(t, 3).Client() }}

// Only returns the backends with these names.
func Only(names ...string) []Backend {
	return slices.DeleteFunc(slices.Clone(All), func(b Backend) bool { return !slices.Contains(names, b.Name) })
}

func real(f realredis.Flavour) func(t testing.TB) redis.UniversalClient {
	return func(t testing.TB) redis.UniversalClient {
		return realredis.Start(t, realredis.Options{Flavour: f}).Client()
	}
}

// Each runs test on every backend except those named in but.
func Each(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient), but ...string) {
	for _, b := range All {
		t.Run(b.Name, func(t *testing.T) {
			if slices.Contains(but, b.Name) {
				t.Skipf("%s cannot do this", b.Name)
			}
			test(t, b.Open(t))
		})
	}
}

// Mini returns a client of a miniredis that works in bubbles, and on their time. It is not suitable for long pipelines: a net.Pipe has no
// buffer, and miniredis answers the first command before it has read the last.
func Mini(t testing.TB) *redis.Client {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	rdb := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1", // a name would be looked up, which does not work in a bubble
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },

		ContextTimeoutEnabled: true,
		PoolSize:              1000, // a caller waiting in go-redis's pool shares channels with other bubbles
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}
