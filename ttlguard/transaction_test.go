package ttlguard_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/ttlguard"
)

func TestDependsIsVerifiedAfterATransaction(t *testing.T) {
	ctx := t.Context()
	rdb, _, found := guarded(t, ttlguard.Options{Verify: true})
	rdb.Set(ctx, "cache:n", 1, time.Minute)
	cmds, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Incr(ctx, "cache:n")
		p.Incr(ctx, "cache:m")
		return nil
	})
	if err != nil || len(cmds) != 2 || cmds[0].(*redis.IntCmd).Val() != 2 {
		t.Errorf("%v, %v", cmds, err)
	}
	if len(*found) != 1 || (*found)[0] != (ttlguard.Finding{Verdict: ttlguard.LeavesNone, Command: "incr", Key: "cache:m"}) {
		t.Errorf("%v", *found)
	}
}
