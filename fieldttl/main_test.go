package fieldttl_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
)

// session is the guide's.
type session struct {
	UserID int64  `redis:"user_id"`
	IP     string `redis:"ip,ttl=1h"`
	CSRF   string `redis:"csrf_token,ttl=15m"`
}

var ada = session{1001, "192.168.1.1", "xyz123"}

const day = 24 * time.Hour

// patient is the RedisTimeout of tests whose machine may be slow, or whose faults take their time.
const patient = 10 * time.Second

func ns[T any](t testing.TB, rdb redis.UniversalClient) mayfly.Namespace[string, T] {
	return mayfly.Namespace[string, T]{Name: "sessions", Redis: rdb, Prefix: strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()) + ":", TTL: day}
}

// opened is what a test gets: a store of a type of its choice, on a backend, in one of its ways.
type opened struct {
	rdb   redis.UniversalClient
	apart bool // as with Redis 7.4
}

func store[T any](t testing.TB, o opened) *fieldttl.Store[string, T] {
	t.Helper()
	s := expect.Value(fieldttl.New(ns[T](t, o.rdb), fieldttl.Options{RedisTimeout: patient}))(t)
	if o.apart {
		s.Apart()
	}
	return s
}

// TestMain runs the tests, or the process that one of them starts.
func TestMain(m *testing.M) {
	os.Exit(processes.Main(m))
}
