package nodes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/redistest"
)

// A client without ContextTimeoutEnabled is asked as one with it: a call has its whole time, and no more, ends with its context, and the client
// stays as its user made it.
func TestAClientThatIgnoresContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		o.ContextTimeoutEnabled = false
		rdb := redis.NewClient(o)
		defer func() { rdb.Close(); time.Sleep(time.Minute) }()
		before := *rdb.Options()
		node, err := nodes.New(nodes.Options{Redis: rdb, Timeout: 150 * time.Millisecond}).Of(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		ask := func(ctx context.Context) (time.Duration, error) {
			begun := time.Now()
			err := node.Ask1(ctx, redis.NewCmd(ctx, "set", "k", 1))
			return time.Since(begun), err
		}
		if _, err := ask(t.Context()); err != nil {
			t.Fatal(err)
		}
		srv.Latency(120 * time.Millisecond)
		if took, err := ask(t.Context()); err != nil {
			t.Errorf("an answer after 120 ms of 150: %v, after %v", err, took)
		}
		srv.Latency(0)
		srv.Hang()
		if took, err := ask(t.Context()); !errors.Is(err, nodes.ErrSlow) || took != 150*time.Millisecond {
			t.Errorf("a server that hangs: %v, after %v", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if took, err := ask(ctx); err == nil || took != 50*time.Millisecond {
			t.Errorf("a caller who has 50 ms: %v, after %v", err, took)
		}
		if after := rdb.Options(); after.ContextTimeoutEnabled || after.ReadTimeout != before.ReadTimeout || after.WriteTimeout != before.WriteTimeout {
			t.Errorf("the user's client has changed: %+v", after)
		}
	})
}
