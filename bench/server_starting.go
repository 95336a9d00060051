package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

// A way to have a server for one test.
type starter struct {
	name  string
	bound float64 // of our time over miniredis's
	start func() (rdb *redis.Client, stop func())
}

var starters = []starter{
	{"redistest, in memory", 0.2, func() (*redis.Client, func()) {
		s := must(redistest.Run())
		return s.Client(), s.Close
	}},
	{"redistest, TCP", 0.6, func() (*redis.Client, func()) {
		s := must(redistest.Run())
		return redis.NewClient(&redis.Options{Addr: s.Addr()}), s.Close
	}},
	{"a client alone, to a redistest that runs, TCP", 0, func() (*redis.Client, func()) {
		return redis.NewClient(&redis.Options{Addr: running().Addr()}), func() {}
	}},
	{"miniredis, TCP", 0, func() (*redis.Client, func()) {
		s := must(miniredis.Run())
		return redis.NewClient(&redis.Options{Addr: s.Addr()}), s.Close
	}},
}

// running is a server that is there all the time.
var running = sync.OnceValue(func() *redistest.Server { return must(redistest.Run()) })

// starting measures the cost of a server that lives as long as a test.
func starting(w io.Writer, o settings) {
	// A closed TCP connection keeps its port for a minute, and the kernel takes longer and longer to find free ones. So there are no more than these.
	rounds, instances := o.scale(10, 1), o.scale(100, 20)
	fmt.Fprintf(w, `A server in the test's own process and a go-redis client for it. "First PING": start, connect and PING. "A life": start, SET EX, GET, EXPIRE,
TTL, stop client and server; %d in all. Medians of %d interleaved rounds of %d; ratios to miniredis in the same round, whose bounds are 0.2 in memory
and 0.6 over TCP. The third row has no server to start: what is left is the kernel's and go-redis's. "Left" is found after each round: goroutines, and
live heap per instance (bound 64 KiB).

| server | first PING | x miniredis | a life | x miniredis | CPU time | x miniredis | goroutines left | bytes left |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, rounds*instances, rounds, instances)
	for _, s := range starters {
		life(s) // warm
	}
	type figures struct{ ping, life, cpu, left, bytes []float64 }
	got := make([]figures, len(starters))
	for range rounds {
		for i, s := range starters {
			f := &got[i]
			f.ping = append(f.ping, firstPings(s, instances))
			bare, goroutines := liveHeap(), runtime.NumGoroutine()
			began, spent := time.Now(), cpuTime()
			for range instances {
				life(s)
			}
			f.life = append(f.life, float64(time.Since(began).Microseconds())/float64(instances))
			f.cpu = append(f.cpu, float64((cpuTime()-spent).Microseconds())/float64(instances))
			time.Sleep(50 * time.Millisecond) // for goroutines that are about to end
			f.left = append(f.left, float64(max(runtime.NumGoroutine()-goroutines, 0)))
			f.bytes = append(f.bytes, float64(liveHeap()-bare)/float64(instances))
		}
	}
	mini := &got[len(got)-1]
	for i, s := range starters {
		f := &got[i]
		fmt.Fprintf(w, "| %s | %.0f us | %s | %.0f us | %s | %.0f us | %.2f | %.0f | %.0f |\n", s.name,
			median(f.ping), verdict(ratio(f.ping, mini.ping), s.bound, false),
			median(f.life), verdict(ratio(f.life, mini.life), s.bound, false),
			median(f.cpu), ratio(f.cpu, mini.cpu), median(f.left), max(median(f.bytes), 0))
	}
}

// firstPings returns the mean microseconds from nothing to the first PONG.
func firstPings(s starter, n int) float64 {
	var sum time.Duration
	for range n {
		began := time.Now()
		rdb, stop := s.start()
		if err := rdb.Ping(context.Background()).Err(); err != nil {
			panic(err)
		}
		sum += time.Since(began)
		rdb.Close()
		stop()
	}
	return float64(sum.Microseconds()) / float64(n)
}

// life is the life of one test's server.
func life(s starter) {
	rdb, stop := s.start()
	ctx := context.Background()
	for n := range 4 {
		if err := mix(ctx, rdb, n, "key", "value"); err != nil {
			panic(err)
		}
	}
	rdb.Close()
	stop()
}
