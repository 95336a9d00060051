package navsession_test

import (
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/late"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
)

// No write is sent twice: one whose request is lost says that nobody knows, and one that returned nil leaves nothing behind. What the
// server says that it did not execute is sent again.
func TestALateCopy(t *testing.T) {
	for _, w := range []struct {
		name, held, refused string
		do                  func(t *testing.T, rdb redis.UniversalClient) error
	}{
		{"Record", "multi", "rpush", func(t *testing.T, rdb redis.UniversalClient) error {
			return visits(t, rdb, 5).Record(t.Context(), "ada", "/a")
		}},
		{"End", "ltrim", "ltrim", func(t *testing.T, rdb redis.UniversalClient) error {
			return visits(t, rdb, 5).End(t.Context(), "ada")
		}},
		{"Counter.Record", "multi", "incr", func(t *testing.T, rdb redis.UniversalClient) error {
			_, err := counter(t, rdb).Record(t.Context(), "bob")
			return err
		}},
		{"Counter.End", "getdel", "getdel", func(t *testing.T, rdb redis.UniversalClient) error {
			return counter(t, rdb).End(t.Context(), "bob")
		}},
		{"Related.Record", "multi", "zincrby", func(t *testing.T, rdb redis.UniversalClient) error {
			r := expect.Value(navsession.NewRelated(ns[string](t, rdb), navsession.RelatedOptions{RedisTimeout: patient}))(t)
			return r.Record(t.Context(), "/a", "/b")
		}},
	} {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				conns, rdb := late.Client(t, srv)
				fill := func() {
					expect.OK(t, visits(t, srv.Client(), 5).Record(t.Context(), "ada", "/b"))
					expect.Value(counter(t, srv.Client()).Record(t.Context(), "bob"))(t)
				}
				fill()
				conns.Hold(w.held)
				err := w.do(t, rdb)
				fill()
				conns.Check(t, srv.Dump, err, mayfly.ErrUnknownOutcome)
				fill()
				srv.FailNext(w.refused, "READONLY You can't write against a read only replica.")
				srv.FailNext(w.refused, "CLUSTERDOWN The cluster is down")
				if err := w.do(t, rdb); err != nil {
					t.Errorf("after refusals: %v", err)
				}
			})
		})
	}
}

func counter(t *testing.T, rdb redis.UniversalClient) *navsession.Counter[string] {
	t.Helper()
	return expect.Value(navsession.NewCounter(ns[int64](t, rdb), navsession.CounterOptions{RedisTimeout: patient}))(t)
}
