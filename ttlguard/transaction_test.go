package ttlguard_test

import (
	"strings"
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
	if len(*found) != 1 || !strings.HasPrefix((*found)[0].String(), `incr "cache:m": leaves none, at `) {
		t.Errorf("%v", *found)
	}
}
