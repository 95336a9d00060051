package cacheaside_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/client/lease"
	"github.com/mayflycache/mayfly/internal/testkit/backends"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

func init() {
	processes.Roles["holder"] = holder
	processes.Roles["waiter"] = waiter
	processes.Roles["deployed"] = deployed
	processes.Roles["slowly"] = slowly
}

// number reads the next line that a process writes.
func number(p *processes.Process) (int, error) {
	line, err := p.Line()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(line)
}

// loaded is a cache whose loads are counted in Redis, over all processes.
func loaded(rdb redis.UniversalClient, load func(context.Context) error, schema int) *cacheaside.Cache[int, user] {
	ns := mayfly.Namespace[int, user]{Name: "loaded", Redis: rdb, Prefix: "cache:", TTL: time.Minute, Codec: mayfly.JSON[user]{Schema: schema}}
	return mayfly.Must(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
		rdb.Incr(ctx, "loads")
		return user{Version: key}, load(ctx)
	}, cacheaside.Options{Early: earlyrefresh.Never, LoadTimeout: time.Hour, RedisTimeout: patient}))
}

// holder claims a key, says so, and never comes back.
func holder() int {
	c := loaded(processes.Dial(), func(context.Context) error {
		fmt.Println(1)
		select {}
	}, 0)
	c.Get(context.Background(), 7)
	return 1
}

const waitersEach = 16

// waiter gets the held key, says that it begins, and prints for each of its callers when it had the value.
func waiter() int {
	c := loaded(processes.Dial(), func(context.Context) error { return nil }, 0)
	var wg sync.WaitGroup
	for range waitersEach {
		wg.Go(func() {
			fmt.Println(1)
			if u, err := c.Get(context.Background(), 7); u.Version != 7 || err != nil {
				fmt.Fprintf(os.Stderr, "waiter: got %+v, %v\n", u, err)
				os.Exit(1)
			}
			fmt.Println(time.Now().UnixMicro())
		})
	}
	wg.Wait()
	return 0
}

// A process that holds a key is killed; 64 callers in four other processes wait for it, and then one of them loads. Sometimes the machine stalls
// for longer than a lease lives, and then one more loads: one of several attempts must show what is promised.
func TestAKilledHolderCostsOthersASecond(t *testing.T) {
	const attempts = 10
	for range attempts {
		held, after := killsAHolder(t)
		if held == 1 && after == 2 {
			return
		}
		t.Logf("again: %d loads while the holder lived, %d in the end", held, after)
	}
	t.Errorf("in none of %d attempts there was one load while the holder lived, and one after it", attempts)
}

// killsAHolder returns how many loads there were when the holder was killed, and when all had the value.
func killsAHolder(t *testing.T) (held, after int) {
	srv := realredis.Start(t, realredis.Options{})
	rdb, ctx := srv.Client(), t.Context()
	h := processes.Start(t, "holder", srv.Addr())
	if n, err := number(h); n != 1 || err != nil {
		t.Fatalf("the holder said %d, %v", n, err)
	}
	begun := time.Now()
	var waiters []*processes.Process
	for range 4 {
		w := processes.Start(t, "waiter", srv.Addr())
		waiters = append(waiters, w)
		for range waitersEach {
			if n, err := number(w); n != 1 || err != nil {
				t.Fatalf("a waiter said %d, %v", n, err)
			}
		}
	}
	expect.Eventually(t, "a lease would have ended", func() bool { return time.Since(begun) > 1500*time.Millisecond })
	held, _ = rdb.Get(ctx, "loads").Int()
	h.Cmd.Process.Kill()
	h.Cmd.Wait()
	if left := rdb.PTTL(ctx, "cache:7").Val(); held == 1 && (left == -1 || left > lease.TTL) {
		t.Errorf("a killed holder's lease lives for %v", left)
	}
	killed, worst := int(time.Now().UnixMicro()), 0
	for _, w := range waiters {
		for range waitersEach {
			at, err := number(w)
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, at-killed)
		}
	}
	t.Logf("the last of 64 had it %d ms after the kill", worst/1000)
	after, _ = rdb.Get(ctx, "loads").Int()
	return held, after
}

