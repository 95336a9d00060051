package cacheaside_test

import (
	"context"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// backends are what a cache must be right on. Each makes a client of an empty server.
var backends = []struct {
	name string
	open func(t *testing.T) redis.UniversalClient
}{
	{"miniredis", func(t *testing.T) redis.UniversalClient {
		rdb := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
		t.Cleanup(func() { rdb.Close() })
		return rdb
	}},
	{"redistest", func(t *testing.T) redis.UniversalClient { return redistest.Start(t).Client() }},
	{"redis 8", func(t *testing.T) redis.UniversalClient { return realredis.Start(t, realredis.Options{}).Client() }},
	{"redis 7.0", func(t *testing.T) redis.UniversalClient {
		return realredis.Start(t, realredis.Options{Flavour: realredis.Redis7}).Client()
	}},
	{"valkey", func(t *testing.T) redis.UniversalClient {
		return realredis.Start(t, realredis.Options{Flavour: realredis.Valkey}).Client()
	}},
	{"cluster", func(t *testing.T) redis.UniversalClient {
		if testing.Short() {
			t.Skip("starts six servers")
		}
		return realredis.StartCluster(t, 3, 3, realredis.Options{}).Client()
	}},
}

// everywhere runs test on every backend.
func everywhere(t *testing.T, test func(t *testing.T, rdb redis.UniversalClient)) {
	for _, b := range backends {
		t.Run(b.name, func(t *testing.T) { test(t, b.open(t)) })
	}
}

// patient is for tests that are not about time, on machines that are busy with others.
var patient = cacheaside.Faults{RedisTimeout: 10 * time.Second}

// mini returns a client of a miniredis that works in bubbles, and on their time. It is no place for long pipelines: a
// net.Pipe has no buffer, and miniredis answers the first command before it has read the last.
func mini(t testing.TB) (*redis.Client, *miniredis.Miniredis) {
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	t.Cleanup(m.Close)
	rdb := redis.NewClient(&redis.Options{
		Addr:   "127.0.0.1:1", // a name would be looked up, which no bubble survives
		Dialer: func(context.Context, string, string) (net.Conn, error) { return m.Dial() },

		ContextTimeoutEnabled: true, // or no hook of a test would see anything
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb, m
}

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

// eventually asks until ok, as other processes do not tell us.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(20 * time.Second); !ok(); {
		select {
		case <-end:
			t.Fatal("it did not happen")
		case <-tick.C:
		}
	}
}

// silent drops what go-redis says about servers that these tests break.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestMain runs the tests, or one of the processes that they start of this same program, and looks for goroutines of
// the cache that outlived it.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	if role := os.Getenv("MAYFLY_TEST_ROLE"); role != "" {
		os.Exit(roles[role]())
	}
	code := m.Run()
	if left := stacks("mayfly/cacheaside.(*"); code == 0 && left != "" {
		os.Stderr.WriteString("goroutines that outlived their cache:\n" + left)
		code = 1
	}
	os.Exit(code)
}

// roles are what a process started by a test can be.
var roles = map[string]func() int{}

// stacks returns the stacks of goroutines that run something named so.
func stacks(name string) (found string) {
	buf := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, name) && !strings.Contains(stack, "main.main") {
			found += stack + "\n\n"
		}
	}
	return found
}
