package cacheaside_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

type page struct {
	ID    int
	Title string
	Text  string
	Tags  []string
}

// hits are a hit read by go-redis and decoded, and by caches without and with early refresh.
func hits(t testing.TB) (raw, plain, timed func()) {
	srv := realredis.Start(t, realredis.Options{})
	o := srv.Options()
	o.ContextTimeoutEnabled = true
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	ctx := context.Background()
	value := page{7, "a title", strings.Repeat("some text ", 90), []string{"a", "b"}}
	make := func(early earlyrefresh.Policy) func() {
		ns := mayfly.Namespace[int, page]{Name: "pages", Redis: rdb, Prefix: "cache:page:", TTL: time.Hour}
		c := must[int, page](t)(cacheaside.New(ns, func(context.Context, int) (page, error) { return value, nil },
			cacheaside.Options{Early: early, RedisTimeout: patient}))
		get := func() {
			if p, err := c.Get(ctx, 7); p.ID != 7 || err != nil {
				t.Fatal(p, err)
			}
		}
		get()
		return get
	}
	plain, timed = make(earlyrefresh.Never), make(nil)
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := rdb.Set(ctx, "raw:7", text, time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	raw = func() {
		b, err := rdb.Get(ctx, "raw:7").Bytes()
		var p page
		if err == nil {
			err = json.Unmarshal(b, &p)
		}
		if p.ID != 7 || err != nil {
			t.Fatal(p, err)
		}
	}
	return raw, plain, timed
}

func TestWhatARemoteHitAllocates(t *testing.T) {
	effort.Alone(t) // and the race detector empties pools at random
	raw, plain, timed := hits(t)
	base := testing.AllocsPerRun(500, raw)
	for _, c := range []struct {
		name string
		get  func()
		more float64
	}{{"never early", plain, 2}, {"by default", timed, 2}} {
		n := testing.AllocsPerRun(500, c.get)
		t.Logf("%s: %v, go-redis and decode %v", c.name, n, base)
		if n > base+c.more {
			t.Errorf("%s: %v allocations, %v more than go-redis and decode; at most %v more", c.name, n, n-base, c.more)
		}
	}
}

func BenchmarkGet(b *testing.B) {
	raw, plain, timed := hits(b)
	for _, c := range []struct {
		name string
		get  func()
	}{{"go-redis", raw}, {"hit/redis", plain}, {"hit/redis with early refresh", timed}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.get()
			}
		})
	}
}
