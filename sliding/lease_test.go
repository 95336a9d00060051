package sliding_test

import (
	"context"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// trips counts the trips of a client, remembers the last command, and can delay answers.
type trips struct {
	atomic.Int64
	last atomic.Value // a single command, as a []any
	late atomic.Int64 // how long answers take, in ns
}

func (n *trips) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (n *trips) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		n.Add(1)
		n.last.Store(slices.Clone(cmd.Args()))
		defer time.Sleep(time.Duration(n.late.Load()))
		return next(ctx, cmd)
	}
}

func (n *trips) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { n.Add(1); return next(ctx, cmds) }
}

// loads say how often each of n processes asks in a millisecond of a run, as multiples of an eighth of the limit.
var loads = map[string]func(p, ms int) float64{
	"even, twice the limit":    func(int, int) float64 { return 2 },
	"even, at the limit":       func(int, int) float64 { return 1.02 },
	"even, just below":         func(int, int) float64 { return 0.95 },
	"skewed, 1.3 of the limit": func(p, _ int) float64 { return 1.3 * 8 / float64(p+1) / 2.718 },
	"skewed, at the limit":     func(p, _ int) float64 { return 8 / float64(p+1) / 2.718 },
	"one has nearly all":       func(p, _ int) float64 { return map[bool]float64{true: 8.2, false: 0.05}[p == 0] },
	"bursts":                   func(p, ms int) float64 { return map[bool]float64{true: 5, false: 0.1}[(ms/130+p)%4 == 0] },
	"the load moves":           func(p, ms int) float64 { return map[bool]float64{true: 9, false: 0}[ms/170%8 == p] },
	"all come, then nobody":    func(_, ms int) float64 { return map[bool]float64{true: 4, false: 0}[ms/300%2 == 0] },
	"ten times the limit":      func(int, int) float64 { return 10 },
}

func poisson(r *rand.Rand, mean float64) (n int) {
	for p := r.Float64(); p > math.Exp(-mean); p *= r.Float64() {
		n++
	}
	return n
}

// Eight processes share a limit that gives each a hundred calls in the time of a lease, with loads of all kinds. As a rule one Allow in fifty
// makes a trip, and the calls admitted differ by at most 2 % of the limit from those of a limiter that asks each time.
func TestFewTrips(t *testing.T) {
	for name, load := range loads {
		for kind, o := range windows {
			if !effort.Long() && (name != "skewed, at the limit" || kind != "sliding") {
				continue
			}
			t.Run(kind+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const lease, each, most = 50 * time.Millisecond, 100, 0.02
					window := 20 * lease
					if kind == "strict" {
						window *= 2 // a share ends with its part, a 16th
					}
					const processes = 8
					limit := int(window/lease) * each * processes
					srv := redistest.Start(t)
					r := rand.New(rand.NewPCG(effort.Seed(t, 1), 0))
					var count trips
					var ps []*sliding.Limiter[string]
					for range processes {
						rdb := redis.NewClient(srv.Options())
						defer rdb.Close()
						rdb.AddHook(&count)
						o.Limit, o.Lease = limit, lease
						l := mayfly.Must(sliding.NewLimiter(calls(rdb, window), o))
						defer l.Close(t.Context())
						ps = append(ps, l)
					}
					asked, admitted, want := 0, 0, 0
					ref := exact{kind, limit, int(window / time.Millisecond), 0, map[int]int{}}
					runs := time.Duration(effort.Times(1500, 5000)) * time.Millisecond
					time.Sleep(time.Until(time.Now().Truncate(window).Add(window)))
					for ms := range int(runs / time.Millisecond) {
						for p, l := range ps {
							for range poisson(r, load(p, ms)*each/float64(lease/time.Millisecond)) {
								asked++
								d, err := l.Allow(t.Context(), "ada", 1)
								if err != nil {
									t.Fatal(err)
								}
								if d.Allowed {
									admitted++
								}
								if ref.allow(ms) {
									want++
								}
							}
						}
						time.Sleep(time.Millisecond)
					}
					unused := float64(want-admitted) / float64(limit) * float64(window) / float64(runs)
					per := float64(count.Load()) / float64(asked)
					t.Logf("%d asked, %d admitted, %d if asked each time: %.2f %% of the limit unused; %.4f trips an Allow", asked, admitted, want, 100*unused, per)
					if unused > most || per > most || admitted < limit/2 {
						t.Errorf("%.4f of the limit unused, %.4f trips an Allow, %d admitted", unused, per, admitted)
					}
				})
			})
		}
	}
}

// exact counts like a limiter that asks Redis each time.
type exact struct {
	kind          string
	limit, window int
	end           int
	counts        map[int]int
}

func (e *exact) allow(ms int) bool {
	switch e.kind {
	case "fixed":
		if ms >= e.end {
			e.end = ms + e.window
			clear(e.counts)
		}
		if e.counts[0] < e.limit {
			e.counts[0]++
			return true
		}
	case "sliding":
		i, over := ms/e.window, ms%e.window
		before := e.counts[i-1]
		if e.counts[i]+1+(before*(e.window-over)+e.window-1)/e.window <= e.limit {
			e.counts[i]++
			return true
		}
	case "strict":
		part := (e.window + 15) / 16
		i, sum := ms/part, 0
		for p := i - 16; p <= i; p++ {
			sum += e.counts[p]
		}
		if sum < e.limit {
			e.counts[i]++
			return true
		}
	}
	return false
}
