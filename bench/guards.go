package main

import (
	"context"
	"fmt"
	"io"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/ttlguard"
)

// guards measures what ttlguard costs for commands outside its prefixes.
func guards(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	must(rdb.Set(ctx, "user:1001", "v", 0).Result())
	guard := must(ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:", "session:"}}))
	alone := guard.ProcessHook(func(context.Context, redis.Cmder) error { return nil })
	bare := func(context.Context, redis.Cmder) error { return nil }
	get, set := redis.NewStringCmd(ctx, "get", "user:1001"), redis.NewStatusCmd(ctx, "set", "queue:7", "v")
	const times = 100 // hooks per GET, so that the measured cost is not lost in the noise
	run := func(hook redis.ProcessHook, cmd redis.Cmder) func() {
		return func() {
			for range times {
				hook(ctx, cmd)
			}
		}
	}
	ways := []asked{
		{"a go-redis GET", 0, func() { must(rdb.Get(ctx, "user:1001").Result()) }},
		{"100 calls of nothing", 0, run(bare, get)},
		{"100 GETs through the guard alone", 1, run(alone, get)},
		{"100 SETs of other keys through the guard alone", 0, run(alone, set)},
	}
	fmt.Fprintln(w, "What the guard adds to a command outside its prefixes, beside a GET at real Redis 8, of this process's CPU time. A hundred times the guard may\ncost as much as one GET: 1 %.")
	fmt.Fprintln(w)
	tellPaired(w, ways, o.scale(9, 1), o.scale(20_000, 500))
}
