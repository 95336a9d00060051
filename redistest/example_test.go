package redistest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

func ExampleRunCluster() {
	ctx := context.Background()
	cluster, err := redistest.RunCluster(3) // in a test: cluster := redistest.StartCluster(t, 3), and no Close
	if err != nil {
		panic(err)
	}
	defer cluster.Close()
	rdb := cluster.Client()
	defer rdb.Close()

	rdb.Set(ctx, "user:1", "Ada", time.Hour)
	fmt.Println(rdb.MGet(ctx, "user:1", "user:2").Err())

	old := cluster.Owner("user:1")
	next := cluster.Nodes()[0]
	cluster.MoveSlots(0, 16383, next) // a resharding that the client has not heard of
	fmt.Println(old.Client().Get(ctx, "user:1").Err())
	fmt.Println(rdb.Get(ctx, "user:1").Val())
	// Output:
	// CROSSSLOT Keys in request don't hash to the same slot
	// MOVED 10778 127.0.0.1:6379
	// Ada
}

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
