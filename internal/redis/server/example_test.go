package server_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

func Example() {
	ctx := context.Background()
	s, err := server.New(engine.New(engine.Options{}), server.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close(ctx)
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: s.Dial})
	defer rdb.Close()

	rdb.Set(ctx, "greeting", "hello", 0)
	fmt.Println(rdb.Get(ctx, "greeting").Val())
	s.Faults().FailNext("get", "ERR not today")
	fmt.Println(rdb.Get(ctx, "greeting").Err())
	// Output:
	// hello
	// ERR not today
}
