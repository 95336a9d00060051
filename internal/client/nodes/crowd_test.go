package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/redistest"
)

const budget = 150 * time.Millisecond

// asking has the nodes of a client with a number of connections, and their events.
type asking struct {
	*nodes.Nodes
	rdb    *redis.Client
	opened atomic.Int32
	waits  atomic.Int32 // calls that waited
}

func ask(t *testing.T, srv *redistest.Server, connections int, adjust ...func(*nodes.Options)) *asking {
	o := srv.Options()
	o.PoolSize, o.PipelinePoolSize, o.MaxRetries = connections, -1, -1
	a := &asking{rdb: redis.NewClient(o)}
	t.Cleanup(func() { a.rdb.Close() })
	no := nodes.Options{Redis: a.rdb, Timeout: budget,
		Breaker: func(_ string, open bool) {
			if open {
				a.opened.Add(1)
			}
		},
		Waited: func(_ context.Context, _ time.Duration, n int, _ error) { a.waits.Add(int32(n)) },
	}
	for _, f := range adjust {
		f(&no)
	}
	a.Nodes = nodes.New(no)
	return a
}

func (a *asking) get(ctx context.Context, key string) (string, error) {
	n, err := a.Of(ctx, key)
	if err != nil {
		return "", err
	}
	answer := n.Get(ctx, key, false)
	return string(answer.Raw), answer.Err
}

func (a *asking) del(ctx context.Context, key string) error {
	n, err := a.Of(ctx, key)
	if err != nil {
		return err
	}
	return n.Ask(ctx, redis.NewIntCmd(ctx, "del", key))
}

// known has the server answer once.
func (a *asking) known(t *testing.T) {
	if err := a.del(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
}

// However few connections there are, and however many callers wait for them: a hung server costs no caller more than the budget, and when the
// breaker opens all waits end.
func TestASilentServerCostsTheBudget(t *testing.T) {
	for _, connections := range []int{1, 2, 20} {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			a := ask(t, srv, connections)
			a.known(t)
			srv.Hang()
			var callers sync.WaitGroup
			var waiting atomic.Int32
			for i := range 100 {
				callers.Go(func() {
					time.Sleep(time.Duration(i) * 2 * time.Millisecond)
					waiting.Add(1)
					defer waiting.Add(-1)
					begun := time.Now()
					var err error
					if i%3 == 0 {
						err = a.del(t.Context(), "k")
					} else {
						_, err = a.get(t.Context(), fmt.Sprint("k", i%5))
					}
					if took := time.Since(begun); took > budget+5*time.Millisecond || !errors.Is(err, nodes.ErrSlow) && !errors.Is(err, nodes.ErrOpen) {
						t.Errorf("%d connections: after %v: %v", connections, took, err)
					}
				})
			}
			time.Sleep(180 * time.Millisecond)
			if a.opened.Load() != 1 {
				t.Errorf("%d connections: the breaker opened %d times", connections, a.opened.Load())
			}
			if n := int(waiting.Load()); n > connections && connections < 20 { // who was sent waits for an answer
				t.Errorf("%d connections: %d still wait, and the breaker is open", connections, n)
			}
			callers.Wait()
			// And when it answers again, that is noticed as soon as ever.
			time.Sleep(nodes.Open)
			srv.Thaw()
			synctest.Wait()
			for range 3 {
				if err := a.del(t.Context(), "k"); err != nil {
					t.Errorf("%d connections: afterwards: %v", connections, err)
				}
			}
		})
	}
}

// A pause of the server, longer than the budget, costs a crowd no more time than the breaker takes for one caller.
func TestAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := ask(t, srv, 20)
		a.known(t)
		srv.Hang()
		hung := time.Now()
		var callers sync.WaitGroup
		for i := range 64 {
			callers.Go(func() {
				for {
					if _, err := a.get(t.Context(), fmt.Sprint("k", i)); err == nil {
						break
					}
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(hung); took > budget+nodes.Open+5*time.Millisecond {
					t.Errorf("asked again %v after the server paused", took)
				}
			})
		}
		time.Sleep(400 * time.Millisecond)
		srv.Thaw()
		callers.Wait()
		if a.opened.Load() != 1 {
			t.Errorf("the breaker opened %d times", a.opened.Load())
		}
	})
}

// A caller whose whole budget passes behind other calls of its program gets an error that says so, and an event reports the queue.
func TestACrowdThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		a := ask(t, srv, 1, func(o *nodes.Options) { o.Wait = 300 * time.Millisecond })
		a.known(t)
		srv.Latency(50 * time.Millisecond)
		var callers sync.WaitGroup
		var crowded, left, done atomic.Int32
		for i := range 20 {
			callers.Go(func() {
				ctx := t.Context()
				if i == 10 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 120*time.Millisecond)
					defer cancel()
				}
				begun := time.Now()
				err := a.del(ctx, "k")
				took := time.Since(begun)
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, nodes.ErrCrowded) && nodes.Unsent(err) && took == 300*time.Millisecond:
					crowded.Add(1)
				case errors.Is(err, context.DeadlineExceeded) && i == 10 && took == 120*time.Millisecond:
					left.Add(1)
				default:
					t.Errorf("%v after %v", err, took)
				}
			})
			synctest.Wait()
		}
		callers.Wait()
		if done.Load() != 7 && done.Load() != 6 || left.Load() != 1 || crowded.Load() != 20-1-done.Load() || a.opened.Load() != 0 {
			t.Errorf("%d came through, %d were crowded, %d left; the breaker opened %d times", done.Load(), crowded.Load(), left.Load(), a.opened.Load())
		}
		if n := a.waits.Load(); n != 19 {
			t.Errorf("%d waits were told", n)
		}
	})
}

// A program that has all connections for itself makes our calls fail in time. As long as connections come back that is not the server's fault.
func TestTheProgramsOwnCrowd(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	a := ask(t, srv, 2)
	a.known(t)
	srv.Latency(20 * time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	var program sync.WaitGroup
	for range 40 {
		program.Go(func() {
			for ctx.Err() == nil {
				a.rdb.Incr(ctx, "n")
			}
		})
	}
	var ours sync.WaitGroup
	var failed atomic.Int32
	for range 2 {
		ours.Go(func() {
			for range 4 {
				if a.del(t.Context(), "k") != nil {
					failed.Add(1)
				}
			}
		})
	}
	ours.Wait()
	cancel()
	program.Wait()
	if failed.Load() < 5 {
		t.Skipf("only %d of 8 calls got no connection", failed.Load())
	}
	if n := a.opened.Load(); n != 0 {
		t.Errorf("the breaker opened %d times", n)
	}
}
