package navsession_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/navsession"
)

// A process that is killed while it records leaves no key without an end.
func TestAProcessThatIsKilled(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	processes.Kill(t, 20, "recorder", srv.Addr())
	processes.EachKey(t, srv.Client(), 100, func(string) {})
}

func init() { processes.Roles["recorder"] = recordForever }

// recordForever is the process: it begins new visits of all kinds all the time.
func recordForever() int {
	rdb, ctx := processes.Dial(), context.Background()
	v := mayfly.Must(navsession.New(mayfly.Namespace[uint64, string]{Name: "visits", Redis: rdb, Prefix: "v:", TTL: time.Hour}, navsession.Options{Pages: 2, RedisTimeout: patient}))
	c := mayfly.Must(navsession.NewCounter(mayfly.Namespace[uint64, int64]{Name: "counters", Redis: rdb, Prefix: "c:", TTL: time.Hour}, navsession.CounterOptions{RedisTimeout: patient}))
	r := mayfly.Must(navsession.NewRelated(mayfly.Namespace[uint64, uint64]{Name: "related", Redis: rdb, Prefix: "r:", TTL: time.Hour}, navsession.RelatedOptions{RedisTimeout: patient}))
	return processes.Forever(func() {
		user := rand.Uint64()
		v.Record(ctx, user, "/")
		c.Record(ctx, user)
		r.Record(ctx, user, user+1, user+2)
	})
}
