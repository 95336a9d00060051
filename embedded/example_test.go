package embedded_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/embedded"
)

func Example() {
	ctx := context.Background()
	db, err := embedded.Open(embedded.Options{MaxMemory: 64 << 20, Policy: "allkeys-lru"})
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)

	rdb := db.Client()
	rdb.Set(ctx, "greeting", "hello", time.Minute)
	fmt.Println(rdb.Get(ctx, "greeting").Val(), rdb.TTL(ctx, "greeting").Val())
	// Output: hello 1m0s
}

func ExampleDB_Serve() {
	ctx := context.Background()
	db, err := embedded.Open(embedded.Options{Password: "sesame"})
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go db.Serve(l)

	other := redis.NewClient(&redis.Options{Addr: l.Addr().String(), Password: "sesame"}) // or redis-cli, or any language's
	defer other.Close()
	fmt.Println(other.Ping(ctx).Val())
	// Output: PONG
}

func ExampleOptions_dir() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	db, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	db.Client().Set(ctx, "session:7", "mary", time.Hour)
	db.Close(ctx)

	db, err = embedded.Open(embedded.Options{Dir: dir}) // the program was started again
	if err != nil {
		panic(err)
	}
	defer db.Close(ctx)
	fmt.Println(db.Client().Get(ctx, "session:7").Val(), db.Recovered.Keys)
	// Output: mary 1
}
