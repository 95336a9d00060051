package replica_test

import (
	"context"
	"fmt"
	"net"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/replica"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

func Example() {
	ctx := context.Background()
	master, _ := server.New(engine.New(engine.Options{}), server.Options{})
	defer master.Close(ctx)
	copied, _ := server.New(engine.New(engine.Options{}), server.Options{})
	defer copied.Close(ctx)

	link, err := replica.New(replica.Options{
		Do:   copied.Do,
		Dial: func(ctx context.Context, addr string) (net.Conn, error) { return master.Dial(ctx, "", addr) },
	})
	if err != nil {
		panic(err)
	}
	defer link.Close()
	link.Follow("127.0.0.1", 6379)
	fmt.Println(link.InStep(ctx), link.Status().Of)
	// Output: <nil> 127.0.0.1:6379
}
