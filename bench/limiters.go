package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/sliding"
)

const (
	manyCalls = 1 << 30 // a limit that is not reached
	lease     = 50 * time.Millisecond
)

// limiters measures the cost of a counted call.
func limiters(w io.Writer, o settings, server *contender) {
	rdb := server.client()
	defer rdb.Close()
	nothing := redis.NewScript("return 0")
	leased := allow(rdb, sliding.LimiterOptions{Lease: lease})
	compete(w, o, server, append(oneTrip(rdb),
		way{"a script that does nothing", 0, func(ctx context.Context) error { return nothing.Run(ctx, rdb, []string{"ada"}, 1).Err() }},
		way{"sliding.Limiter.Allow, Lease of 50 ms", 0, leased},
		way{"sliding.Limiter.Allow, Sliding, Lease of 50 ms", 0, allow(rdb, sliding.LimiterOptions{Sliding: true, Lease: lease})},
	))
	fmt.Fprintln(w, "With a Lease one call in each turn of 250 is a trip here.")
	fmt.Fprintln(w)
	inPipelines(w, o, server)
	alone(w, o, leased)
}

// oneTrip are the ways to count a call by a trip of its own.
func oneTrip(rdb *redis.Client) []way {
	rate := redis_rate.NewLimiter(rdb)
	second, hour := limiter(rdb, time.Second, sliding.LimiterOptions{}), limiter(rdb, time.Hour, sliding.LimiterOptions{})
	return []way{
		{"redis_rate.Allow", 0, func(ctx context.Context) error {
			_, err := rate.Allow(ctx, "ada", redis_rate.PerHour(manyCalls))
			return err
		}},
		{"sliding.Limiter.Allow", 0.8, allow(rdb, sliding.LimiterOptions{})},
		{"sliding.Limiter.Allow, Sliding", 0, allow(rdb, sliding.LimiterOptions{Sliding: true})},
		{"sliding.Limiter.Allow, Strict", 0, allow(rdb, sliding.LimiterOptions{Strict: true})},
		{"sliding.AllowAll, two limits", 0, func(ctx context.Context) error {
			_, _, err := sliding.AllowAll(ctx, second.Ask("ada", 1), hour.Ask("ada", 1))
			return err
		}},
	}
}

// limiter returns a limiter with a prefix of its own.
func limiter(rdb *redis.Client, window time.Duration, o sliding.LimiterOptions) *sliding.Limiter[string] {
	o.Limit = manyCalls
	prefix := fmt.Sprintf("limit:%v:%v:%v:%v:", window, o.Sliding, o.Strict, o.Lease)
	return mayfly.Must(sliding.NewLimiter(mayfly.Namespace[string, int64]{Name: "calls", Redis: rdb, Prefix: prefix, TTL: window}, o))
}

func allow(rdb *redis.Client, o sliding.LimiterOptions) func(context.Context) error {
	l := limiter(rdb, time.Hour, o)
	return func(ctx context.Context) error { _, err := l.Allow(ctx, "ada", 1); return err }
}

// lastScript remembers the script that was called last.
type lastScript struct{ args []any }

func (l *lastScript) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (l *lastScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		l.see(cmd)
		return next(ctx, cmd)
	}
}

func (l *lastScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			l.see(cmd)
		}
		return next(ctx, cmds)
	}
}

func (l *lastScript) see(cmd redis.Cmder) {
	if cmd.Name() == "evalsha" {
		l.args = slices.Clone(cmd.Args())
	}
}

// inPipelines measures what calls cost a server that is never idle: the script of each way, with its arguments, in pipelines.
func inPipelines(w io.Writer, o settings, server *contender) {
	const turn = 250
	rdb, ctx, last := redis.NewClient(&redis.Options{Addr: server.addr, ContextTimeoutEnabled: true}), context.Background(), new(lastScript) // mayfly uses it as it is, with its hooks
	defer rdb.Close()
	rdb.AddHook(last)
	ways := oneTrip(rdb)
	scripts := make([][]any, len(ways))
	for i, way := range ways {
		must(0, way.do(ctx))
		scripts[i] = last.args
	}
	costs := make([][]float64, len(ways))
	for range o.scale(200, 5) {
		for i := range ways {
			before := server.mainThread()
			must(rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
				for range turn {
					pipe.Do(ctx, scripts[i]...)
				}
				return nil
			}))
			costs[i] = append(costs[i], float64(server.mainThread()-before)/turn)
		}
	}
	fmt.Fprintln(w, "What the same scripts cost the server alone, in pipelines, where it does not wait for the next: the ways take turns, medians of the rounds.")
	fmt.Fprintln(w)
	fmt.Fprintln(w, "| | the server | x the first | bound |\n| --- | --- | --- | --- |")
	for i, way := range ways {
		bound := "-"
		if way.bound > 0 {
			bound = fmt.Sprint(way.bound)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", way.name, perCall(median(costs[i])), verdict(ratio(costs[i], costs[0]), way.bound, false), bound)
	}
	fmt.Fprintln(w)
}

// alone measures consecutive calls, nearly all of which need no trip.
func alone(w io.Writer, o settings, do func(context.Context) error) {
	ctx, calls := context.Background(), o.scale(1_000_000, 10_000)
	for range calls / 10 { // its shares grow as large as it needs them
		must(0, do(ctx))
	}
	var each []float64
	for range 5 {
		before := cpuTime()
		for range calls {
			must(0, do(ctx))
		}
		each = append(each, float64(cpuTime()-before)/float64(calls))
	}
	missed := ""
	if median(each) > 300 {
		missed = ", missed"
	}
	fmt.Fprintf(w, "With a Lease, a call that needs no trip: %s, bound 300 ns%s.\n", perCall(median(each)), missed)
	fmt.Fprintln(w)
}
