package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	peer "github.com/go-redis/cache/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidisaside"
	"github.com/viccon/sturdyc"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

const (
	beStampeding = "stampede" // the first argument of a child
	stampeders   = 8          // processes
	stampeding   = 64         // callers in each
	loadTakes    = 100 * time.Millisecond
	thinks       = 100 * time.Millisecond // a caller between two Gets, on average
)

// A loader says when its load began, in unix microseconds.
type loader func(context.Context) (int64, error)

// getters are ways to get one hot key, whose value is the time at which its load began.
var getters = []struct {
	name string
	make func(rdb *redis.Client, ttl time.Duration, load loader) loader
}{
	{"GET, load, SET", func(rdb *redis.Client, ttl time.Duration, load loader) loader {
		return func(ctx context.Context) (int64, error) {
			v, err := rdb.Get(ctx, "hot").Int64()
			if !errors.Is(err, redis.Nil) {
				return v, err
			}
			if v, err = load(ctx); err == nil {
				err = rdb.Set(ctx, "hot", v, ttl).Err()
			}
			return v, err
		}
	}},
	{"go-redis/cache", func(rdb *redis.Client, ttl time.Duration, load loader) loader {
		c := peer.New(&peer.Options{Redis: rdb})
		return func(ctx context.Context) (v int64, err error) {
			err = c.Once(&peer.Item{Ctx: ctx, Key: "hot", Value: &v, TTL: ttl, Do: func(*peer.Item) (any, error) { return load(ctx) }})
			return v, err
		}
	}},
	{"sturdyc (in each process)", func(_ *redis.Client, ttl time.Duration, load loader) loader {
		c := sturdyc.New[int64](100, 1, ttl, 10)
		return func(ctx context.Context) (int64, error) {
			return c.GetOrFetch(ctx, "hot", sturdyc.FetchFn[int64](load))
		}
	}},
	{"rueidisaside (with its local copies)", func(rdb *redis.Client, ttl time.Duration, load loader) loader {
		c := must(rueidisaside.NewClient(rueidisaside.ClientOption{ClientOption: rueidis.ClientOption{InitAddress: []string{rdb.Options().Addr}}}))
		return func(ctx context.Context) (int64, error) {
			text, err := c.Get(ctx, ttl, "hot", func(ctx context.Context, _ string) (string, error) {
				v, err := load(ctx)
				return strconv.FormatInt(v, 10), err
			})
			if err != nil {
				return 0, err
			}
			return strconv.ParseInt(text, 10, 64)
		}
	}},
	{earlyWay, func(rdb *redis.Client, ttl time.Duration, load loader) loader {
		return stampedeCache(rdb, ttl, load, false, cacheaside.Options{})
	}},
	{"mayfly, stale while revalidate", func(rdb *redis.Client, ttl time.Duration, load loader) loader {
		return stampedeCache(rdb, ttl, load, false, cacheaside.Options{Early: earlyrefresh.Never, StaleWhile: ttl})
	}},
	{earlyWay + ", with a local tier", func(rdb *redis.Client, ttl time.Duration, load loader) loader {
		return stampedeCache(rdb, ttl, load, true, cacheaside.Options{})
	}},
	{"mayfly, stale while revalidate, with a local tier", func(rdb *redis.Client, ttl time.Duration, load loader) loader {
		return stampedeCache(rdb, ttl, load, true, cacheaside.Options{Early: earlyrefresh.Never, StaleWhile: ttl})
	}},
}

const earlyWay = "mayfly, early refresh"

// stampedeCache also tells Redis how much time the value had left when its renewal began: what early refresh is early by.
func stampedeCache(rdb *redis.Client, ttl time.Duration, load loader, local bool, o cacheaside.Options) loader {
	o.RedisTimeout = 10 * time.Second // a machine that is busy with eight processes is no fault of Redis
	ns := mayfly.Namespace[string, int64]{Name: "hot", Redis: rdb, Prefix: "cache:", TTL: ttl}
	if local {
		ns.Local = must(mayfly.OpenLocal(context.Background(), mayfly.LocalOptions{Redis: rdb, MaxEntries: 1000, Prefixes: []string{ns.Prefix}}))
	}
	var c *cacheaside.Cache[string, int64]
	c = must(cacheaside.New(ns, func(ctx context.Context, _ string) (int64, error) {
		if e, ok, err := c.Lookup(ctx, "hot"); err == nil && ok && e.Fresh > 0 {
			rdb.IncrBy(ctx, "lead", e.Fresh.Microseconds())
			rdb.Incr(ctx, "led")
		}
		return load(ctx)
	}, o))
	return func(ctx context.Context) (int64, error) { return c.Get(ctx, "hot") }
}

// took is what a child tells: how long each Get took and how old its value was, in microseconds.
type took struct{ Took, Age []int64 }

