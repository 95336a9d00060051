package redistest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

func Example() {
	test := func(t *testing.T) { // yours
		ctx := context.Background()
		srv := redistest.Start(t)
		rdb := srv.Client()

		rdb.Set(ctx, "session", "s1", time.Hour)
		fmt.Println(rdb.Get(ctx, "session").Val(), rdb.TTL(ctx, "session").Val())

		srv.Advance(time.Hour + time.Millisecond)
		fmt.Println(rdb.Get(ctx, "session").Err() == redis.Nil)

		srv.FailNext("get", "LOADING Redis is loading the dataset in memory")
		rdb.Get(ctx, "session") // go-redis tries again
		for _, line := range srv.Log() {
			fmt.Println(line)
		}
	}

	run(test)
	// Output:
	// s1 1h0m0s
	// true
	// set session s1 ex 3600
	// get session
	// ttl session
	// get session
	// get session
	// get session
}

// run calls f with a test, which an example has none of.
func run(f func(t *testing.T)) {
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "example", F: f}})
}
