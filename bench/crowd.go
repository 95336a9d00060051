package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

// crowd measures what hits cost when many callers want them at once, each another key: the CPU time of this process, and what it
// allocates.
func crowd(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	const callers, keys = 32, 1024
	value := make([]byte, 1024)
	for i := range keys {
		must(rdb.Set(ctx, fmt.Sprint("raw:", i), value, time.Hour).Result())
	}
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprint("raw:", i)
	}
	check := func(n int) {
		if n != len(value) {
			panic("another value")
		}
	}
	cached := func(early earlyrefresh.Policy) func(i int) {
		ns := mayfly.Namespace[int, []byte]{Name: "crowd", Redis: rdb, Prefix: fmt.Sprintf("cache:%v:", early == nil), TTL: time.Hour}
		c := must(cacheaside.New(ns, func(context.Context, int) ([]byte, error) { return value, nil }, cacheaside.Options{Early: early}))
		for i := range keys {
			must(c.Get(ctx, i))
		}
		return func(i int) { check(len(must(c.Get(ctx, i)))) }
	}
	ap := must(rdb.AutoPipeline())
	defer ap.Close()
	ru := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.addr}, DisableCache: true}))
	defer ru.Close()
	ways := []struct {
		name  string
		bound float64
		get   func(i int)
	}{
		{"go-redis's Get", 0, func(i int) { check(len(must(rdb.Get(ctx, names[i]).Bytes()))) }},
		{"mayfly, a plain GET", 0.60, cached(earlyrefresh.Never)},
		{"mayfly, with the time left, as by default", 0, cached(nil)},
		{"go-redis's AutoPipeline", 0, func(i int) { check(len(must(ap.Get(ctx, names[i]).Bytes()))) }},
		{"rueidis", 0, func(i int) { check(len(must(ru.Do(ctx, ru.B().Get().Key(names[i]).Build()).AsBytes()))) }},
	}
	rounds, ops := o.scale(15, 3), o.scale(1000, 300)
	all := func(get func(i int)) {
		var wg sync.WaitGroup
		for c := range callers {
			wg.Go(func() {
				for n := range ops {
					get((c*keys/callers + n) % keys)
				}
			})
		}
		wg.Wait()
	}
	cpu, wall, allocs := make([][]float64, len(ways)), make([][]float64, len(ways)), make([]float64, len(ways))
	for _, way := range ways {
		all(way.get)
	}
	for range rounds {
		for i, way := range ways {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			spent, begun := cpuTime(), time.Now()
			all(way.get)
			cpu[i], wall[i] = append(cpu[i], float64(cpuTime()-spent)/float64(callers*ops)), append(wall[i], float64(time.Since(begun))/float64(callers*ops))
			runtime.ReadMemStats(&after)
			allocs[i] = float64(after.Mallocs-before.Mallocs) / float64(callers*ops)
		}
	}
	fmt.Fprintf(w, "%d callers at once, %d keys of %d bytes, all hits. Median of %d interleaved rounds of %d operations.\n\n", callers, keys, len(value), rounds, callers*ops)
	fmt.Fprint(w, "| | bound | CPU | ratio | wall time, ratio | allocs |\n| --- | --- | --- | --- | --- | --- |\n")
	for i, way := range ways {
		ratio := func(of [][]float64) float64 {
			all := make([]float64, rounds)
			for r := range all {
				all[r] = of[i][r] / of[0][r]
			}
			return median(all)
		}
		bound, missed := "-", ""
		if way.bound > 0 {
			if bound = fmt.Sprint(way.bound); ratio(cpu) > way.bound {
				missed = " (missed)"
			}
		}
		fmt.Fprintf(w, "| %s | %s | %.1f µs | %.2f%s | %.2f | %.0f |\n", way.name, bound, median(cpu[i])/1000, ratio(cpu), missed, ratio(wall), math.Round(allocs[i]))
	}
}
