package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

const (
	keys      = 6   // even ones are deleted only
	peers     = 4   // processes; the last has a good network
	readers   = 5   // in each process
	leastHeld = 500 // reads after a write, or the run shows nothing
)

// redisTimeout is what a call may wait for Redis: for a few attempts on a machine that does nothing else.
var redisTimeout = func() time.Duration {
	if effort.Race {
		return 600 * time.Millisecond
	}
	return 120 * time.Millisecond
}()

// bad is a network in which one request of eight has a misfortune, and of the SETs, which claims are, one of three.
var bad = proxy.Odds{Delay: 0.03, Late: 0.02, CutBefore: 0.01, CutAfter: 0.02, DropReply: 0.002, Truncate: 0.005, DelayReply: 0.04,
	Of: map[string]proxy.Odds{"set": {Delay: 0.05, Late: 0.15, CutAfter: 0.08, DropReply: 0.01, DelayReply: 0.05}}}

// cache is one process's, of what a pattern keeps of a database.
type cache struct {
	get    func(ctx context.Context, key int) (int64, error)
	remove func(ctx context.Context, key int) error
	set    func(ctx context.Context, key int, version int64) error // nil: there is none
	close  func(ctx context.Context) error

	reach reach // of writes
}

// database has a version of each key, which takes a moment to read.
type database struct {
	versions [keys]atomic.Int64
	loads    atomic.Int64
}

func (d *database) load(key int) int64 {
	d.loads.Add(1)
	v := d.versions[key].Load()
	most := 4 * time.Millisecond
	if rand.N(10) == 0 {
		most *= 8
	}
	<-time.After(rand.N(most))
	return v
}

// servers are where histories are played.
var servers = map[string]func(t *testing.T) (addr string){
	"double":  func(t *testing.T) string { return redistest.Start(t).Addr() },
	"redis 8": func(t *testing.T) string { return realredis.Start(t, realredis.Options{}).Addr() },
}

// play has processes read, change and delete keys for a while, and holds the histories against the contract.
func play(t *testing.T, addr string, open func(rdb *redis.Client, d *database) cache) {
	var d database
	var histories [keys]history
	var writing [keys]sync.Mutex // so that Sets are in the order of their commits
	s := effort.Seed(t, *seed)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var caches []cache
	for process := range peers {
		o := &redis.Options{Addr: addr, ContextTimeoutEnabled: true, ReadTimeout: redisTimeout / 3,
			MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 4 * time.Millisecond, PoolSize: 100}
		if process < peers-1 {
			p := proxy.Start(t, addr)
			odds := bad
			odds.Most = *late
			p.Random(s+uint64(process), odds)
			o.Addr = p.Addr()
		}
		rdb := redis.NewClient(o)
		t.Cleanup(func() { rdb.Close() })
		c := open(rdb, &d)
		t.Cleanup(func() { c.close(context.Background()) })
		caches = append(caches, c)
	}
	var failed, writes, longest atomic.Int64
	get := func(process, key int) {
		begun := time.Now()
		defer func() {
			for took := time.Since(begun); ; {
				if was := longest.Load(); int64(took) <= was || longest.CompareAndSwap(was, int64(took)) {
					return
				}
			}
		}()
		histories[key].do(process, read, func() (int64, error) {
			v, err := caches[process].get(t.Context(), key)
			if errors.Is(err, mayfly.ErrNotFound) {
				v = d.versions[key].Load()
			}
			return v, err
		})
	}
	write := func(process, key int) {
		if key%2 == 1 && caches[0].set != nil {
			writing[key].Lock()
			defer writing[key].Unlock()
		}
		version := d.versions[key].Add(1)
		how, do := remove, func() (int64, error) { return version, caches[process].remove(t.Context(), key) }
		if key%2 == 1 && caches[0].set != nil && rand.N(2) == 0 {
			how, do = set, func() (int64, error) { return version, caches[process].set(t.Context(), key, version) }
		}
		if histories[key].do(process, how, do) != nil {
			failed.Add(1)
		}
		writes.Add(1)
	}
	var all sync.WaitGroup
	for process := range caches {
		for range readers {
			all.Go(func() {
				for ctx.Err() == nil {
					get(process, rand.N(keys))
					<-time.After(rand.N(2 * time.Millisecond))
				}
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				write(process, rand.N(keys))
				<-time.After(rand.N(10 * time.Millisecond))
			}
		})
	}
	judge := func() (wrong []string, reads int) {
		for key := range histories {
			broken, n := histories[key].broken(d.versions[key].Load(), caches[0].reach)
			reads += n
			for _, b := range broken {
				wrong = append(wrong, fmt.Sprintf("key %d: %s", key, b))
			}
		}
		return wrong, reads
	}
	begun, next := time.Now(), min(time.Second, length())
	expect.Eventually(t, "enough was read and written", func() bool {
		since := time.Since(begun)
		if since < next {
			return false
		}
		next = max(min(2*since, length()), since+300*time.Millisecond)
		wrong, reads := judge()
		return len(wrong) > 0 || since > length() && reads >= leastHeld
	})
	stop()
	all.Wait()
	for range 3 { // what is stored in the end, as the process with a good network finds it
		for key := range keys {
			get(peers-1, key)
		}
		<-time.After(*late)
	}
	wrong, reads := judge()
	for _, w := range wrong[:min(len(wrong), 3)] {
		t.Error(w)
	}
	t.Logf("%d reads after a Delete or Set, %d broken; %d writes, of which %d failed; %d loads; the longest read took %v", reads, len(wrong), writes.Load(),
		failed.Load(), d.loads.Load(), time.Duration(longest.Load()).Round(time.Millisecond))
}
