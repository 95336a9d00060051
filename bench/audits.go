package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/ttlaudit"
)

// audits measures ttlaudit.Run: at full speed, and what another client notices of one at the default rate.
func audits(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	keys := o.scale(1_000_000, 50_000)
	for i := 0; i < keys; i += 10_000 {
		pipe := rdb.Pipeline()
		for j := i; j < i+10_000; j++ {
			pipe.Set(ctx, fmt.Sprintf("cache:user:%d", j), "a value of some length", time.Duration(min(j%3, 1))*time.Hour)
		}
		must(pipe.Exec(ctx))
	}

	fmt.Fprintf(w, "%d keys, a third without TTL, real Redis 8 on the same machine. The heap is what is in use after a collection, at a tenth of the\nkeys and at the end.\n\n", keys)
	fmt.Fprintln(w, "| | bound | keys/s | heap at a tenth | heap at the end |\n| --- | --- | --- | --- | --- |")
	for _, way := range []struct {
		name  string
		sizes float64
		bound float64
	}{{"full speed", 0, 150_000}, {"full speed, without sizes", -1, 0}} {
		var rates []float64
		for range o.scale(5, 1) {
			begun := time.Now()
			r := must(ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1, Sizes: way.sizes}))
			rates = append(rates, float64(r.Keys)/time.Since(begun).Seconds())
			if r.Keys != int64(keys) || r.NoTTL != int64(keys+2)/3 {
				panic(fmt.Sprintf("%d keys, %d without TTL", r.Keys, r.NoTTL))
			}
		}
		var early, late uint64
		must(ttlaudit.Run(ctx, rdb, ttlaudit.Options{MaxRate: -1, Sizes: way.sizes, Progress: func(p ttlaudit.Progress) {
			if early == 0 && p.Keys > int64(keys/10) {
				early = inUse()
			}
			if late == 0 && p.Keys > int64(keys-2000) {
				late = inUse()
			}
		}}))
		bound, missed := "-", ""
		if way.bound > 0 {
			bound = fmt.Sprintf("%.0f", way.bound)
			if median(rates) < way.bound {
				missed = ", missed"
			}
		}
		fmt.Fprintf(w, "| %s | %s | %.0f%s | %.1f MB | %.1f MB |\n", way.name, bound, median(rates), missed, float64(early)/1e6, float64(late)/1e6)
	}

	lasts := time.Duration(o.scale(20, 2)) * time.Second
	other := tuned(srv.addr)
	defer other.Close()
	idle, busy := time.Duration(0), time.Duration(0)
	var ratios []float64
	for range o.scale(5, 1) {
		i := latencies(other, lasts/4)
		auditing, stop := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for auditing.Err() == nil {
				ttlaudit.Run(auditing, rdb, ttlaudit.Options{})
			}
		}()
		b := latencies(other, lasts/4)
		stop()
		<-done
		idle, busy = i, b
		ratios = append(ratios, float64(b)/float64(i))
	}
	fmt.Fprintf(w, "\nAnother client, one GET a millisecond, for %v at a time: p99 of %v alone and of %v during an audit at the default rate, in the last\nof the rounds; the median ratio of the rounds is %s (bound 2).\n",
		lasts/4, idle.Round(time.Microsecond), busy.Round(time.Microsecond), verdict(median(ratios), 2, false))
}

// inUse is the heap after a collection.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// latencies returns the p99 of a GET a millisecond.
func latencies(rdb *redis.Client, lasts time.Duration) time.Duration {
	var took []time.Duration
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(lasts); time.Now().Before(end); <-tick.C {
		begun := time.Now()
		must(rdb.Get(context.Background(), "cache:user:7").Result())
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}
