package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/sliding"
)

// A way does one thing one way, against Redis; others do the same otherwise.
type way struct {
	name  string
	bound float64 // times the first; zero: none
	do    func(ctx context.Context) error
}

// slidings measures what sliding costs beside what one writes by hand.
func slidings(w io.Writer, o settings) {
	server := startRedis()
	defer server.stop()
	rdb := server.client()
	defer rdb.Close()
	ctx := context.Background()

	type session struct {
		User  int64
		Name  string
		Roles []string
		Note  string
	}
	value := session{1001, "Ada Lovelace", []string{"admin", "author"}, string(make([]byte, 100))}
	ns := mayfly.Namespace[string, session]{Name: "sessions", Redis: rdb, Prefix: "session:", TTL: time.Hour}
	store := func(o sliding.Options, prefix string) *sliding.Store[string, session] {
		n := ns
		n.Prefix = prefix
		s := mayfly.Must(sliding.New(n, o))
		if err := s.Set(ctx, "ada", value); err != nil {
			panic(err)
		}
		return s
	}
	get := func(s *sliding.Store[string, session]) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Get(ctx, "ada"); return err }
	}
	rdb.Set(ctx, "hand:ada", must(json.Marshal(value)), time.Hour)
	byHand := func(ctx context.Context) error {
		pipe := rdb.Pipeline()
		got := pipe.Get(ctx, "hand:ada")
		pipe.Expire(ctx, "hand:ada", time.Hour)
		if _, err := pipe.Exec(ctx); err != nil {
			return err
		}
		raw, err := got.Bytes()
		if err != nil {
			return err
		}
		var s session
		return json.Unmarshal(raw, &s)
	}
	fmt.Fprintln(w, "A session of 300 bytes, JSON, one caller, real Redis 8. CPU time per call, of this process and of the server, median of the rounds,")
	fmt.Fprintln(w, "which alternate; the ratio is the median of those in one round.")
	fmt.Fprintln(w)
	compete(w, o, server, []way{
		{"GET and EXPIRE by hand, pipelined", 0, byHand},
		{"sliding.Get", 1.05, get(store(sliding.Options{}, "a:"))},
		{"sliding.Get, Atomic (GETEX)", 0, get(store(sliding.Options{Atomic: true}, "b:"))},
		{"sliding.Get, TouchBelow 0.5", 0, get(store(sliding.Options{TouchBelow: 0.5}, "c:"))},
		{"sliding.Get, MaxAge", 0, get(store(sliding.Options{MaxAge: 24 * time.Hour}, "d:"))},
	})

	limiters(w, o, server)
}

// compete measures ways in rounds, in which they take turns, and writes a table of them, each beside the first.
func compete(w io.Writer, o settings, server *contender, ways []way) {
	ctx := context.Background()
	const turn = 250 // calls: short, so that who else uses the machine disturbs all alike
	rounds, turns := o.scale(11, 2), o.scale(32, 2)
	client, whole, allocs := make([][]float64, len(ways)), make([][]float64, len(ways)), make([]float64, len(ways))
	call := func(way way) {
		for range turn {
			if err := way.do(ctx); err != nil {
				panic(fmt.Sprint(way.name, ": ", err))
			}
		}
	}
	for i, way := range ways {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		call(way)
		runtime.ReadMemStats(&after)
		allocs[i] = float64(after.Mallocs-before.Mallocs) / turn
	}
	for range rounds {
		mine, its := make([]time.Duration, len(ways)), make([]time.Duration, len(ways))
		runtime.GC()
		for range turns {
			for i, way := range ways {
				here, there := cpuTime(), server.mainThread()
				call(way)
				mine[i] += cpuTime() - here
				its[i] += server.mainThread() - there
			}
		}
		for i := range ways {
			calls := float64(turns * turn)
			client[i] = append(client[i], float64(mine[i])/calls)
			whole[i] = append(whole[i], float64(mine[i]+its[i])/calls)
		}
	}
	fmt.Fprintln(w, "| | here | x the first | with the server's | x the first | bound | allocs |\n| --- | --- | --- | --- | --- | --- | --- |")
	for i, r := range ways {
		bound := "-"
		if r.bound > 0 {
			bound = fmt.Sprint(r.bound)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %.2f | %s | %.0f |\n", r.name, perCall(median(client[i])),
			verdict(ratio(client[i], client[0]), r.bound, false), perCall(median(whole[i])), ratio(whole[i], whole[0]), bound, allocs[i])
	}
	fmt.Fprintln(w)
}

// perCall is a time, in nanoseconds where microseconds would say little.
func perCall(ns float64) string {
	if ns < 2000 {
		return fmt.Sprintf("%.0f ns", ns)
	}
	return fmt.Sprintf("%.1f us", ns/1e3)
}

// mainThread is what the server's main thread has spent, to the nanosecond: all there is to Redis.
func (c *contender) mainThread() time.Duration {
	var ns int64
	must(fmt.Sscan(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", c.cmd.Process.Pid)))), &ns))
	return time.Duration(ns)
}
