package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

// pipelines measures how long a client waits: for the server in its own process, and for the double in the test's own.
func pipelines(w io.Writer, o settings) {
	const keys, batch = 10_000, 100
	rounds, batches := o.scale(15, 1), o.scale(300, 30)
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key:%07d", i)
	}
	value := strings.Repeat("v", 100)

	servers := startAll()
	defer stopAll(servers)
	fmt.Fprintf(w, `SET EX, GET, EXPIRE and TTL in turn, %d keys, values of 100 bytes, pipelines of %d over TCP, one client (go-redis), each server in its own
process. Wall time per command, median of %d interleaved rounds of %d commands; the ratio is the median of those in one round. The bound of
pipelines is 1.5 x Redis (the aim 1.0).

`, keys, batch, rounds, batches*batch)
	fmt.Fprintln(w, "| pipelines of 100 | per command | x Redis | the server's CPU time | x Redis |\n| --- | --- | --- | --- | --- |")
	wall, cpu := make([][]float64, len(servers)), make([][]float64, len(servers))
	clients := make([]*redis.Client, len(servers))
	for i, s := range servers {
		clients[i] = s.client()
		defer clients[i].Close()
		mixed(clients[i], names, value, batches, batch) // warm
	}
	for range rounds {
		for i, s := range servers {
			spent, began := s.cpu(), time.Now()
			mixed(clients[i], names, value, batches, batch)
			wall[i] = append(wall[i], float64(time.Since(began).Nanoseconds())/float64(batches*batch))
			cpu[i] = append(cpu[i], float64((s.cpu()-spent).Nanoseconds())/float64(batches*batch))
		}
	}
	for i, s := range servers {
		bound := 0.0
		if s.name == theDouble {
			bound = 1.5
		}
		mean := 0.0 // a round is too short for the processes' clocks
		base := 0.0
		for r := range cpu[i] {
			mean += cpu[i][r] / float64(rounds)
			base += cpu[1][r] / float64(rounds)
		}
		fmt.Fprintf(w, "| %s | %.2f us | %s | %.2f us | %.2f |\n", s.name, median(wall[i])/1e3, verdict(ratio(wall[i], wall[1]), bound, false), mean/1e3, mean/base)
	}
	singles(w, o, names, value)
}

// mixed runs batches of the mix.
func mixed(rdb *redis.Client, names []string, value string, batches, batch int) {
	ctx := context.Background()
	for b := range batches {
		p := rdb.Pipeline()
		for i := range batch {
			n := b*batch + i
			mix(ctx, p, n, names[n*7919%len(names)], value)
		}
		p.Exec(ctx) // a GET of a missing key is an error too
	}
}

// mix is the nth command of the mix.
func mix(ctx context.Context, rdb redis.Cmdable, n int, key, value string) error {
	switch n % 4 {
	case 0:
		return rdb.Set(ctx, key, value, time.Hour).Err()
	case 1:
		return rdb.Get(ctx, key).Err()
	case 2:
		return rdb.Expire(ctx, key, time.Hour).Err()
	}
	return rdb.TTL(ctx, key).Err()
}

// singles compares what tests use: one command after the other, the server in the same process.
func singles(w io.Writer, o settings, names []string, value string) {
	double := must(redistest.Run())
	defer double.Close()
	mini := must(miniredis.Run())
	defer mini.Close()
	rounds, n := o.scale(15, 1), o.scale(20_000, 2000)
	fmt.Fprintf(w, `
The same mix, one command at a time, the server in the same process: what a test does. %d interleaved rounds of %d commands. The bound in memory is
0.3 x miniredis, which has no other connection than TCP.

| one command at a time | per command | x miniredis | CPU time, client and server | x miniredis |
| --- | --- | --- | --- | --- |
`, rounds, n)
	ctx := context.Background()
	ways := []struct {
		name  string
		rdb   *redis.Client
		bound float64
	}{
		{"redistest, in memory", double.Client(), 0.3},
		{"redistest, TCP", redis.NewClient(&redis.Options{Addr: double.Addr()}), 0},
		{"miniredis, TCP", redis.NewClient(&redis.Options{Addr: mini.Addr()}), 0},
	}
	wall, cpu := make([][]float64, len(ways)), make([][]float64, len(ways))
	for r := range rounds + 1 {
		for i, way := range ways {
			spent, began := cpuTime(), time.Now()
			for c := range n {
				mix(ctx, way.rdb, c, names[c*7919%len(names)], value)
			}
			if r == 0 {
				continue // warm
			}
			wall[i] = append(wall[i], float64(time.Since(began).Nanoseconds())/float64(n))
			cpu[i] = append(cpu[i], float64((cpuTime()-spent).Nanoseconds())/float64(n))
		}
	}
	for i, way := range ways {
		fmt.Fprintf(w, "| %s | %.1f us | %s | %.1f us | %.2f |\n", way.name,
			median(wall[i])/1e3, verdict(ratio(wall[i], wall[2]), way.bound, false), median(cpu[i])/1e3, ratio(cpu[i], cpu[2]))
		way.rdb.Close()
	}
}
