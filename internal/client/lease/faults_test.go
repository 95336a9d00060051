package lease_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

func TestAKeyOfAnotherTypeIsLeftAlone(t *testing.T) {
	for _, b := range backends.Only("redistest", backends.Miniredis, "redis 8") {
		t.Run(b.Name, func(t *testing.T) {
			rdb := b.Open(t)
			g, ctx := lease.New(lease.Options{Redis: rdb, Timeout: 5 * time.Second}), t.Context()
			rdb.RPush(ctx, "k", "a list")
			if _, err := g.Look(ctx, "k", true); !redis.HasErrorPrefix(err, "WRONGTYPE") {
				t.Errorf("Look: %v", err)
			}
			if a := g.Claim(ctx, "k", lease.Found{}); a.Claim != nil || !redis.HasErrorPrefix(a.Err, "WRONGTYPE") {
				t.Errorf("Claim: %+v", a)
			}
			for range 2 * nodes.Threshold {
				g.Look(ctx, "k", false)
			}
			if rdb.LLen(ctx, "k").Val() != 1 {
				t.Error("the list was touched")
			}
			remove(t, g, "k")
			if f, err := g.Look(ctx, "k", false); err != nil || f.State != lease.Absent {
				t.Errorf("the breaker counted an answer, or Delete did not delete: %+v, %v", f, err)
			}
		})
	}
}

func TestOutOfMemory(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{Config: []string{"maxmemory-policy noeviction"}})
	rdb, ctx := srv.Client(), t.Context()
	o := lease.Options{Redis: rdb, Timeout: 5 * time.Second}
	g := lease.New(o)
	set(t, o, g, "k", "v")
	c := claim(t, g, "claimed before", lease.Found{})
	rdb.ConfigSet(ctx, "maxmemory", "1")
	if body(t, g, "k") != "v" {
		t.Error("a hit writes")
	}
	if a := g.Claim(ctx, "absent", lease.Found{}); a.Claim != nil || !redis.IsOOMError(a.Err) {
		t.Errorf("Claim: %+v", a)
	}
	if _, err := c.Fill(ctx, []byte("x"), time.Minute); !redis.IsOOMError(err) {
		t.Errorf("Fill: %v", err)
	}
	if err := c.Release(ctx); err != nil {
		t.Errorf("Release: %v", err)
	}
	remove(t, g, "k")
	o.Hold = time.Minute
	held := lease.New(o)
	if remove(t, held, "claimed before"); look(t, held, "claimed before").State != lease.Held {
		t.Error("a full server keeps no tombstone") // it would refuse a SET by itself, but lets a script end that has written
	}
}

func TestAReplicaAnswersReadsAndRefusesClaims(t *testing.T) {
	master, replica := realredis.Start(t, realredis.Options{}), realredis.Start(t, realredis.Options{})
	ctx := t.Context()
	o := lease.Options{Redis: master.Client(), Timeout: 5 * time.Second}
	set(t, o, lease.New(o), "k", "v")
	host, port, _ := net.SplitHostPort(master.Addr())
	rdb := replica.Client()
	rdb.ReplicaOf(ctx, host, port)
	expect.Eventually(t, "the replica has the key", func() bool { return rdb.Exists(ctx, "k").Val() == 1 })
	g := lease.New(lease.Options{Redis: rdb, Timeout: 5 * time.Second})
	if body(t, g, "k") != "v" {
		t.Error("a read was refused")
	}
	if a := g.Claim(ctx, "absent", lease.Found{}); a.Claim != nil || !redis.IsReadOnlyError(a.Err) {
		t.Errorf("Claim: %+v", a)
	}
	if err := g.Delete(ctx, []string{"k"})[0]; !redis.IsReadOnlyError(err) {
		t.Errorf("Delete: %v", err)
	}
}

// asked counts the commands that reach the client's connections.
type asked struct{ commands, dials atomic.Int64 }

func (a *asked) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		a.dials.Add(1)
		return next(ctx, network, addr)
	}
}

func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		a.commands.Add(1)
		return next(ctx, cmd)
	}
}

func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A call keeps the budget whatever the client's settings are and however the server is gone; then the breaker keeps
// calls away from the socket.
func TestADeadServerCostsTheBudgetAndThenNothing(t *testing.T) {
	const budget = 150 * time.Millisecond // go-redis by itself: 1.8 s, 20 s, 102 s
	down := map[string]func(t *testing.T, o *redis.Options){
		"closed port": func(t *testing.T, o *redis.Options) {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") }
		},
		"a listener that never accepts": func(t *testing.T, o *redis.Options) {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				client, server := net.Pipe()
				go io.Copy(io.Discard, server)
				t.Cleanup(func() { server.Close() })
				return client, nil
			}
		},
		"a hung server": func(t *testing.T, o *redis.Options) {
			srv := redistest.Start(t)
			srv.Client().Ping(t.Context())
			srv.Hang()
			t.Cleanup(srv.Thaw)
			o.Dialer = srv.Dial
		},
	}
	for name, set := range down {
		for _, respects := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, ContextTimeoutEnabled %v", name, respects), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := &redis.Options{Addr: inMemory, ContextTimeoutEnabled: respects, PoolSize: 1000, MaxIdleConns: 1}
					set(t, o)
					rdb := redis.NewClient(o)
					defer func() { rdb.Close(); time.Sleep(time.Minute) }() // go-redis dials on in the background
					costsTheBudget(t, rdb, budget, respects)
				})
			})
		}
	}
}

