package cacheaside_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// Redis can refuse a command in many ways: callers always get the loader's value, each refusal has its Event, and a working server that refuses
// never opens the breaker.
func TestWhatRedisAnswers(t *testing.T) {
	type outcome struct {
		kind    mayfly.Kind
		outcome mayfly.Outcome
	}
	backend, fill := outcome{mayfly.KindBackend, mayfly.OutcomeFailed}, outcome{mayfly.KindFill, mayfly.OutcomeFailed}
	for _, x := range []struct {
		command, answer string
		want            outcome
		stored          bool // the value is there afterwards
	}{
		{"get", "LOADING Redis is loading the dataset in memory", backend, false},
		{"get", "MOVED 1234 10.0.0.1:6379", backend, false}, // a cluster's node behind a client that knows of none
		{"get", "WRONGTYPE Operation against a key holding the wrong kind of value", backend, false},
		{"get", "NOPERM this user has no permissions", backend, false},
		{"pttl", "NOPERM this user has no permissions", outcome{}, true}, // nobody needs the TTL of an absent key
		{"set", "OOM command not allowed when used memory > 'maxmemory'.", backend, false},
		{"set", "READONLY You can't write against a read only replica.", outcome{mayfly.KindFill, mayfly.OutcomeOK}, true}, // not done, and sent again
		{"set", "LOADING Redis is loading the dataset in memory", outcome{mayfly.KindFill, mayfly.OutcomeOK}, true},
		{"set", "MOVED 1234 10.0.0.1:6379", backend, false},
		{"set", "NOREPLICAS Not enough good replicas to write.", outcome{mayfly.KindFill, mayfly.OutcomeOK}, true},
		{"evalsha", "OOM command not allowed when used memory > 'maxmemory'.", fill, false},
		{"evalsha", "READONLY You can't write against a read only replica.", fill, false},
		{"evalsha", "LOADING Redis is loading the dataset in memory", outcome{mayfly.KindFill, mayfly.OutcomeOK}, true}, // as good as no answer: tried again
		{"evalsha", "MOVED 1234 10.0.0.1:6379", fill, false},
		{"evalsha", "NOSCRIPT No matching script. Please use EVAL.", outcome{mayfly.KindFill, mayfly.OutcomeOK}, true},
		{"evalsha", "ERR unknown command 'evalsha'", fill, false},
	} {
		t.Run(x.command+" "+strings.Fields(x.answer)[0], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, ns, events := unrepeated(t)
				c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) { return user{Version: key}, nil }, cacheaside.Options{}))
				c.Get(t.Context(), 1) // the script is known
				events.Forget()
				srv.FailNext(x.command, x.answer)
				if u, err := c.Get(t.Context(), 7); u.Version != 7 || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
				synctest.Wait()
				if x.want.kind != 0 && events.Count(x.want.kind, x.want.outcome) != 1 {
					t.Errorf("got %+v", events.All())
				}
				if n := events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed); n != 0 {
					t.Error("the breaker opened")
				}
				if _, ok, err := c.Lookup(t.Context(), 7); ok != x.stored || err != nil {
					t.Errorf("stored: %v, %v", ok, err)
				}
				begun := time.Now()
				if u, err := c.Get(t.Context(), 7); u.Version != 7 || err != nil || time.Since(begun) != 0 {
					t.Errorf("then %+v, %v after %v: a lease was left", u, err, time.Since(begun))
				}
				if _, ok, err := c.Lookup(t.Context(), 7); !ok || err != nil {
					t.Errorf("then stored: %v, %v", ok, err)
				}
			})
		})
	}
}

// unrepeated starts a server for a client that sends everything once, and returns a namespace on it with its events.
func unrepeated(t *testing.T) (*redistest.Server, mayfly.Namespace[int, user], *expect.Events) {
	srv := redistest.Start(t)
	o := srv.Options()
	o.MaxRetries = -1
	rdb := redis.NewClient(o)
	t.Cleanup(func() { rdb.Close() })
	events := new(expect.Events)
	ns := namespace(t, rdb)
	ns.Observer = events
	return srv, ns, events
}

