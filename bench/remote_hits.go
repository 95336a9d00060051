package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

// article is about a kibibyte as JSON.
type article struct {
	ID    int
	Title string
	Text  string
	Tags  []string
}

var anArticle = article{7, "a title", strings.Repeat("some text ", 92), []string{"a", "b"}}

// asked is one way to get what is stored.
type asked struct {
	name  string
	bound float64 // of the first one's
	get   func()
}

// articles is a cache that must find everything in Redis once it was loaded: a second load of a key ends the program.
func articles(rdb redis.UniversalClient, early earlyrefresh.Policy) *cacheaside.Cache[int, article] {
	var loaded sync.Map
	ns := mayfly.Namespace[int, article]{Name: "articles", Redis: rdb, Prefix: "cache:article:", TTL: time.Hour}
	return must(cacheaside.New(ns, func(_ context.Context, key int) (article, error) {
		if _, again := loaded.LoadOrStore(key, true); again {
			panic("not a hit")
		}
		a := anArticle
		a.ID = key
		return a, nil
	},
		cacheaside.Options{Early: early, RedisTimeout: 10 * time.Second}))
}

func tuned(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, PoolSize: 64})
}

// paired runs every way in turns, and returns the median CPU time of each, its median ratio to the first's in the same
// round, and what it allocates.
func paired(ways []asked, rounds, ops int) (ns, ratio, allocs []float64) {
	cpu := make([][]float64, len(ways))
	allocs = make([]float64, len(ways))
	for range rounds {
		for i, w := range ways {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			begun := cpuTime()
			for range ops {
				w.get()
			}
			cpu[i] = append(cpu[i], float64(cpuTime()-begun)/float64(ops))
			runtime.ReadMemStats(&after)
			allocs[i] = float64(after.Mallocs-before.Mallocs) / float64(ops)
		}
	}
	for i := range ways {
		ratios := make([]float64, rounds)
		for r := range ratios {
			ratios[r] = cpu[i][r] / cpu[0][r]
		}
		ns, ratio = append(ns, median(cpu[i])), append(ratio, median(ratios))
	}
	return ns, ratio, allocs
}

func tellPaired(w io.Writer, ways []asked, rounds, ops int) {
	ns, ratio, allocs := paired(ways, rounds, ops)
	fmt.Fprintf(w, "Median of %d interleaved rounds of %d operations.\n\n| | bound | CPU | ratio | allocs more |\n| --- | --- | --- | --- | --- |\n", rounds, ops)
	for i, way := range ways {
		bound, missed := "-", ""
		if way.bound > 0 {
			bound = fmt.Sprint(way.bound)
			if ratio[i] > way.bound {
				missed = " (missed)"
			}
		}
		took := fmt.Sprintf("%.1f µs", ns[i]/1000)
		if ns[i] < 1000 {
			took = fmt.Sprintf("%.0f ns", ns[i])
		}
		fmt.Fprintf(w, "| %s | %s | %s | %.2f%s | %+.0f |\n", way.name, bound, took, ratio[i], missed, math.Round(allocs[i]-allocs[0])+0)
	}
}

// remoteHits measures what a hit in Redis costs beyond go-redis and the codec.
func remoteHits(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	text := must(json.Marshal(anArticle))
	must(rdb.Set(ctx, "raw:7", text, time.Hour).Result())
	raw := func() {
		var a article
		if err := json.Unmarshal(must(rdb.Get(ctx, "raw:7").Bytes()), &a); err != nil || a.ID != 7 {
			panic(err)
		}
	}
	cached := func(early earlyrefresh.Policy) func() {
		c := articles(rdb, early)
		return func() {
			if must(c.Get(ctx, 7)).ID != 7 {
				panic("another article")
			}
		}
	}
	ways := []asked{{"go-redis's Get, and decode", 0, raw}, {"mayfly, never early", 1.05, cached(earlyrefresh.Never)}, {"mayfly, as by default", 1.10, cached(nil)}}
	for _, way := range ways {
		way.get()
	}
	fmt.Fprintf(w, "A hit in Redis of %d bytes of JSON, without local tier, one caller.\n\n", len(text))
	tellPaired(w, ways, o.scale(81, 1), 500) // short rounds: the machine is not the same for long

	ap := must(rdb.AutoPipeline())
	defer ap.Close()
	piped := articles(ap, earlyrefresh.Never)
	const callers = 32
	wall := func(get func()) float64 {
		var wg sync.WaitGroup
		begun := time.Now()
		for range callers {
			wg.Go(func() {
				for range o.scale(1000, 100) {
					get()
				}
			})
		}
		wg.Wait()
		return time.Since(begun).Seconds()
	}
	var ratios, floor []float64
	for range o.scale(7, 1) {
		base := wall(raw)
		ratios = append(ratios, wall(func() { must(piped.Get(ctx, 7)) })/base)
		floor = append(floor, wall(func() {
			var a article
			if err := json.Unmarshal(must(ap.Get(ctx, "raw:7").Bytes()), &a); err != nil || a.ID != 7 {
				panic(err)
			}
		})/base)
	}
	missed := ""
	if median(ratios) > 0.65 {
		missed = " (missed)"
	}
	fmt.Fprintf(w, "\n%d callers at once, mayfly over go-redis's AutoPipeline: %.2f of the wall time of go-redis without it, bound 0.65%s. Without mayfly, over AutoPipeline: %.2f.\n", callers, median(ratios), missed, median(floor))
}

// manyHits measures a call about a hundred keys that are all there.
func manyHits(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	const n = 100
	keys := make([]int, n)
	for i := range keys {
		keys[i] = i
		must(rdb.Set(ctx, fmt.Sprint("raw:", i), must(json.Marshal(anArticle)), time.Hour).Result())
	}
	c := articles(rdb, earlyrefresh.Never)
	timed := articles(rdb, nil)
	all := func(c *cacheaside.Cache[int, article]) func() {
		return func() {
			if len(must(c.GetMany(ctx, keys))) != n {
				panic("some are missing")
			}
		}
	}
	ways := []asked{{"go-redis's pipeline of 100 GETs, and decode", 0, func() {
		pipe := rdb.Pipeline()
		cmds := make([]*redis.StringCmd, n)
		for i := range cmds {
			cmds[i] = pipe.Get(ctx, fmt.Sprint("raw:", keys[i]))
		}
		must(pipe.Exec(ctx))
		found := make(map[int]article, n)
		for i, cmd := range cmds {
			var a article
			if err := json.Unmarshal(must(cmd.Bytes()), &a); err != nil {
				panic(err)
			}
			found[i] = a
		}
	}}, {"mayfly's GetMany", 1.15, all(c)}, {"mayfly's GetMany, as by default", 1.15, all(timed)}}
	for _, way := range ways {
		way.get()
	}
	fmt.Fprint(w, "100 keys, all hits, in one round trip.\n\n")
	tellPaired(w, ways, o.scale(9, 1), o.scale(150, 20))
}
