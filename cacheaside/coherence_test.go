package cacheaside_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

var coherenceFor = flag.Duration("coherence", 8*time.Second, "how long processes with local tiers are disturbed")

const (
	sharedKeys = 40
	silence    = 500 * time.Millisecond

	// grace is what a loaded machine may add to silence before a stale local copy is an error.
	grace = time.Second
)

func init() { processes.Roles["neighbour"] = neighbour }

// shared is the cache that processes with local tiers share; db is a Redis that nobody disturbs.
func shared(rdb, db redis.UniversalClient, local *mayfly.Local) *cacheaside.Cache[int, int] {
	ns := mayfly.Namespace[int, int]{Name: "shared", Redis: rdb, Prefix: "cache:", TTL: 5 * time.Second, Local: local}
	return mayfly.Must(cacheaside.New(ns, func(ctx context.Context, key int) (int, error) {
		return database(ctx, db, key)
	}, cacheaside.Options{}))
}

// neighbour reads and writes beside others like it, and complains about outdated local copies. On "quiet" it stops, on "check" it compares its
// copies with Redis.
func neighbour() int {
	ctx := context.Background()
	rdb, db := processes.Dial(), redis.NewClient(&redis.Options{Addr: os.Getenv("MAYFLY_TEST_DB")})
	local := mayfly.Must(mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"cache:"}, MaxEntries: 1000, Silence: silence}))
	c, plain := shared(rdb, db, local), shared(rdb, db, nil)
	failed := false
	doubted := map[int]bool{} // keys whose Delete failed
	var quiet atomic.Bool
	var all sync.WaitGroup
	var mu sync.Mutex
	complain := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if !failed { // one report is enough
			fmt.Fprintf(os.Stderr, "neighbour: "+format+"\n", args...)
		}
		failed = true
	}
	for range 4 {
		all.Go(func() { // reads as fast as it can, so that it also reads in the moment after a stop
			last := time.Now()
			for n := 0; !quiet.Load(); n++ {
				key := rand.N(sharedKeys)
				begun := time.Now()
				stopped := begun.Sub(last) > silence
				last = begun
				e, ok, err := c.Lookup(ctx, key)
				switch {
				case err != nil || !ok || e.Outcome != mayfly.OutcomeHitLocal: // an error is that of a Redis that restarts
					c.Get(ctx, key)
				case e.TTL < 0 || e.Fresh < 0: // in its last millisecond it has none left, and is good
					complain("a local copy is past its end: %+v", e)
				case n%16 == 0 || stopped || time.Since(begun) > silence:
					done, at := changed(ctx, db, key)
					if age := begun.UnixMilli() - at; e.Value < done && age > (silence+grace).Milliseconds() {
						complain("key %d: a local copy of version %d, and version %d was %d ms old", key, e.Value, done, age)
					}
				}
				if n%64 == 0 {
					<-time.After(time.Millisecond)
				}
			}
		})
	}
	all.Go(func() {
		for !quiet.Load() {
			key := rand.N(sharedKeys)
			version, err := db.Incr(ctx, fmt.Sprint("db:", key)).Result()
			if err == nil {
				err = c.Delete(ctx, key)
			}
			if doubted[key] = err != nil; err == nil { // what was deleted for is never older than this
				db.Set(ctx, fmt.Sprint("done:", key), fmt.Sprint(version, " ", time.Now().UnixMilli()), time.Hour)
			}
			<-time.After(rand.N(100 * time.Millisecond))
		}
	})
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		switch in.Text() {
		case "quiet":
			quiet.Store(true)
			all.Wait()
			for key, again := range doubted { // it is repeated in the background: all is quiet after that
				for tick := time.Tick(50 * time.Millisecond); again; again = c.Delete(ctx, key) != nil {
					<-tick
				}
			}
			fmt.Println("quiet")
		case "check":
			copies, differ := 0, 0
			for key := range sharedKeys {
				c.Get(ctx, key)
				c.Get(ctx, key)
			}
			for key := range sharedKeys {
				e, ok, err := c.Lookup(ctx, key)
				if err != nil || !ok || e.Outcome != mayfly.OutcomeHitLocal {
					continue
				}
				copies++
				r, ok, err := plain.Lookup(ctx, key)
				for tick := time.Tick(50 * time.Millisecond); err != nil; r, ok, err = plain.Lookup(ctx, key) {
					<-tick // a machine that is busy may take longer than RedisTimeout
				}
				if ok && r.Value != e.Value {
					differ++
					complain("key %d: the copy is %d, Redis has %d", key, e.Value, r.Value)
				}
				if v, err := database(ctx, db, key); err != nil || v != e.Value {
					differ++
					complain("key %d: the copy is %d, the database has %d, %v", key, e.Value, v, err)
				}
			}
			s := local.Stats()
			fmt.Printf("%d copies, %d differ, %d local hits, %d changes heard, %d inserts refused, %d flushes\n",
				copies, differ, s.Hits, s.Changes, s.Outdated, s.Flushes)
		}
	}
	if err := errors.Join(c.Close(ctx), plain.Close(ctx), local.Close(ctx)); err != nil {
		complain("%v", err)
	}
	if failed {
		return 1
	}
	return 0
}

