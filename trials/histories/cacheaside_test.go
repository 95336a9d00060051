package histories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
)

// aside is a way to set up a cache.
type aside struct {
	plain   bool
	ttl     time.Duration
	options cacheaside.Options

	absences bool // each third version of the database is that there is nothing
	failing  bool // one load of four fails
	batch    bool // keys are loaded together
	local    bool // each process has copies
}

func TestCacheaside(t *testing.T) {
	for name, way := range map[string]aside{
		"default": {ttl: time.Minute},
		"renewed": {ttl: 100 * time.Millisecond, options: cacheaside.Options{Early: earlyrefresh.Linear(1), StaleWhile: 50 * time.Millisecond}},
		"plain":   {ttl: time.Minute, plain: true},
		"held":    {ttl: time.Minute, options: cacheaside.Options{Hold: 20 * time.Millisecond}},
		"absent":  {ttl: time.Minute, absences: true, options: cacheaside.Options{MissTTL: time.Minute}},
		"failing": {ttl: 50 * time.Millisecond, failing: true, options: cacheaside.Options{StaleIfError: time.Minute, RenewThrottle: 20 * time.Millisecond}},
		"batch":   {ttl: time.Minute, batch: true},
		"local":   {ttl: time.Minute, local: true},
	} {
		for server, start := range servers {
			t.Run(fmt.Sprintf("%s, %s", name, server), func(t *testing.T) {
				t.Parallel()
				addr := start(t)
				play(t, addr, func(rdb *redis.Client, d *database) cache { return way.open(t, rdb, d) })
			})
		}
	}
}

var errFailing = errors.New("the database fails")

func (w aside) open(t *testing.T, rdb *redis.Client, d *database) cache {
	ns := mayfly.Namespace[int, int64]{Name: "histories", Redis: rdb, Prefix: "cache:", TTL: w.ttl, Plain: w.plain}
	reach := andInItsProcess
	if w.local {
		ns.Local = mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{ns.Prefix}, MaxEntries: 100}))
		t.Cleanup(func() { ns.Local.Close(context.Background()) })
		reach = inItsProcess
	}
	load := func(key int) (int64, error) {
		v := d.load(key)
		switch {
		case w.failing && rand.N(4) == 0:
			return 0, errFailing
		case w.absences && v%gap == 0:
			return 0, mayfly.ErrNotFound
		}
		return v, nil
	}
	w.options.RedisTimeout = redisTimeout
	var c *cacheaside.Cache[int, int64]
	if w.batch {
		c = mayfly.Must(cacheaside.NewBatch(ns, func(_ context.Context, all []int) (map[int]int64, error) {
			found := map[int]int64{}
			for _, key := range all {
				found[key], _ = load(key)
			}
			return found, nil
		}, w.options))
	} else {
		c = mayfly.Must(cacheaside.New(ns, func(_ context.Context, key int) (int64, error) { return load(key) }, w.options))
	}
	opened := cache{
		get: func(ctx context.Context, key int) (int64, error) {
			if rand.N(4) > 0 || w.absences {
				return c.Get(ctx, key)
			}
			found, err := c.GetMany(ctx, []int{key, (key + 1) % keys})
			return found[key], err
		},
		remove: func(ctx context.Context, key int) error { return c.Delete(ctx, key) },
		set:    c.Set,
		close:  c.Close,
		reach:  reach,
	}
	if w.absences {
		opened.set = nil
	}
	return opened
}
