package chaos

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"
)

// truth is what all processes know to be so, in a Redis to which nothing happens: the database that caches are of, what has been
// promised about them, and what was counted. Its own errors end a process.
type truth struct {
	rdb redis.UniversalClient

	mu     sync.Mutex
	counts map[string]int64 // not yet flushed
}

func must(err error) {
	if err != nil && err != redis.Nil {
		panic(fmt.Sprintf("chaos: the truth is not to be had: %v", err))
	}
}

// count counts what happened.
func (d *truth) count(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.counts == nil {
		d.counts = map[string]int64{}
	}
	d.counts[what]++
}

// flush tells the others what was counted.
func (d *truth) flush(ctx context.Context) {
	d.mu.Lock()
	counts := d.counts
	d.counts = nil
	d.mu.Unlock()
	pipe := d.rdb.Pipeline()
	for what, n := range counts {
		pipe.HIncrBy(ctx, "counts", what, n)
	}
	_, err := pipe.Exec(ctx)
	must(err)
}

// total is what all processes have counted.
func (d *truth) total(ctx context.Context) map[string]int64 {
	all, err := d.rdb.HGetAll(ctx, "counts").Result()
	must(err)
	total := map[string]int64{}
	for what, n := range all {
		total[what], _ = strconv.ParseInt(n, 10, 64)
	}
	return total
}

// load returns the version of a row.
func (d *truth) load(ctx context.Context, row string) int64 {
	v, err := d.rdb.Get(context.WithoutCancel(ctx), "row:"+row).Int64()
	must(err)
	return v
}

// commit makes a newer version of a row.
func (d *truth) commit(ctx context.Context, row string) int64 {
	v, err := d.rdb.Incr(ctx, "row:"+row).Result()
	must(err)
	return v
}

// promise says that no read of a row that begins from now on returns a version before this one.
func (d *truth) promise(ctx context.Context, row string, version int64) {
	must(d.rdb.ZAddGT(ctx, "promises", redis.Z{Score: float64(version), Member: row}).Err())
}

// promised returns what was promised of a row, and the era of its world.
func (d *truth) promised(ctx context.Context, world, row string) (version int64, e era) {
	pipe := d.rdb.Pipeline()
	score, now := pipe.ZScore(ctx, "promises", row), pipe.Get(ctx, "era:"+world)
	_, err := pipe.Exec(ctx)
	must(err)
	return int64(score.Val()), eraOf(now)
}

// An era of a world is odd while its Redis loses data of itself, and until what it lost cannot be seen any more; each calm
// time has a number of its own.
type era int64

func (e era) calm() bool { return e%2 == 0 }

func eraOf(cmd *redis.StringCmd) era {
	n, err := cmd.Int64()
	must(err)
	return era(n)
}

func (d *truth) era(ctx context.Context, world string) era {
	return eraOf(d.rdb.Get(ctx, "era:"+world))
}

// turn ends an era.
func (d *truth) turn(ctx context.Context, world string) { must(d.rdb.Incr(ctx, "era:"+world).Err()) }
