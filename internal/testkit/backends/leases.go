package backends

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
)

// LongLeases returns a client of rdb's servers on which leases last a minute instead of a second: for tests that are not about time, on
// machines that stall for a second now and then. The timing of leases is tested in bubbles.
func LongLeases(t testing.TB, rdb redis.UniversalClient) redis.UniversalClient {
	long := LongLeasesOf(rdb)
	t.Cleanup(func() { long.Close() })
	return long
}

// LongLeasesOf is [LongLeases] for a process that is not a test.
func LongLeasesOf(rdb redis.UniversalClient) redis.UniversalClient {
	switch c := rdb.(type) {
	case *redis.ClusterClient:
		o := *c.Options()
		o.ContextTimeoutEnabled = true // otherwise no hook sees what the guard sends
		cluster := redis.NewClusterClient(&o)
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(longer{}) })
		return cluster
	case *redis.Client:
		o := *c.Options()
		o.ContextTimeoutEnabled = true
		single := redis.NewClient(&o)
		single.AddHook(longer{})
		return single
	}
	panic(fmt.Sprintf("backends: a client of type %T", rdb))
}

// A lease's milliseconds are the last word of every command that begins, keeps or inherits one.
const leaseMillis, longLeaseMillis = int64(1000), int64(60_000)

type longer struct{}

func (longer) lengthen(cmd redis.Cmder) {
	if args := cmd.Args(); args[len(args)-1] == any(leaseMillis) {
		args[len(args)-1] = longLeaseMillis
	}
}

func (longer) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l longer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.lengthen(cmd)
		return next(ctx, cmd)
	}
}

func (l longer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			l.lengthen(cmd)
		}
		return next(ctx, cmds)
	}
}