// stampedeChild is one process: addr, getter, ttl and for how long.
func stampedeChild(args []string) {
	rdb := tuned(args[0])
	which, ttl, lasts := must(strconv.Atoi(args[1])), must(time.ParseDuration(args[2])), must(time.ParseDuration(args[3]))
	ctx := context.Background()
	get := getters[which].make(rdb, ttl, func(ctx context.Context) (int64, error) {
		begun := time.Now().UnixMicro()
		n, err := rdb.Incr(ctx, "running").Result()
		if err != nil {
			return 0, err
		}
		rdb.Incr(ctx, "loads")
		rdb.ZAdd(ctx, "most", redis.Z{Score: float64(n), Member: n})
		time.Sleep(loadTakes)
		return begun, rdb.Decr(context.WithoutCancel(ctx), "running").Err()
	})
	rdb.Ping(ctx)
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	var mu sync.Mutex
	var all took
	var failed atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(lasts)
	for range stampeding {
		wg.Go(func() {
			var mine took
			for time.Sleep(rand.N(thinks)); time.Now().Before(end); time.Sleep(rand.N(2 * thinks)) {
				begun := time.Now()
				v, err := get(ctx)
				if err != nil {
					failed.Add(1)
					continue
				}
				mine.Took = append(mine.Took, time.Since(begun).Microseconds())
				mine.Age = append(mine.Age, time.Now().UnixMicro()-v)
			}
			mu.Lock()
			defer mu.Unlock()
			all.Took, all.Age = append(all.Took, mine.Took...), append(all.Age, mine.Age...)
		})
	}
	wg.Wait()
	if n := failed.Load(); n > 0 {
		fmt.Fprintln(os.Stderr, n, "Gets failed")
	}
	if err := json.NewEncoder(os.Stdout).Encode(all); err != nil {
		panic(err)
	}
}

// stampede has processes ask for one hot key over many ends of its life.
func stampede(w io.Writer, o settings) {
	fmt.Fprintf(w, `%d processes of %d callers, each asking every %v for one key, cold at first; a load takes %v. A load goes on counting until it
ends, whoever waits. The age is from the beginning of the load. The bound of early refresh is 1.1 x TTL / (TTL - lead), where lead is
how much time the value had left when a renewal began, on average.

| TTL | expiries | | bound | loads per TTL | most at once | p50 | p99 | max | oldest value |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
`, stampeders, stampeding, thinks, loadTakes)
	for _, ttl := range []time.Duration{time.Second / 2, time.Second, 5 * time.Second, 30 * time.Second} {
		expiries := int(15 * time.Second / ttl)
		if o.quick {
			expiries = 3
		}
		if o.long {
			expiries = 100
		}
		if ttl > time.Second {
			if !o.long {
				continue
			}
			expiries = int(2 * time.Minute / ttl)
		}
		for i := range getters {
			oneStampede(w, i, ttl, expiries)
		}
	}
}

func oneStampede(w io.Writer, which int, ttl time.Duration, expiries int) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	lasts := time.Duration(expiries) * ttl
	type child struct {
		cmd *exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var all []child
	for range stampeders {
		cmd := exec.Command(must(os.Executable()), beStampeding, srv.addr, strconv.Itoa(which), ttl.String(), lasts.String())
		cmd.Stderr = os.Stderr
		c := child{cmd, must(cmd.StdinPipe()), bufio.NewReader(must(cmd.StdoutPipe()))}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		must(c.out.ReadString('\n'))
		all = append(all, c)
	}
	for _, c := range all {
		c.in.Close()
	}
	var sum took
	for _, c := range all {
		var t took
		if err := json.NewDecoder(c.out).Decode(&t); err != nil {
			panic(err)
		}
		if err := c.cmd.Wait(); err != nil {
			panic(err)
		}
		sum.Took, sum.Age = append(sum.Took, t.Took...), append(sum.Age, t.Age...)
	}
	slices.Sort(sum.Took)
	at := func(share float64) time.Duration {
		return time.Duration(sum.Took[int(share*float64(len(sum.Took)-1))]) * time.Microsecond
	}
	most := must(rdb.ZRevRangeWithScores(ctx, "most", 0, 0).Result())[0].Score
	bound := "-"
	if name := getters[which].name; strings.HasPrefix(name, earlyWay) {
		lead, _ := rdb.Get(ctx, "lead").Float64()
		led, _ := rdb.Get(ctx, "led").Float64()
		bound = fmt.Sprintf("%.2f", 1.1*ttl.Seconds()/(ttl.Seconds()-lead/max(led, 1)/1e6))
	} else if strings.HasPrefix(name, "mayfly") {
		bound = "1"
	}
	fmt.Fprintf(w, "| %v | %d | %s | %s | %.2f | %.0f | %v | %v | %v | %v |\n", ttl, expiries, getters[which].name, bound,
		float64(must(rdb.Get(ctx, "loads").Int()))/float64(expiries), most, at(0.5), at(0.99), at(1),
		(time.Duration(slices.Max(sum.Age)) * time.Microsecond).Round(time.Millisecond))
}
