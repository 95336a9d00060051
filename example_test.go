package mayfly_test

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/jitter"
)

// User is what the examples cache.
type User struct{ Name string }

func Example() {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // dials nothing yet
	defer rdb.Close()

	ns := mayfly.Namespace[int64, User]{
		Name:   "users",
		Redis:  rdb,
		Prefix: "cache:user:",
		TTL:    time.Hour,
		Jitter: jitter.Default,
	}
	fmt.Println(ns.Validate())
	fmt.Println(ns.FullKey(1001))

	ns.TTL = 0
	fmt.Println(ns.Validate())
	// Output:
	// <nil>
	// cache:user:1001 <nil>
	// Namespace.TTL must be at least 1ms, got 0s
}
