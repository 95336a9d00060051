package cacheaside_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/realredis"
)

func init() {
	roles["racer"] = racer
	roles["holder"] = holder
}

// child is another process, of this test program in another role.
type child struct {
	cmd   *exec.Cmd
	stop  io.Closer
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

// dial connects a child to its parent's Redis.
func dial() redis.UniversalClient {
	addrs := strings.Split(os.Getenv("MAYFLY_TEST_REDIS"), ",")
	return redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs, ContextTimeoutEnabled: true, IsClusterMode: len(addrs) > 1})
}

const racedKeys = 30

// raced is the cache that processes race for; the database is Redis too, under another prefix.
func raced(rdb redis.UniversalClient, o mayfly.Observer) *cacheaside.Cache[int, int64] {
	ns := mayfly.Namespace[int, int64]{Name: "raced", Redis: rdb, Prefix: "cache:", TTL: 20 * time.Second, Observer: o}
	return mayfly.Must(cacheaside.New(ns, func(ctx context.Context, key int) (int64, error) {
		v, err := database(ctx, rdb, key)
		<-time.After(5*time.Millisecond + rand.N(15*time.Millisecond))
		return v, err
	}, cacheaside.Options{
		Early:  earlyrefresh.Linear(1), // renews often
		Stale:  cacheaside.Stale{While: time.Second},
		Faults: patient,
	}))
}

func database(ctx context.Context, rdb redis.UniversalClient, key int) (int64, error) {
	v, err := rdb.Get(ctx, fmt.Sprint("db:", key)).Int64()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return v, err
}

// racer reads and writes until its stdin ends, and tells how many fills were refused so far.
func racer() int {
	rdb := dial()
	var refused atomic.Int64
	c := raced(rdb, mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) {
		if e.Kind == mayfly.Fill && e.Outcome == mayfly.Refused {
			refused.Add(1)
		}
	}))
	ctx, stop := context.WithCancel(context.Background())
	go func() { io.Copy(io.Discard, os.Stdin); stop() }()
	var failed atomic.Bool
	complain := func(format string, args ...any) {
		failed.Store(true)
		fmt.Fprintf(os.Stderr, "racer: "+format+"\n", args...)
	}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			for ctx.Err() == nil {
				if _, err := c.Get(context.Background(), rand.N(racedKeys)); err != nil {
					complain("Get: %v", err)
				}
				<-time.After(rand.N(2 * time.Millisecond))
			}
		})
	}
	for range 6 {
		all.Go(func() {
			for ctx.Err() == nil {
				key := rand.N(racedKeys)
				committed, err := rdb.Incr(context.Background(), fmt.Sprint("db:", key)).Result()
				if err == nil {
					err = c.Delete(context.Background(), key)
				}
				if err != nil {
					complain("write: %v", err)
					continue
				}
				// What this process gets from now on is not older than what it deleted for.
				if v, err := c.Get(context.Background(), key); err != nil || v < committed {
					complain("after Delete for version %d: got %d, %v", committed, v, err)
				}
				<-time.After(rand.N(10 * time.Millisecond))
			}
		})
	}
	tick := time.NewTicker(100 * time.Millisecond)
	for ctx.Err() == nil {
		select {
		case <-tick.C:
			fmt.Println(refused.Load())
		case <-ctx.Done():
		}
	}
	all.Wait()
	if err := c.Close(context.Background()); err != nil || failed.Load() {
		return 1
	}
	return 0
}