// Operations that only Redis can do return its error.
func TestWhatWritesReturn(t *testing.T) {
	for _, answer := range []string{"OOM command not allowed", "READONLY You can't write", "MOVED 1 10.0.0.1:6379", "LOADING Redis is loading"} {
		synctest.Test(t, func(t *testing.T) {
			srv, ns, events := unrepeated(t)
			c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{}))
			c.Set(t.Context(), 7, user{Version: 1})
			word := strings.Fields(answer)[0]
			srv.FailNext("set", answer)
			if word == "READONLY" || word == "LOADING" { // after which the command is sent again
				if err := c.Set(t.Context(), 7, user{Version: 2}); err != nil {
					t.Errorf("Set, asked again: %v", err)
				}
				for range 4 {
					srv.FailNext("set", answer)
				}
			}
			if err := c.Set(t.Context(), 7, user{Version: 2}); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("Set: %v", err)
			}
			srv.FailNext("del", answer)
			if err := c.Delete(t.Context(), 7); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("Delete: %v", err)
			}
			srv.FailNext("scan", answer)
			if err := c.Clear(t.Context()); err == nil || !strings.Contains(err.Error(), word) {
				t.Errorf("Clear: %v", err)
			}
			if events.Count(mayfly.KindWrite, mayfly.OutcomeFailed) != 1 || events.Count(mayfly.KindRemoval, mayfly.OutcomeFailed) != 2 {
				t.Errorf("got %+v", events.All())
			}
			time.Sleep(2 * time.Second) // what failed is deleted after all
			if _, ok, err := c.Lookup(t.Context(), 7); ok || err != nil {
				t.Errorf("after the retry: %v, %v", ok, err)
			}
			if n := events.Count(mayfly.KindRemoval, mayfly.OutcomeOK); n != 1 {
				t.Errorf("%d deletions told", n)
			}
		})
	}
}

// After a lost reply the client does not know whether the command was executed. A fill that is sent again finds its own value, and a claim is
// sent again, whether or not the client repeats commands.
func TestLostReplies(t *testing.T) {
	for _, x := range []struct {
		command       string
		again, stored bool
	}{
		{"get", true, true}, {"get", false, false},
		{"set", true, true}, {"set", false, true}, // of the claim
		{"evalsha", true, true}, {"evalsha", false, true}, // of the fill, which was done
	} {
		t.Run(fmt.Sprint(x.command, ", asked again ", x.again), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Start(t)
				o := srv.Options()
				if !x.again {
					o.MaxRetries = -1
				}
				rdb := redis.NewClient(o)
				defer rdb.Close()
				loads := 0
				c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) { loads++; return user{Version: loads}, nil }, cacheaside.Options{}))
				c.Get(t.Context(), 1)
				loads = 0
				srv.DropReply(x.command)
				if u, err := c.Get(t.Context(), 7); u.Version != 1 || err != nil {
					t.Errorf("got %+v, %v", u, err)
				}
				synctest.Wait()
				if _, ok, err := c.Lookup(t.Context(), 7); ok != x.stored || err != nil {
					t.Errorf("stored %v, %v", ok, err)
				}
				begun := time.Now()
				if u, err := c.Get(t.Context(), 7); err != nil || time.Since(begun) > 10*time.Millisecond || (loads == 1) != x.stored {
					t.Errorf("then %+v, %v after %v, %d loads", u, err, time.Since(begun), loads)
				}
			})
		})
	}
}

// A lost reply to Delete: the key was deleted, and is deleted again because the client cannot know.
func TestALostReplyToDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		o.MaxRetries = -1
		rdb := redis.NewClient(o)
		defer rdb.Close()
		version := 1
		c := must[int, user](t)(cacheaside.New(namespace(t, rdb), func(context.Context, int) (user, error) { return user{Version: version}, nil }, cacheaside.Options{}))
		c.Get(t.Context(), 7)
		srv.DropReply("del")
		version = 2
		if err := c.Delete(t.Context(), 7); err == nil {
			t.Error("Delete does not know, and says nothing")
		}
		for range 3 {
			if u, err := c.Get(t.Context(), 7); u.Version != 2 || err != nil {
				t.Errorf("got %+v, %v", u, err)
			}
			time.Sleep(time.Second)
		}
		if _, ok, _ := c.Lookup(t.Context(), 7); !ok {
			t.Error("it is never trusted again")
		}
	})
}

func anotherProgramsListIsLeftAlone(t *testing.T, rdb redis.UniversalClient) {
	var events expect.Events
	ns := namespace(t, rdb)
	ns.Observer = &events
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) { return user{Version: key}, nil }, cacheaside.Options{RedisTimeout: patient}))
	full := ns.Prefix + "2"
	rdb.RPush(t.Context(), full, "an element")
	for range 6 { // more failures than the breaker would bear
		if u, err := c.Get(t.Context(), 2); u.Version != 2 || err != nil {
			t.Errorf("got %+v, %v", u, err)
		}
	}
	if rdb.LLen(t.Context(), full).Val() != 1 {
		t.Error("the list was overwritten")
	}
	if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed); n != 6 || events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed) != 0 {
		t.Errorf("%d failures told", n)
	}
	if err := c.Delete(t.Context(), 2); err != nil {
		t.Errorf("Delete of it: %v", err)
	}
	if u, err := c.Get(t.Context(), 2); u.Version != 2 || err != nil || !exists(t, rdb, full) {
		t.Errorf("after Delete: %+v, %v", u, err)
	}
}