// changed returns the last version of key for which some process deleted an older one, and when that was done.
func changed(ctx context.Context, db redis.UniversalClient, key int) (version int, at int64) {
	text, err := db.Get(ctx, fmt.Sprint("done:", key)).Result()
	if err == nil {
		fmt.Sscan(text, &version, &at)
	}
	return version, at
}

// Processes with local tiers read and write, while their tracking connections are killed, the server restarts, and processes are stopped and
// continued. No local copy is served that lags by more than is allowed, and when all is quiet none differs from Redis.
func TestLocalCopiesStayInStep(t *testing.T) {
	t.Run("a server", func(t *testing.T) {
		t.Parallel() // most of it is waiting
		srv := realredis.Start(t, realredis.Options{})
		only := []*redis.Client{srv.Client()}
		staysInStep(t, srv.Addr(), func() []*redis.Client { return only }, srv.Restart)
	})
	t.Run("a cluster", func(t *testing.T) {
		t.Parallel()
		c := realredis.StartCluster(t, 3, 3, realredis.Options{})
		rdb := c.Client()
		masters := func() (all []*redis.Client) {
			var mu sync.Mutex
			rdb.ForEachMaster(t.Context(), func(_ context.Context, m *redis.Client) error {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, m)
				return nil
			})
			return all
		}
		staysInStep(t, strings.Join(c.Options().Addrs, ","), masters, func() { c.Failover("cache:1") })
	})
}

