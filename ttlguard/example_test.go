package ttlguard_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/ttlguard"
)

func Example() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	rdb := db.Client()
	rdb.AddHook(mayfly.Must(ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:"}})))

	fmt.Println(rdb.Set(ctx, "cache:user:1001", "Ada", time.Hour).Err())
	fmt.Println(rdb.Set(ctx, "cache:user:1001", "Ada", 0).Err())
	// Output:
	// <nil>
	// ttlguard: set "cache:user:1001": the key would have no TTL; give it one in the same command, pipeline or transaction
}
