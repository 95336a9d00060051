package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

const crowdKeys = 1024

// crowdWay is one way to get one of the keys.
type crowdWay struct {
	name  string
	bound map[int]float64 // of the first one's CPU time, by the number of callers
	get   func(i int)
}

// crowd measures the cost of hits for one caller, and for many simultaneous callers that each read another key: the CPU time of this process, its
// allocations, and the number of commands that Redis gets. Meanwhile other programs keep the processors busy, at the lowest priority: waking a
// processor for each reply would cost more than everything else.
func crowd(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	defer keepBusy()()
	value, text := make([]byte, 1024), must(json.Marshal(anArticle))
	raw, typed := make([]string, crowdKeys), make([]string, crowdKeys)
	for i := range crowdKeys {
		raw[i], typed[i] = fmt.Sprint("raw:", i), fmt.Sprint("typed:", i)
		must(rdb.Set(ctx, raw[i], value, time.Hour).Result())
		must(rdb.Set(ctx, typed[i], text, time.Hour).Result())
	}
	check := func(n, want int) {
		if n != want {
			panic("another value")
		}
	}
	decoded := func(b []byte) {
		var a article
		if err := json.Unmarshal(b, &a); err != nil {
			panic(err)
		}
		check(a.ID, anArticle.ID)
	}
	cachedBytes, cachedTyped := crowdCache(rdb, "bytes", value), crowdCache(rdb, "typed", anArticle)
	ap := must(rdb.AutoPipeline())
	defer ap.Close()
	ru := must(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{srv.addr}, DisableCache: true}))
	defer ru.Close()

	fmt.Fprintf(w, "%d keys of %d bytes, or of %d bytes of JSON that are decoded; all hits. Median of %d interleaved rounds, and of the ratios within a round. Commands: what Redis counts, for a hit.\n",
		crowdKeys, len(value), len(text), o.scale(21, 3))
	tellCrowd(w, o, rdb, []crowdWay{
		{"go-redis's Get", nil, func(i int) { check(len(must(rdb.Get(ctx, raw[i]).Bytes())), len(value)) }},
		{"mayfly", map[int]float64{1: 1.05, 32: 0.60}, func(i int) { check(len(cachedBytes(i)), len(value)) }},
		{"go-redis's AutoPipeline", nil, func(i int) { check(len(must(ap.Get(ctx, raw[i]).Bytes())), len(value)) }},
		{"rueidis", nil, func(i int) { check(len(must(ru.Do(ctx, ru.B().Get().Key(raw[i]).Build()).AsBytes())), len(value)) }},
	})
	tellCrowd(w, o, rdb, []crowdWay{
		{"go-redis's Get, and decode", nil, func(i int) { decoded(must(rdb.Get(ctx, typed[i]).Bytes())) }},
		{"mayfly, typed", map[int]float64{1: 1.10, 32: 0.75}, func(i int) { check(cachedTyped(i).ID, anArticle.ID) }},
	})
}

// crowdCache is a cache that has all the keys, as a function that gets one.
func crowdCache[V any](rdb *redis.Client, name string, value V) func(i int) V {
	ns := mayfly.Namespace[int, V]{Name: name, Redis: rdb, Prefix: "cache:" + name + ":", TTL: time.Hour}
	c := must(cacheaside.New(ns, func(context.Context, int) (V, error) { return value, nil }, cacheaside.Options{Early: earlyrefresh.XFetch(1)}))
	for i := range crowdKeys {
		must(c.Get(context.Background(), i))
	}
	return func(i int) V { return must(c.Get(context.Background(), i)) }
}

func tellCrowd(w io.Writer, o settings, rdb *redis.Client, ways []crowdWay) {
	rounds := o.scale(21, 3)
	for _, callers := range []int{1, 32} {
		ops := o.scale(16000, 3200) / callers
		all := func(get func(i int)) {
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for n := range ops {
						get((c*crowdKeys/callers + n) % crowdKeys)
					}
				})
			}
			wg.Wait()
		}
		n := float64(callers * ops)
		cpu, wall, allocs, commands := make([][]float64, len(ways)), make([][]float64, len(ways)), make([]float64, len(ways)), make([]float64, len(ways))
		for _, way := range ways {
			all(way.get)
		}
		for range rounds {
			for i, way := range ways {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				asked := commandsOf(rdb)
				spent, begun := cpuTime(), time.Now()
				all(way.get)
				cpu[i], wall[i] = append(cpu[i], float64(cpuTime()-spent)/n), append(wall[i], float64(time.Since(begun))/n)
				runtime.ReadMemStats(&after)
				allocs[i] = float64(after.Mallocs-before.Mallocs) / n
				commands[i] = (commandsOf(rdb) - asked) / n
			}
		}
		fmt.Fprintf(w, "\n| %d at once | bound | CPU | ratio | wall time, ratio | allocs | commands |\n| --- | --- | --- | --- | --- | --- | --- |\n", callers)
		for i, way := range ways {
			ratio := func(of [][]float64) float64 {
				each := make([]float64, rounds)
				for r := range each {
					each[r] = of[i][r] / of[0][r]
				}
				return median(each)
			}
			bound, missed := "-", ""
			if b := way.bound[callers]; b > 0 {
				if bound = fmt.Sprintf("%.2f", b); ratio(cpu) > b {
					missed = " (missed)"
				}
			}
			fmt.Fprintf(w, "| %s | %s | %.1f µs | %.2f%s | %.2f | %.0f | %.3f |\n", way.name, bound, median(cpu[i])/1000, ratio(cpu), missed, ratio(wall), math.Round(allocs[i]), commands[i])
		}
	}
}

var called = regexp.MustCompile(`cmdstat_(?:get|pttl|time):calls=(\d+)`)

// commandsOf is how many commands of a read the server has done.
func commandsOf(rdb *redis.Client) (n float64) {
	for _, m := range called.FindAllStringSubmatch(must(rdb.Info(context.Background(), "commandstats").Result()), -1) {
		n += must(strconv.ParseFloat(m[1], 64))
	}
	return n
}

// keepBusy keeps all processors busy, and returns a function that ends that.
func keepBusy() (end func()) {
	var all []*exec.Cmd
	for range runtime.NumCPU() {
		c := exec.Command("nice", "-n", "19", "sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			panic(err)
		}
		all = append(all, c)
	}
	return func() {
		for _, c := range all {
			c.Process.Kill()
			c.Wait()
		}
	}
}
