package navsession_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/navsession"
)

const gap = 60 * time.Second // the documentation's

// patient is the RedisTimeout of tests whose machine may be slow, or whose faults take their time.
const patient = 10 * time.Second

// ns is a namespace of a test's own.
func ns[V any](t testing.TB, rdb redis.UniversalClient) mayfly.Namespace[string, V] {
	return mayfly.Namespace[string, V]{Name: "visits", Redis: rdb, Prefix: strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()) + ":", TTL: gap}
}

// visits of pages that are URLs and nothing else, as the documentation has them.
func visits(t testing.TB, rdb redis.UniversalClient, pages int) *navsession.Visits[string, string] {
	t.Helper()
	return expect.Value(navsession.New(ns[string](t, rdb), navsession.Options{Pages: pages, RedisTimeout: patient}))(t)
}

// wants compares what the user's visit holds, the newest first, with pages separated by spaces.
func wants(t testing.TB, v *navsession.Visits[string, string], user, pages string) {
	t.Helper()
	got := strings.Join(expect.Value(v.Recent(t.Context(), user, 1000))(t), " ")
	if got != pages {
		t.Errorf("the visit is %.200q, want %.200q", got, pages)
	}
	if n := expect.Value(v.Len(t.Context(), user))(t); n != len(strings.Fields(pages)) {
		t.Errorf("the visit has %d pages, want %q", n, pages)
	}
}

// TestMain runs the tests, or the process that one of them starts.
func TestMain(m *testing.M) {
	os.Exit(processes.Main(m))
}