// A restarted server has no scripts: each node's pipelines send them again.
func scriptsThatAServerForgot(t *testing.T, rdb redis.UniversalClient) {
	c := must[int, user](t)(cacheaside.NewBatch(namespace(t, rdb), func(_ context.Context, keys []int) (map[int]user, error) {
		found := map[int]user{}
		for _, key := range keys {
			found[key] = user{Version: key}
		}
		return found, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	keys := make([]int, 50)
	for i := range keys {
		keys[i] = i
	}
	var err error
	forget := func(ctx context.Context, c *redis.Client) error { return c.ScriptFlush(ctx).Err() }
	switch rdb := rdb.(type) {
	case *redis.ClusterClient:
		err = rdb.ForEachMaster(t.Context(), forget)
	case *redis.Client:
		err = forget(t.Context(), rdb)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.GetMany(t.Context(), keys); len(got) != 50 || err != nil {
		t.Errorf("got %d, %v", len(got), err)
	}
	for _, key := range keys {
		if _, ok, err := c.Lookup(t.Context(), key); !ok || err != nil {
			t.Errorf("key %d is not stored: %v", key, err)
		}
	}
}

// Real servers that are full.
func TestRedisIsFull(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{Config: []string{"maxmemory-policy noeviction"}})
	rdb, ctx := srv.Client(), t.Context()
	var events expect.Events
	ns := namespace(t, rdb)
	ns.Observer = &events
	var loads atomic.Int32
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) {
		loads.Add(1)
		return user{Version: key}, nil
	}, cacheaside.Options{RedisTimeout: patient}))
	for _, key := range []int{1, 1, 3} {
		if u, err := c.Get(ctx, key); u.Version != key || err != nil {
			t.Errorf("got %+v, %v", u, err)
		}
		rdb.ConfigSet(ctx, "maxmemory", "1")
	}
	if n := loads.Load(); n != 2 {
		t.Errorf("%d loads: a hit must stay one when Redis is full", n)
	}
	if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed); n != 1 || events.Count(mayfly.KindBreaker, mayfly.OutcomeFailed) != 0 {
		t.Errorf("%d failures told", n)
	}
	if err := c.Delete(ctx, 1); err != nil {
		t.Errorf("Delete when Redis is full: %v", err)
	}
}

// A cluster whose slots move to another node answers -MOVED to clients that know only the old one.
func TestSlotsThatMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes := map[string]*redistest.Server{"10.0.0.1:1": redistest.Start(t), "10.0.0.2:1": redistest.Start(t)}
		var owner atomic.Value
		owner.Store("10.0.0.1:1")
		rdb := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"10.0.0.1:1"},
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) {
				return []redis.ClusterSlot{{Start: 0, End: 16383, Nodes: []redis.ClusterNode{{Addr: owner.Load().(string)}}}}, nil
			},
			NewClient: func(o *redis.Options) *redis.Client {
				own := nodes[o.Addr].Options()
				own.Addr = o.Addr
				return redis.NewClient(own)
			},
		})
		defer func() { rdb.Close(); time.Sleep(2 * time.Second) }() // go-redis's own goroutines look now and then
		var events expect.Events
		ns := namespace(t, rdb)
		ns.Observer = &events
		var loads atomic.Int32
		c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) { loads.Add(1); return user{Version: key}, nil }, cacheaside.Options{}))
		c.Get(t.Context(), 1)
		owner.Store("10.0.0.2:1")
		for _, command := range []string{"get", "pttl", "set", "evalsha", "eval"} {
			for range 100 { // from now on
				nodes["10.0.0.1:1"].FailNext(command, "MOVED 1 10.0.0.2:1")
			}
		}
		for range 2 {
			if u, err := c.Get(t.Context(), 7); u.Version != 7 || err != nil {
				t.Errorf("got %+v, %v", u, err)
			}
		}
		if n := events.Count(mayfly.KindBackend, mayfly.OutcomeFailed); n != 0 || loads.Load() != 2 {
			t.Errorf("%d loads, %d failures", loads.Load(), n)
		}
		if keys := nodes["10.0.0.2:1"].Keys(); len(keys) != 1 {
			t.Errorf("the new owner holds %q", keys)
		}
	})
}

// A replica takes over while callers read and delete: no read fails, and nothing stays stuck.
func TestAFailover(t *testing.T) {
	cluster := realredis.StartCluster(t, 3, 3, realredis.Options{})
	rdb := cluster.Client()
	ns := namespace(t, rdb)
	c := must[int, user](t)(cacheaside.New(ns, func(_ context.Context, key int) (user, error) { return user{Version: key}, nil }, cacheaside.Options{RedisTimeout: patient}))
	full, _ := ns.FullKey(7)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if u, err := c.Get(t.Context(), 7); u.Version != 7 || err != nil {
					t.Errorf("got %+v, %v", u, err)
					return
				}
				c.Delete(t.Context(), 7) // may fail, and is then repeated
			}
		})
	}
	cluster.Failover(full)
	close(done)
	wg.Wait()
	expect.Eventually(t, "the new master serves", func() bool {
		c.Get(t.Context(), 7)
		_, ok, err := c.Lookup(t.Context(), 7)
		return ok && err == nil && c.Delete(t.Context(), 7) == nil
	})
}

// listen returns a port that takes connections and never answers.
func listen(t *testing.T) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}