func costsTheBudget(t *testing.T, rdb *redis.Client, budget time.Duration, respects bool) {
	var count asked
	rdb.AddHook(&count)
	var opened atomic.Int64
	g := lease.New(lease.Options{Redis: rdb, Timeout: budget, Breaker: func(_ string, open bool) { opened.Add(1) }})
	for i := range nodes.Threshold {
		begun := time.Now()
		_, err := g.Look(t.Context(), "k", i%2 == 0)
		if took := time.Since(begun); err == nil || took > budget {
			t.Errorf("call %d: %v after %v", i, err, took)
		}
	}
	before := count.commands.Load()
	begun := time.Now()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if _, err := g.Look(t.Context(), "k", false); !errors.Is(err, nodes.ErrOpen) {
				t.Errorf("with the breaker open: %v", err)
			}
		})
	}
	wg.Wait()
	if took := time.Since(begun); took != 0 {
		t.Errorf("with the breaker open calls took %v", took)
	}
	if n := count.commands.Load() - before; respects && n > 0 { // the others run no hooks
		t.Errorf("with the breaker open %d of 100 calls reached the client", n)
	}
	if opened.Load() != 1 {
		t.Errorf("the breaker told %d times", opened.Load())
	}
}

func TestRecoveryWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		var state atomic.Bool
		g := lease.New(lease.Options{Redis: srv.Client(), Timeout: 150 * time.Millisecond, Breaker: func(_ string, open bool) { state.Store(open) }})
		srv.Hang()
		for err := error(nil); !errors.Is(err, nodes.ErrOpen); _, err = g.Look(t.Context(), "k", true) {
		}
		for err := nodes.ErrOpen; errors.Is(err, nodes.ErrOpen); _, err = g.Look(t.Context(), "k", true) { // until a probe has just failed
			time.Sleep(10 * time.Millisecond)
		}
		srv.Thaw()
		begun := time.Now()
		for err := nodes.ErrOpen; err != nil; _, err = g.Look(t.Context(), "k", true) {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("recovered after %v", took)
		}
		if state.Load() {
			t.Error("the breaker did not tell that it closed")
		}
	})
}

// A real server that hangs and goes on is found gone, and then found again.
func TestARealServerThatHangs(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	g := lease.New(lease.Options{Redis: srv.Client(), Timeout: 150 * time.Millisecond})
	srv.Pause()
	expect.Eventually(t, "the breaker is open", func() bool {
		_, err := g.Look(t.Context(), "k", true)
		return errors.Is(err, nodes.ErrOpen)
	})
	srv.Resume()
	expect.Eventually(t, "the breaker has closed", func() bool {
		_, err := g.Look(t.Context(), "k", true)
		return err == nil
	})
}

// answering returns a client, fit for bubbles, of a server that gives one answer to every command.
func answering(t *testing.T, answer string) *redis.Client {
	rdb := redis.NewClient(&redis.Options{
		Addr:       inMemory,
		MaxRetries: -1,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			go func() {
				defer server.Close()
				for r := bufio.NewReader(server); ; {
					var n, length int
					if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
						return
					}
					name := ""
					for i := range n {
						fmt.Fscanf(r, "$%d\r\n", &length)
						arg := make([]byte, length+2)
						io.ReadFull(r, arg)
						if i == 0 {
							name = strings.ToLower(string(arg[:length]))
						}
					}
					reply := answer
					if name == "hello" || name == "client" {
						reply = "-ERR unknown command"
					}
					if _, err := io.WriteString(server, reply+"\r\n"); err != nil {
						return
					}
				}
			}()
			return client, nil
		},
	})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func TestWhichAnswersOpenTheBreaker(t *testing.T) {
	for answer, opens := range map[string]bool{
		"-LOADING Redis is loading the dataset in memory":          true,
		"-CLUSTERDOWN The cluster is down":                         true,
		"-MASTERDOWN Link with MASTER is down":                     true,
		"-ERR something":                                           false,
		"-NOPERM this user has no permissions":                     false,
		"-BUSY Redis is busy running a script":                     false,
		"-OOM command not allowed when used memory > 'maxmemory'.": false,
		"$-1": false,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := lease.New(lease.Options{Redis: answering(t, answer), Timeout: time.Second})
			for range nodes.Threshold {
				g.Look(t.Context(), "k", false)
			}
			if _, err := g.Look(t.Context(), "k", false); errors.Is(err, nodes.ErrOpen) != opens {
				t.Errorf("%s: then %v", answer, err)
			}
		})
	}
}

func TestACallerWhoLeavesSaysNothingAboutTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		rdb := redis.NewClient(&redis.Options{
			Addr:                  inMemory,
			ContextTimeoutEnabled: true,
			DialerRetries:         1,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				<-end
				return nil, errors.New("nobody there")
			},
		})
		defer rdb.Close()
		defer close(end)
		g := lease.New(lease.Options{Redis: rdb, Timeout: 150 * time.Millisecond})
		for range 2 * nodes.Threshold {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if _, err := g.Look(ctx, "k", false); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v", err)
			}
			cancel()
		}
		// One that was patient, and whose deadline merely came first, does.
		for range nodes.Threshold {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if _, err := g.Look(ctx, "k", false); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got error %v", err)
			}
			cancel()
		}
		if _, err := g.Look(t.Context(), "k", false); !errors.Is(err, nodes.ErrOpen) {
			t.Errorf("got error %v", err)
		}
	})
}
