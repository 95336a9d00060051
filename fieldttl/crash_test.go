package fieldttl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/fieldttl"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// A process that is killed while it sets leaves no key without an end, and no field without the end of its tag.
func TestAProcessThatIsKilled(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	for apart := range 2 {
		processes.Kill(t, 10, "setter", srv.Addr(), fmt.Sprint("MAYFLY_TEST_APART=", apart))
	}
	rdb, ctx := srv.Client(), t.Context()
	processes.EachKey(t, rdb, 100, func(key string) {
		for i, left := range expect.Value(rdb.HPTTL(ctx, key, "ip", "csrf_token").Result())(t) {
			if left == -1 {
				t.Errorf("field %d of %s has no end", i, key)
			}
		}
	})
}

func init() { processes.Roles["setter"] = setForever }

// setForever is the process: it begins new hashes, whole and in part, all the time.
func setForever() int {
	rdb, ctx := processes.Dial(), context.Background()
	s := mayfly.Must(fieldttl.New(mayfly.Namespace[uint64, session]{Name: "sessions", Redis: rdb, Prefix: "s:", TTL: time.Hour}, fieldttl.Options{RedisTimeout: patient}))
	if os.Getenv("MAYFLY_TEST_APART") == "1" {
		s.Apart()
	}
	return processes.Forever(func() {
		key := rand.Uint64()
		s.Set(ctx, key, ada)
		s.SetFields(ctx, key+1, ada, "csrf_token", "user_id")
	})
}
