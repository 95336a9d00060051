package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/flight"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// Callers that come while other reads are under way travel together, and callers with the same key share one read.
func TestReadsTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := ask(t, srv, 20)
		for k := range 3 {
			srv.Set(fmt.Sprint("k", k), fmt.Sprint("v", k))
		}
		a.get(t.Context(), "k0")
		srv.ClearLog()
		srv.Latency(time.Millisecond)
		var callers sync.WaitGroup
		for i := range 300 {
			callers.Go(func() {
				if v, err := a.get(t.Context(), fmt.Sprint("k", i%3)); v != fmt.Sprint("v", i%3) || err != nil {
					t.Errorf("got %q, %v", v, err)
				}
			})
		}
		callers.Wait()
		if n := strings.Count(strings.ToLower(strings.Join(srv.Log(), "\n")), "get "); n > 12 {
			t.Errorf("%d commands for 300 callers of three keys", n)
		}
	})
}

// answering is a hook that answers reads itself, without a server.
type answering struct{ hook }

func (answering) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(_ context.Context, cmd redis.Cmder) error {
		cmd.(*redis.StringCmd).SetVal("value")
		return nil
	}
}

// What a read is sent with is used again once it is answered: the key in its command, and the end of its time, are all that each read makes.
func TestAReadMakesLittle(t *testing.T) {
	if effort.Race {
		t.Skip("under the race detector pools drop things by chance")
	}
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer rdb.Close()
	rdb.AddHook(answering{})
	n, err := nodes.New(nodes.Options{Redis: rdb, Timeout: time.Second}).Of(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if a := n.Get(ctx, "k", false); string(a.Raw) != "value" || a.Err != nil {
		t.Fatalf("got %+v", a)
	}
	if allocs := testing.AllocsPerRun(1000, func() { n.Get(ctx, "k", false) }); allocs > 3 {
		t.Errorf("a read makes %v", allocs)
	}
}

// hook is one hook of a test.
type hook struct {
	process  func(ctx context.Context, cmd redis.Cmder)
	pipeline func(ctx context.Context, cmds []redis.Cmder)
}

func (h hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.process(ctx, cmd)
		return next(ctx, cmd)
	}
}

func (h hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		h.pipeline(ctx, cmds)
		return next(ctx, cmds)
	}
}

type caller struct{}

// A hook sees a trip with the values of the context of the caller who waited first, and not with its end. A hook that panics on a trip fails
// those who are on it, and nobody else.
func TestHooksSeeTheFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := ask(t, srv, 2)
		srv.Latency(time.Millisecond) // both connections are there, as a hook sees how they begin
		var begin sync.WaitGroup
		for range 2 {
			begin.Go(func() { a.known(t) })
		}
		begin.Wait()
		srv.Latency(0)
		var panics atomic.Bool
		var trips []any
		a.rdb.AddHook(hook{
			process: func(context.Context, redis.Cmder) { time.Sleep(time.Millisecond) },
			pipeline: func(ctx context.Context, cmds []redis.Cmder) {
				time.Sleep(2 * time.Millisecond)
				trips = append(trips, ctx.Value(caller{}))
				if panics.Load() {
					panic("a hook")
				}
			},
		})
		crowd := func() (failed, left int) {
			var gone atomic.Int32
			var callers sync.WaitGroup
			for i := range 2 { // these go alone
				callers.Go(func() { a.get(t.Context(), fmt.Sprint("alone", i)) })
			}
			synctest.Wait()
			var n atomic.Int32
			for i := range 10 {
				ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), caller{}, i), time.Minute)
				defer cancel()
				if i < 2 { // one leaves while it waits, one while it is on the way
					ctx, cancel = context.WithTimeout(ctx, []time.Duration{500 * time.Microsecond, 2 * time.Millisecond}[i])
					defer cancel()
				}
				callers.Go(func() {
					_, err := a.get(ctx, fmt.Sprint("k", i))
					switch {
					case i < 2 && errors.Is(err, context.DeadlineExceeded):
						gone.Add(1)
					case errors.As(err, new(*flight.PanicError)):
						n.Add(1)
					case err != nil:
						t.Errorf("caller %d: %v", i, err)
					}
				})
				synctest.Wait()
			}
			callers.Wait()
			return int(n.Load()), int(gone.Load())
		}
		if failed, left := crowd(); left != 2 || failed != 0 || len(trips) != 1 || trips[0] != 1 {
			t.Errorf("%d left, %d failed, and the trips were of %v: want one, of the first who had not left before", left, failed, trips)
		}
		panics.Store(true)
		if failed, left := crowd(); failed != 8 || left != 2 {
			t.Errorf("a hook's panic failed %d callers, %d left", failed, left)
		}
		panics.Store(false)
		if failed, _ := crowd(); failed != 0 || a.opened.Load() != 0 {
			t.Errorf("afterwards %d failed, the breaker opened %d times", failed, a.opened.Load())
		}
	})
}

