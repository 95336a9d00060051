package cacheaside_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

func init() { processes.Roles["racer"] = racer }

// The race: processes read keys, write the database, and delete, round after round. After each round, when all is quiet, the stored values are
// compared with the database. The same readers and writers also play the naive way, GET, load, SET, which shows what the run can find.
const (
	racedKeys   = 300
	racers      = 4 // processes
	readersEach = 8
	writersEach = 2
	writesEach  = 30 // in a round

	longRounds = 120  // ten times as many as the first such experiment
	enough     = 1000 // refused fills in that many rounds, without which the run shows nothing
)

// raced is the cache that processes race for; the database is Redis too, under another prefix.
func raced(rdb redis.UniversalClient, o mayfly.Observer) *cacheaside.Cache[int, int] {
	ns := mayfly.Namespace[int, int]{Name: "raced", Redis: rdb, Prefix: "cache:", TTL: 20 * time.Second, Observer: o}
	return mayfly.Must(cacheaside.New(ns, func(ctx context.Context, key int) (int, error) { return slowDatabase(ctx, rdb, key) },
		cacheaside.Options{
			Early:        earlyrefresh.Linear(1), // renews often
			StaleWhile:   time.Second,
			RedisTimeout: patient,
		}))
}

func slowDatabase(ctx context.Context, rdb redis.UniversalClient, key int) (int, error) {
	v, err := database(ctx, rdb, key)
	<-time.After(rand.N(6 * time.Millisecond))
	return v, err
}

func database(ctx context.Context, rdb redis.UniversalClient, key int) (int, error) {
	v, err := rdb.Get(ctx, fmt.Sprint("db:", key)).Int()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return v, err
}

// anyKey is one of eight, or of all.
func anyKey() int { return rand.N([]int{8, racedKeys}[rand.N(2)]) }

func naiveKey(key int) string { return fmt.Sprint("naive:", key) }

// naively reads as a program without a cache library does.
func naively(ctx context.Context, rdb redis.UniversalClient, key int) error {
	if err := rdb.Get(ctx, naiveKey(key)).Err(); !errors.Is(err, redis.Nil) {
		return err
	}
	v, err := slowDatabase(ctx, rdb, key)
	if err != nil {
		return err
	}
	return rdb.Set(ctx, naiveKey(key), v, 20*time.Second).Err()
}

// racer plays a round for each line of its stdin, and answers with the number of fills that were refused.
func racer() int {
	rdb, ctx := processes.Dial(), context.Background()
	failed := false
	for lines := bufio.NewScanner(os.Stdin); lines.Scan() && !failed; {
		var refused atomic.Int64
		c := raced(rdb, mayfly.ObserverFunc(func(_ context.Context, e mayfly.Event) {
			if e.Kind == mayfly.KindFill && e.Outcome == mayfly.OutcomeRefused {
				refused.Add(1)
			}
		}))
		if err := errors.Join(playRound(ctx, rdb, c), c.Close(ctx)); err != nil { // nothing of the round still runs
			fmt.Fprintf(os.Stderr, "racer: %.500v\n", err)
			failed = true
		}
		fmt.Println(refused.Load())
	}
	if failed {
		return 1
	}
	return 0
}

func playRound(ctx context.Context, rdb redis.UniversalClient, c *cacheaside.Cache[int, int]) error {
	var mu sync.Mutex
	var wrong []error
	check := func(doing string, err error) {
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			wrong = append(wrong, fmt.Errorf("%s: %w", doing, err))
		}
	}
	var writers, readers sync.WaitGroup
	var written atomic.Bool
	for range writersEach {
		writers.Go(func() {
			for range writesEach {
				key := anyKey()
				committed, err := rdb.Incr(ctx, fmt.Sprint("db:", key)).Result()
				check("the database", err)
				check("naive DEL", rdb.Del(ctx, naiveKey(key)).Err())
				check("Delete", c.Delete(ctx, key))
				// From now on this process gets nothing older than the version for which it deleted.
				v, err := c.Get(ctx, key)
				if err == nil && v < int(committed) {
					err = fmt.Errorf("version %d after Delete for version %d", v, committed)
				}
				check("Get", err)
				<-time.After(rand.N(4 * time.Millisecond))
			}
		})
	}
	for range readersEach {
		readers.Go(func() {
			for !written.Load() {
				key := anyKey()
				_, err := c.Get(ctx, key)
				check("Get", err)
				check("naive", naively(ctx, rdb, key))
				<-time.After(rand.N(time.Millisecond))
			}
		})
	}
	writers.Wait()
	written.Store(true)
	readers.Wait()
	return errors.Join(wrong...)
}

func TestRacingProcessesLeaveNothingStale(t *testing.T) {
	t.Run("redis 8", func(t *testing.T) {
		srv := realredis.Start(t, realredis.Options{})
		race(t, srv.Client(), []string{srv.Addr()})
	})
	t.Run("cluster", func(t *testing.T) {
		c := realredis.StartCluster(t, 3, 3, realredis.Options{})
		race(t, c.Client(), c.Options().Addrs)
	})
}

func race(t *testing.T, rdb redis.UniversalClient, addrs []string) {
	rounds := longRounds / 40 // in so few the naive way may have been lucky
	if *long {
		rounds = longRounds
	}
	ctx := t.Context()
	var all []*processes.Process
	for range racers {
		all = append(all, processes.Start(t, "racer", strings.Join(addrs, ",")))
	}
	c := raced(rdb, nil)
	defer c.Close(ctx)
	var refused, checked, stale, naive, naiveStale int
	begun := time.Now()
	void := func() bool { return refused < enough*rounds/longRounds || checked == 0 || *long && naiveStale == 0 }
	played := 0
	for ; played < rounds || void() && played < 6*rounds; played++ {
		for _, r := range all {
			r.Say("")
		}
		for _, r := range all {
			n, err := number(r)
			if err != nil {
				t.Fatal(err)
			}
			refused += n
		}
		for key := range racedKeys {
			want, err := database(ctx, rdb, key)
			if err != nil {
				t.Fatal(err)
			}
			e, ok, err := c.Lookup(ctx, key)
			if err != nil {
				t.Fatal(err)
			}
			if ok {
				checked++
			}
			if ok && e.Value != want {
				stale++
				t.Errorf("key %d: stored %d, the database has %d", key, e.Value, want)
			}
			v, err := rdb.Get(ctx, naiveKey(key)).Int()
			if err == nil {
				naive++
			}
			if err == nil && v != want {
				naiveStale++
			}
			rdb.Del(ctx, naiveKey(key))
		}
		if err := c.Clear(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range all {
		if err := r.End(); err != nil {
			t.Errorf("a racer: %v", err)
		}
	}
	t.Logf("%d rounds in %v, %d fills refused: %d of %d entries stale; the naive way: %d of %d", played,
		time.Since(begun).Round(time.Millisecond), refused, stale, checked, naiveStale, naive)
	if void() {
		t.Error("the run is void: it could not have shown a stale entry")
	}
}