// slowly loads a key that other processes load too, one at a time over all processes.
func slowly() int {
	rdb, ctx := processes.Dial(), context.Background()
	ns := mayfly.Namespace[int, user]{Name: "slowly", Redis: rdb, Prefix: "cache:", TTL: time.Minute}
	c := mayfly.Must(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
		rdb.Incr(ctx, "loads")
		if n := rdb.Incr(ctx, "running").Val(); n > 1 {
			rdb.Set(ctx, "most", n, 0)
		}
		fmt.Println(1)
		<-time.After(2200 * time.Millisecond)
		rdb.Decr(ctx, "running")
		return user{Version: key}, nil
	}, cacheaside.Options{LoadTimeout: 3 * time.Second, RedisTimeout: patient}))
	if u, err := c.Get(ctx, 7); u.Version != 7 || err != nil {
		fmt.Fprintf(os.Stderr, "slowly: got %+v, %v\n", u, err)
		return 1
	}
	return 0
}

// Six processes wait for one that is killed during a load of 2.2 s, where a load may take 3 s: one of them loads, and nobody gets an error.
func TestAKilledHolderOfASlowLoad(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	rdb, ctx := srv.Client(), t.Context()
	h := processes.Start(t, "slowly", srv.Addr())
	if n, err := number(h); n != 1 || err != nil {
		t.Fatalf("the holder said %d, %v", n, err)
	}
	var all []*processes.Process
	for range 6 {
		all = append(all, processes.Start(t, "slowly", srv.Addr()))
	}
	begun := time.Now()
	expect.Eventually(t, "it has loaded for most of its time", func() bool { return time.Since(begun) > 1700*time.Millisecond })
	h.Cmd.Process.Kill()
	h.Cmd.Wait()
	rdb.Set(ctx, "running", 0, 0)
	for _, p := range all {
		if err := p.Cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n := rdb.Get(ctx, "loads").Val(); n != "2" || rdb.Exists(ctx, "most").Val() > 0 {
		t.Errorf("%s loads, %s at once, with that of the killed process", n, rdb.Get(ctx, "most").Val())
	}
}

const deployedKeys = 200

// deployed is a process of the new version: it asks for every key, several at once.
func deployed() int {
	c := loaded(backends.LongLeasesOf(processes.Dial()), func(context.Context) error { <-time.After(5 * time.Millisecond); return nil }, 1)
	var wg sync.WaitGroup
	for first := range 10 {
		wg.Go(func() {
			for key := first; key < deployedKeys; key += 10 {
				if u, err := c.Get(context.Background(), key); u.Version != key || err != nil {
					fmt.Fprintf(os.Stderr, "deployed: got %+v, %v\n", u, err)
					os.Exit(1)
				}
			}
		})
	}
	wg.Wait()
	return 0
}

// A deploy that changes the codec: every process finds bytes it cannot use, and each key is loaded once by all of them.
func TestADeployOfProcessesCostsOneLoadPerKey(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	rdb := srv.Client()
	before := loaded(rdb, func(context.Context) error { return nil }, 0)
	defer before.Close(t.Context())
	for key := range deployedKeys {
		before.Get(t.Context(), key)
	}
	rdb.Set(t.Context(), "loads", 0, 0)
	var all []*processes.Process
	for range 6 {
		all = append(all, processes.Start(t, "deployed", srv.Addr()))
	}
	for _, c := range all {
		if err := c.Cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n, _ := rdb.Get(t.Context(), "loads").Int(); n != deployedKeys {
		t.Errorf("%d loads of %d keys by 6 processes", n, deployedKeys)
	}
}