// staysInStep disturbs processes that use the servers at addrs.
func staysInStep(t *testing.T, addrs string, masters func() []*redis.Client, restart func()) {
	db := realredis.Start(t, realredis.Options{})
	var children []*processes.Process
	for range 4 {
		children = append(children, processes.Start(t, "neighbour", addrs, "MAYFLY_TEST_DB="+db.Addr()))
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	pause := func(most time.Duration) { <-time.After(time.Duration(r.Int64N(int64(most)))) }
	kill := func() int {
		all := masters()
		return killOneTracking(t, r, all[r.IntN(len(all))])
	}
	var kills, stops, restarts int
	for end := time.Now().Add(*coherenceFor); time.Now().Before(end); pause(200 * time.Millisecond) {
		switch n := r.IntN(10); {
		case n < 5:
			kills += kill()
		case n < 9:
			child := children[r.IntN(len(children))].Cmd.Process
			child.Signal(syscall.SIGSTOP)
			pause(3 * (silence + grace) / 2)
			if r.IntN(2) == 0 { // so that it finds nothing in its socket when it goes on
				kills += kill()
			}
			child.Signal(syscall.SIGCONT)
			stops++
		case restarts < 1+int(coherenceFor.Seconds()/10):
			restart()
			restarts++
		}
	}
	hear := func(c *processes.Process) string {
		line, err := c.Line()
		if err != nil {
			t.Fatalf("a process has died: %v", err)
		}
		return line
	}
	for _, c := range children {
		c.Say("quiet")
	}
	for _, c := range children {
		hear(c)
	}
	for _, m := range masters() {
		expect.Eventually(t, "all tiers hear Redis again", func() bool { return len(tracking(t, m)) >= len(children) })
	}
	copies := 0
	for i, c := range children {
		c.Say("check")
		text := hear(c)
		t.Logf("process %d: %s", i, text)
		var n, differ int
		if fmt.Sscanf(text, "%d copies, %d differ", &n, &differ); differ != 0 {
			t.Error("a local copy differs from Redis when all is quiet")
		}
		copies += n
		if err := c.End(); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
	}
	t.Logf("%d connections killed, %d stops, %d restarts", kills, stops, restarts)
	if copies == 0 || kills+stops+restarts == 0 {
		t.Error("the run is void")
	}
}

// tracking returns the ids of the connections that track.
func tracking(t *testing.T, rdb *redis.Client) (ids []string) {
	t.Helper()
	list, _ := rdb.ClientList(context.Background()).Result() // a server that restarts has none
	for line := range strings.Lines(list) {
		var id, flags string
		for field := range strings.FieldsSeq(line) {
			if v, ok := strings.CutPrefix(field, "id="); ok {
				id = v
			} else if v, ok := strings.CutPrefix(field, "flags="); ok {
				flags = v
			}
		}
		if strings.Contains(flags, "B") {
			ids = append(ids, id)
		}
	}
	return ids
}

func killOneTracking(t *testing.T, r *rand.Rand, rdb *redis.Client) int {
	ids := tracking(t, rdb)
	if len(ids) == 0 {
		return 0
	}
	n, _ := rdb.ClientKillByFilter(t.Context(), "id", ids[r.IntN(len(ids))]).Result()
	return int(n)
}

// This measures how long after a writer's reply another process's copy is gone. Here it is another client's copy in this process.
func TestHowLongALocalCopyStays(t *testing.T) {
	srv := realredis.Start(t, realredis.Options{})
	ctx := t.Context()
	ns := func() mayfly.Namespace[int, user] {
		return mayfly.Namespace[int, user]{Name: "users", Redis: srv.Client(), Prefix: "cache:", TTL: time.Minute}
	}
	load := func(context.Context, int) (user, error) { return user{"u", 1}, nil }
	mine, theirs := ns(), ns()
	withLocal(t, &theirs, mayfly.LocalOptions{})
	writer := must[int, user](t)(cacheaside.New(mine, load, cacheaside.Options{RedisTimeout: patient}))
	reader := must[int, user](t)(cacheaside.New(theirs, load, cacheaside.Options{RedisTimeout: patient}))
	local := func() bool {
		e, ok, err := reader.Lookup(ctx, 7)
		return ok && err == nil && e.Outcome == mayfly.OutcomeHitLocal
	}
	var lags []time.Duration
	for range 500 {
		expect.Eventually(t, "there is a local copy", func() bool { reader.Get(ctx, 7); return local() })
		if err := writer.Set(ctx, 7, user{"u", 2}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for e, _, _ := reader.Lookup(ctx, 7); e.Outcome == mayfly.OutcomeHitLocal && e.Value.Version == 1; e, _, _ = reader.Lookup(ctx, 7) {
		}
		lags = append(lags, time.Since(begun))
		writer.Delete(ctx, 7)
	}
	slices.Sort(lags)
	t.Logf("after the writer's reply a copy was served for: p50 %v, p99 %v, at most %v", lags[250], lags[495], lags[499])
	if n := theirs.Local.Stats().Changes; n < 500 { // the TTL and the tier's own distrust would end copies too
		t.Errorf("%d changes were heard: that is not the push's doing", n)
	}
}
