package sliding_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

func TestALocalHitAllocatesNothing(t *testing.T) {
	srv := redistest.Start(t)
	ns := namespace(srv.Client())
	ns.Local = mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: srv.Client(), Prefixes: []string{ns.Prefix}, MaxEntries: 100}))
	defer ns.Local.Close(context.Background())
	s := mayfly.Must(sliding.New(ns, sliding.Options{MaxAge: 12 * time.Hour}))
	want(t, s.Create(t.Context(), "ada", cart{Count: 1}), nil)
	allocs, hits := 1.0, uint64(0)
	// The first reads are no hits, other goroutines allocate, and a machine that stalls makes the tier doubt its copies: all that passes.
	for end := time.Now().Add(time.Minute); (allocs != 0 || hits < 1000) && time.Now().Before(end); {
		hits = ns.Local.Stats().Hits
		allocs = testing.AllocsPerRun(1000, func() {
			if c, err := s.Get(t.Context(), "ada"); c.Count != 1 || err != nil {
				t.Fatal(c, err)
			}
		})
		hits = ns.Local.Stats().Hits - hits
	}
	if allocs != 0 || hits < 1000 {
		t.Errorf("%v allocations per Get, %d local hits", allocs, hits)
	}
}

// sentCommands counts the commands of clients by name.
type sentCommands struct {
	mu     sync.Mutex
	counts map[string]int
}

func (s *sentCommands) of(name string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

func (s *sentCommands) add(cmds ...redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	for _, cmd := range cmds {
		s.counts[cmd.Name()]++
	}
}

func (s *sentCommands) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *sentCommands) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { s.add(cmd); return next(ctx, cmd) }
}
func (s *sentCommands) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { s.add(cmds...); return next(ctx, cmds) }
}

var figures = flag.Bool("figures", false, "all the figures of what renewals cost, not only those of the default")

// The figures of docs/decisions/0007: a session of 30 minutes is used every other second, by one of four processes.
func TestWhatRenewalsCost(t *testing.T) {
	effort.Alone(t)
	const reads = 4 * 450
	pause, life := 500*time.Millisecond, idle/4 // only their ratio counts
	shares := []float64{0.5}
	if *figures {
		pause, life = 2*time.Second, idle
		shares = []float64{0.25, 0.5, 0.75, 0.9}
	}
	for _, share := range shares {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			var stores []*sliding.Store[string, cart]
			var locals []*mayfly.Local
			var sent sentCommands
			for range 4 {
				rdb := redis.NewClient(srv.Options())
				defer rdb.Close()
				rdb.AddHook(&sent)
				ns := namespace(rdb)
				ns.TTL = life
				ns.Local = mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{ns.Prefix}, MaxEntries: 100}))
				defer ns.Local.Close(context.Background())
				stores = append(stores, mayfly.Must(sliding.New(ns, sliding.Options{TouchBelow: share})))
				locals = append(locals, ns.Local)
			}
			want(t, stores[0].Create(t.Context(), "ada", cart{}), nil)
			random := rand.New(rand.NewPCG(1, 2))
			for range reads {
				time.Sleep(pause)
				if _, err := stores[random.IntN(4)].Get(t.Context(), "ada"); err != nil {
					t.Fatal(err)
				}
			}
			hits, renewals := uint64(0), sent.of("pexpire")
			for _, l := range locals {
				hits += l.Stats().Hits
			}
			t.Logf("TouchBelow %v: %d renewals in %d reads, %.2f %% local hits", share, renewals, reads, 100*float64(hits)/reads)
			if least := 95 * reads / 100; share <= 0.5 && (hits < uint64(least) || renewals > 6 || renewals < 2) {
				t.Errorf("TouchBelow %v: %d local hits, %d renewals", share, hits, renewals)
			}
			synctest.Wait()
		})
	}
}