// A connection that breaks is one failure, however many were on it.
func TestABrokenConnectionOpensNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := ask(t, srv, 20)
		a.known(t)
		srv.Latency(time.Millisecond)
		var callers sync.WaitGroup
		var lost atomic.Int32
		for i := range 12 {
			if i == 2 { // the others wait for these
				time.Sleep(time.Millisecond / 2)
			}
			callers.Go(func() {
				if i < 2 {
					a.get(t.Context(), fmt.Sprint("alone", i))
				} else if _, err := a.get(t.Context(), fmt.Sprint("k", i)); err != nil {
					lost.Add(1)
				}
			})
		}
		time.Sleep(time.Millisecond)
		srv.DropReply("get")
		callers.Wait()
		if lost.Load() < 5 || a.opened.Load() != 0 {
			t.Errorf("%d callers got no answer, the breaker opened %d times", lost.Load(), a.opened.Load())
		}
		if err := a.del(t.Context(), "k"); err != nil {
			t.Error(err)
		}
	})
}

// A hung server of a cluster, or a hung shard of a ring, does not delay callers of others.
func TestAStallIsItsServersOwn(t *testing.T) {
	for _, kind := range []string{"cluster", "ring"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var servers []*redistest.Server
				var rdb redis.UniversalClient
				if kind == "cluster" {
					c := redistest.StartCluster(t, 2)
					servers, rdb = c.Nodes(), c.Client()
				} else {
					one, two := redistest.Start(t), redistest.Start(t)
					servers = []*redistest.Server{one, two}
					ring := redis.NewRing(&redis.RingOptions{
						Addrs:              map[string]string{"one": "127.0.0.1:1", "two": "127.0.0.1:2"},
						HeartbeatFrequency: time.Hour,
						NewClient: func(o *redis.Options) *redis.Client {
							mine := one.Options()
							if o.Addr == "127.0.0.1:2" {
								mine = two.Options()
							}
							mine.Addr = o.Addr
							return redis.NewClient(mine)
						},
					})
					defer ring.Close()
					rdb = ring
				}
				a := &asking{Nodes: nodes.New(nodes.Options{Redis: rdb, Timeout: budget})}
				keys := map[bool]string{} // of the server that will hang, and of the other
				for i := 0; len(keys) < 2; i++ {
					key := fmt.Sprint("k", i)
					rdb.Set(t.Context(), key, "v", time.Minute)
					_, err := servers[0].Get(key)
					keys[err == nil] = key
				}
				servers[0].Hang()
				var callers sync.WaitGroup
				for i := range 40 {
					callers.Go(func() {
						begun := time.Now()
						v, err := a.get(t.Context(), keys[i%2 == 0])
						took := time.Since(begun)
						if i%2 == 0 && (err == nil || took > budget) || i%2 == 1 && (v != "v" || took > time.Millisecond) {
							t.Errorf("of the server that hangs: %v; got %q, %v after %v", i%2 == 0, v, err, took)
						}
					})
				}
				callers.Wait()
				servers[0].Thaw()
			})
		})
	}
}

// Reads that a cluster redirects are followed one by one, even if they travelled together.
func TestReadsThatMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := redistest.StartCluster(t, 2)
		rdb := c.Client()
		var moved atomic.Int32
		a := &asking{Nodes: nodes.New(nodes.Options{Redis: rdb, Timeout: budget, Moved: func() { moved.Add(1) }})}
		const key = "{tag}k"
		rdb.Set(t.Context(), key, "v", time.Minute)
		if _, err := a.get(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		to := c.Nodes()[0]
		if c.Owner(key) == to {
			to = c.Nodes()[1]
		}
		slot := c.Slot(key)
		c.MoveSlots(slot, slot, to)
		var callers sync.WaitGroup
		for range 30 {
			callers.Go(func() {
				if v, err := a.get(t.Context(), key); v != "v" || err != nil {
					t.Errorf("got %q, %v", v, err)
				}
			})
		}
		callers.Wait()
		if moved.Load() == 0 {
			t.Error("nobody was told that the slot moved")
		}
	})
}