// Processes read, write the database and delete; when all is quiet nothing stored differs from the database. (The naive
// way, GET, load, SET, leaves 32 of 2095 entries stale in such a run.)
func TestRacingProcessesLeaveNothingStale(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) (redis.UniversalClient, []string){
		"redis 8": func(t *testing.T) (redis.UniversalClient, []string) {
			srv := realredis.Start(t, realredis.Options{})
			return srv.Client(), []string{srv.Addr()}
		},
		"cluster": func(t *testing.T) (redis.UniversalClient, []string) {
			if testing.Short() {
				t.Skip("starts six servers")
			}
			c := realredis.StartCluster(t, 3, 3, realredis.Options{})
			return c.Client(), c.Options().Addrs
		},
	} {
		t.Run(name, func(t *testing.T) {
			const enough = 1000 // refused fills, or the run shows nothing
			rdb, addrs := open(t)
			var racers []*child
			var counts [4]atomic.Int64
			var reading sync.WaitGroup
			for i := range counts {
				r := start(t, "racer", addrs)
				racers = append(racers, r)
				reading.Go(func() {
					for r.lines.Scan() {
						if n, err := strconv.ParseInt(r.lines.Text(), 10, 64); err == nil {
							counts[i].Store(n)
						}
					}
				})
			}
			sum := func() (n int64) {
				for i := range counts {
					n += counts[i].Load()
				}
				return n
			}
			begun := time.Now()
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for sum() < enough && time.Since(begun) < 2*time.Minute {
				<-tick.C
			}
			for _, r := range racers {
				r.stop.Close()
			}
			reading.Wait()
			for _, r := range racers {
				if err := r.cmd.Wait(); err != nil {
					t.Errorf("a racer: %v", err)
				}
			}
			checked, stale := 0, 0
			c := raced(rdb, nil)
			defer c.Close(t.Context())
			for key := range racedKeys {
				e, ok, err := c.Lookup(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				want, err := database(t.Context(), rdb, key)
				if err != nil {
					t.Fatal(err)
				}
				if ok {
					checked++
					if e.Value != want {
						stale++
						t.Errorf("key %d: stored %d, the database has %d", key, e.Value, want)
					}
				}
			}
			t.Logf("%d fills refused in %v; %d entries checked, %d stale", sum(), time.Since(begun).Round(time.Millisecond), checked, stale)
			if sum() < enough || checked == 0 {
				t.Error("the run is void")
			}
		})
	}
}

// holder claims a key, says so, and never comes back.
func holder() int {
	rdb := dial()
	ns := mayfly.Namespace[int, int64]{Name: "raced", Redis: rdb, Prefix: "cache:", TTL: time.Minute}
	c := mayfly.Must(cacheaside.New(ns, func(context.Context, int) (int64, error) {
		fmt.Println("loading")
		select {}
	}, cacheaside.Options{Load: cacheaside.Load{Timeout: time.Hour}, Faults: patient}))
	c.Get(context.Background(), 7)
	return 1
}

func TestAKilledHolderCostsOthersASecond(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	h := start(t, "holder", []string{srv.Addr()})
	if !h.lines.Scan() || h.lines.Text() != "loading" {
		t.Fatalf("the holder said %q", h.lines.Text())
	}
	var loads, arrived atomic.Int32
	var caches []*cacheaside.Cache[int, int64]
	rdb := srv.Client()
	for range 4 { // as four processes
		ns := mayfly.Namespace[int, int64]{Name: "raced", Redis: rdb, Prefix: "cache:", TTL: time.Minute}
		caches = append(caches, must[int, int64](t)(cacheaside.New(ns, func(context.Context, int) (int64, error) {
			loads.Add(1)
			return 1, nil
		}, cacheaside.Options{Faults: patient})))
	}
	var killed atomic.Int64
	var worst atomic.Int64
	var wg sync.WaitGroup
	epoch := time.Now()
	for i := range 64 {
		wg.Go(func() {
			arrived.Add(1)
			if v, err := caches[i%4].Get(t.Context(), 7); v != 1 || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
			took := int64(time.Since(epoch)) - killed.Load()
			for old := worst.Load(); took > old && !worst.CompareAndSwap(old, took); old = worst.Load() {
			}
		})
	}
	eventually(t, "all ask", func() bool { return arrived.Load() == 64 && time.Since(epoch) > 1500*time.Millisecond }) // the heart beat holds it
	if loads.Load() != 0 {
		t.Fatal("somebody loaded although the holder lives")
	}
	killed.Store(int64(time.Since(epoch)))
	h.cmd.Process.Kill()
	wg.Wait()
	t.Logf("the last waited %v after the kill", time.Duration(worst.Load()))
	if took := time.Duration(worst.Load()); took > 1500*time.Millisecond || loads.Load() != 1 {
		t.Errorf("the last waited %v after the kill, %d loads", took, loads.Load())
	}
}
