package checks

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// The formula in docs/operations.md is an upper bound of what a real Redis uses, and not far above it.
func TestMemoryFormula(t *testing.T) {
	rdb := realredis.Start(t, realredis.Options{}).Client()
	ctx := t.Context()
	used := func() int {
		m, err := rdb.InfoMap(ctx, "memory").Result()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range m["Memory"]["used_memory"] {
			n = n*10 + int(c-'0')
		}
		return n
	}
	const keys, prefix = 8200, "cache:user:" // a little more than a power of 2: Redis's tables are then at their emptiest, or it has two
	for _, size := range []int{10, 100, 1000, 5000} {
		if err := rdb.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		cache, err := cacheaside.New(mayfly.Namespace[int, string]{Name: "users", Redis: rdb, Prefix: prefix, TTL: time.Hour},
			func(context.Context, int) (string, error) { return "", nil }, cacheaside.Options{RedisTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		many, value := map[int]string{}, strings.Repeat("v", size)
		for i := range keys {
			many[10_000+i] = value
		}
		before := used()
		if err := cache.SetMany(ctx, many); err != nil {
			t.Fatal(err)
		}
		key := len(prefix) + 5
		got, most := (used()-before)/keys, 160+key+(50+size)*5/4
		t.Logf("values of %d bytes: %d bytes a key, of %d", size, got, most)
		if got > most || got < most*3/5 {
			t.Errorf("values of %d bytes: %d bytes a key, where the formula says %d at most", size, got, most)
		}
		cache.Close(ctx)
	}
}
