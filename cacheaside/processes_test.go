package cacheaside_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/realredis"
)

func init() {
	roles["holder"] = holder
	roles["waiter"] = waiter
	roles["deployed"] = deployed
}

// child is another process, of this test program in another role.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

func start(t *testing.T, role string, addrs []string, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "MAYFLY_TEST_ROLE="+role, "MAYFLY_TEST_REDIS="+strings.Join(addrs, ","))...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return &child{cmd, in, bufio.NewScanner(out)}
}

// number reads the next line that the child writes.
func (c *child) number() (int, error) {
	if !c.lines.Scan() {
		return 0, cmp.Or(c.lines.Err(), io.ErrUnexpectedEOF)
	}
	return strconv.Atoi(c.lines.Text())
}

// dial connects a child to its parent's Redis.
func dial() redis.UniversalClient {
	addrs := strings.Split(os.Getenv("MAYFLY_TEST_REDIS"), ",")
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs, ContextTimeoutEnabled: true, IsClusterMode: len(addrs) > 1})
}

// loaded is a cache whose loads are counted in Redis, over all processes.
func loaded(rdb redis.UniversalClient, load func(context.Context) error, schema int) *cacheaside.Cache[int, user] {
	ns := mayfly.Namespace[int, user]{Name: "loaded", Redis: rdb, Prefix: "cache:", TTL: time.Minute, Codec: mayfly.JSON[user]{Schema: schema}}
	return mayfly.Must(cacheaside.New(ns, func(ctx context.Context, key int) (user, error) {
		rdb.Incr(ctx, "loads")
		return user{Version: key}, load(ctx)
	}, cacheaside.Options{Early: earlyrefresh.Never, Load: cacheaside.Load{Timeout: time.Hour}, Faults: patient}))
}

// holder claims a key, says so, and never comes back.
func holder() int {
	c := loaded(dial(), func(context.Context) error {
		fmt.Println(1)
		select {}
	}, 0)
	c.Get(context.Background(), 7)
	return 1
}

const waitersEach = 16

// waiter asks for the key that is held, says that it does, and tells for each of its callers when it had it.
func waiter() int {
	c := loaded(dial(), func(context.Context) error { return nil }, 0)
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

// A process that holds a key is killed; 64 callers in four others wait for it.
func TestAKilledHolderCostsOthersASecond(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	rdb, ctx := srv.Client(), t.Context()
	h := start(t, "holder", []string{srv.Addr()})
	if n, err := h.number(); n != 1 || err != nil {
		t.Fatalf("the holder said %d, %v", n, err)
	}
	begun := time.Now()
	var waiters []*child
	for range 4 {
		w := start(t, "waiter", []string{srv.Addr()})
		waiters = append(waiters, w)
		for range waitersEach {
			if n, err := w.number(); n != 1 || err != nil {
				t.Fatalf("a waiter said %d, %v", n, err)
			}
		}
	}
	eventually(t, "a lease would have ended", func() bool { return time.Since(begun) > 1500*time.Millisecond })
	if n, _ := rdb.Get(ctx, "loads").Int(); n != 1 {
		t.Fatalf("%d loads although the holder lives", n)
	}
	h.cmd.Process.Kill()
	killed := int(time.Now().UnixMicro())
	worst := 0
	for _, w := range waiters {
		for range waitersEach {
			at, err := w.number()
			if err != nil {
				t.Fatal(err)
			}
			worst = max(worst, at-killed)
		}
	}
	t.Logf("the last of 64 had it %d ms after the kill", worst/1000)
	if n, _ := rdb.Get(ctx, "loads").Int(); n != 2 || worst > 1_500_000 {
		t.Errorf("%d loads, the last waited %d ms", n, worst/1000)
	}
}

const deployedKeys = 200

// deployed is a process of the new version: it asks for every key, several at once.
func deployed() int {
	c := loaded(dial(), func(context.Context) error { <-time.After(5 * time.Millisecond); return nil }, 1)
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
	var all []*child
	for range 6 {
		all = append(all, start(t, "deployed", []string{srv.Addr()}))
	}
	for _, c := range all {
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n, _ := rdb.Get(t.Context(), "loads").Int(); n != deployedKeys {
		t.Errorf("%d loads of %d keys by 6 processes", n, deployedKeys)
	}
}
