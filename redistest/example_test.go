package redistest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

func Example() {
	ctx := context.Background()
	srv, err := redistest.Run() // in a test: srv := redistest.Start(t), and no Close
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	rdb := srv.Client()
	defer rdb.Close()

	rdb.Set(ctx, "session", "s1", time.Hour)
	fmt.Println(rdb.Get(ctx, "session").Val(), rdb.TTL(ctx, "session").Val())

	srv.Advance(time.Hour + time.Millisecond)
	fmt.Println(rdb.Get(ctx, "session").Err() == redis.Nil)

	srv.FailNext("get", "ERR out of order")
	fmt.Println(rdb.Get(ctx, "session").Err())

	for _, line := range srv.Log() {
		fmt.Println(line)
	}
	// Output:
	// s1 1h0m0s
	// true
	// ERR out of order
	// set session s1 ex 3600
	// get session
	// ttl session
	// get session
	// get session
}
