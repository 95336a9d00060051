package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// A served replica has what its master has, refuses writes until it is promoted, and expires by itself then.
func TestServeFollows(t *testing.T) {
	addr, master := serving(t, "--requirepass", "sesame")
	ctx := t.Context()
	master.Set(ctx, "k", "v", time.Hour)
	banner, stop := started(t, "--addr", "127.0.0.1:0", "--replicaof", "redis://:sesame@"+addr)
	defer stop()
	if !strings.Contains(banner, "follows "+addr) || strings.Contains(banner, "sesame") {
		t.Errorf("the banner: %s", banner)
	}
	replica := newTestClient(t, addresses.FindAllString(banner, -1)[0])
	expect.Eventually(t, "it has the key", func() bool { return replica.Get(ctx, "k").Val() == "v" })
	if end := master.PExpireTime(ctx, "k").Val(); replica.PExpireTime(ctx, "k").Val() != end {
		t.Errorf("the end is not %d", end)
	}
	if err := replica.Set(ctx, "own", "v", time.Hour).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
		t.Errorf("a write: %v", err)
	}
	if err := replica.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	replica.Set(ctx, "own", "v", time.Millisecond)
	expect.Eventually(t, "it expires by itself", func() bool { return replica.DBSize(ctx).Val() == 1 })
}
