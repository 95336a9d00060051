package navsession_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
)

// crowded returns a client of so many connections.
func crowded(t *testing.T, srv *redistest.Server, connections int) *redis.Client {
	o := srv.Options()
	o.PoolSize, o.PipelinePoolSize = connections, -1
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// Many more callers than connections wait for one another, and that is all.
func TestACrowd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := crowded(t, srv, 20)
		v := expect.Value(navsession.New(ns[string](t, rdb), navsession.Options{Pages: 3}))(t)
		c := expect.Value(navsession.NewCounter(ns[int64](t, rdb), navsession.CounterOptions{}))(t)
		space := ns[string](t, rdb)
		space.Prefix += "related:"
		r := expect.Value(navsession.NewRelated(space, navsession.RelatedOptions{MinVisits: 1}))(t)
		srv.Latency(5 * time.Millisecond)
		var all sync.WaitGroup
		callers := effort.Times(100, 1000)
		for i := range callers {
			all.Go(func() {
				ctx, user := t.Context(), fmt.Sprint("user", i)
				for what, do := range map[string]func() error{
					"Record":         func() error { return v.Record(ctx, user, "/1") },
					"Recent":         func() error { _, err := v.Recent(ctx, user, 3); return err },
					"Len":            func() error { _, err := v.Len(ctx, user); return err },
					"End":            func() error { return v.End(ctx, user+"'s last") },
					"count":          func() error { _, err := c.Record(ctx, "counted"); return err },
					"counts":         func() error { _, err := c.Len(ctx, "counted"); return err },
					"Related.Record": func() error { return r.Record(ctx, "a", user) },
					"Top":            func() error { _, err := r.Top(ctx, "a", 3); return err },
				} {
					if err := do(); err != nil {
						t.Errorf("%s: %v", what, err)
					}
				}
			})
		}
		all.Wait()
		srv.Latency(0)
		if n := expect.Value(c.Len(t.Context(), "counted"))(t); int(n) != callers {
			t.Errorf("%d calls counted %d", callers, n)
		}
	})
}

// A call that waits for a connection behind the program's own calls, and gets none, was certainly not sent.
func TestAPoolThatIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := crowded(t, srv, 1)
		v := expect.Value(navsession.New(ns[string](t, rdb), navsession.Options{Pages: 3}))(t)
		var others sync.WaitGroup
		others.Go(func() { rdb.BLPop(t.Context(), time.Minute, "nothing") })
		synctest.Wait()
		for _, within := range []time.Duration{20 * time.Millisecond, time.Hour} {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			if err := v.Record(ctx, "ada", "/1"); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
				t.Errorf("Record within %v: %v", within, err)
			}
			if err := v.End(ctx, "ada"); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
				t.Errorf("End within %v: %v", within, err)
			}
		}
		others.Wait()
		wants(t, v, "ada", "")
	})
}

// A Redis that hangs costs a call 150 ms, and soon nothing, until it answers.
func TestARedisThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		v := expect.Value(navsession.New(ns[string](t, crowded(t, srv, 5)), navsession.Options{Pages: 3}))(t)
		expect.OK(t, v.Record(t.Context(), "ada", "/1"))
		srv.Hang()
		for i := range 20 {
			begun := time.Now()
			_, err := v.Len(t.Context(), "ada")
			if took := time.Since(begun); err == nil || took > 150*time.Millisecond || i >= 5 && took > 0 {
				t.Errorf("call %d: %v after %v", i, err, took)
			}
		}
		if err := v.Record(t.Context(), "ada", "/2"); err == nil || errors.Is(err, mayfly.ErrUnknownOutcome) {
			t.Errorf("what was not sent is %v", err)
		}
		srv.Thaw()
		time.Sleep(time.Second)
		wants(t, v, "ada", "/1")
	})
}

// A transaction that gets MOVED follows its key, once.
func TestAVisitThatMoves(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	v := visits(t, cluster.Client(), 9)
	expect.OK(t, v.Record(t.Context(), "ada", "/1"))
	from := cluster.Owner(ns[string](t, cluster.Client()).Prefix + "ada")
	to := cluster.Nodes()[0]
	if to == from {
		to = cluster.Nodes()[1]
	}
	cluster.MoveSlots(0, 16383, to)
	expect.OK(t, v.Record(t.Context(), "ada", "/2"))
	wants(t, v, "ada", "/2 /1")
}
