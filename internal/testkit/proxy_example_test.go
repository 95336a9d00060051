package testkit_test

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/redistest"
)

// A SET arrives long after its client lost the connection, sent it again on another, and was answered.
func Example_proxy() {
	srv, _ := redistest.Run() // in a test: srv := redistest.Start(t), p := proxy.Start(t, srv.Addr()), and nothing to close
	defer srv.Close()
	p, _ := proxy.Run(srv.Addr())
	defer p.Close()
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr()})
	defer rdb.Close()
	ctx := context.Background()

	held := p.Hold("set", "user:7")
	set := make(chan error)
	go func() { set <- rdb.Set(ctx, "user:7", "old", time.Minute).Err() }()
	<-held.Arrived()
	held.Cut() // go-redis sends it again
	fmt.Println("SET:", <-set)
	fmt.Println("DEL:", rdb.Del(ctx, "user:7").Err())

	held.Release()
	<-held.Done()
	fmt.Println("GET:", rdb.Get(ctx, "user:7").Val())
	// Output:
	// SET: <nil>
	// DEL: <nil>
	// GET: old
}

// A cluster's client reaches each node through a proxy address of its own.
func Example_proxyDial() {
	cluster, _ := redistest.RunCluster(3)
	defer cluster.Close()
	p, _ := proxy.Run()
	defer p.Close()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Dialer: p.Dial, MaxRedirects: -1})
	defer rdb.Close()
	ctx := context.Background()

	lost := p.CutAfter("incr", "visits")
	fmt.Println(rdb.Incr(ctx, "visits").Err())
	fmt.Printf("the server had answered %q\n", lost.Reply())
	fmt.Println(rdb.Get(ctx, "visits").Val())
	// Output:
	// EOF
	// the server had answered ":1\r\n"
	// 1
}
