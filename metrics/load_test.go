package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/metrics"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// program is a small service that uses everything that is measured, and what can go wrong with it.
type program struct {
	srv      *redistest.Server
	observer *metrics.Observer
	registry *prometheus.Registry
	db       *embedded.DB

	slow    atomic.Int64 // ns that the loader takes longer
	fails   atomic.Bool  // the loader
	both    atomic.Bool  // both processes miss the same keys at once
	churn   atomic.Bool  // keys are deleted as fast as they are read
	wide    atomic.Bool  // more keys are asked for than there is room for
	flood   atomic.Bool  // calls beyond the limit, and pages that are not cached
	burst   atomic.Bool  // many keys of the engine that end at once
	endless atomic.Bool  // keys of the engine that never end
	away    atomic.Bool  // nobody asks
}

// trip is how long Redis takes for a command while nothing is wrong.
const trip = 200 * time.Microsecond

// running starts the program, in a bubble.
func running(t *testing.T) *program {
	p := &program{srv: redistest.Start(t), registry: prometheus.NewPedanticRegistry()}
	p.srv.Latency(trip)
	db := mayfly.Must(embedded.Open(embedded.Options{Hz: 1}))
	p.db = db
	p.observer = mayfly.Must(metrics.New(p.registry, metrics.Options{Buckets: buckets}))
	p.observer.WatchEngine("main", func() mayfly.EngineStats {
		s := db.Stats()
		s.Cycle = time.Duration(s.Expired) * time.Microsecond // in a bubble work takes no time
		return s
	})
	p.observer.ObserveAudit("main", 1000, 0)
	o := p.srv.Options()
	o.PoolSize = 20 // it is 10 for each CPU
	rdb := redis.NewClient(o)
	rdb.AddHook(p.observer.Hook("client"))
	local := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{
		Redis: rdb, Prefixes: []string{"near:"}, MaxEntries: 25, Silence: 2 * time.Second, Observer: p.observer,
	}))
	p.observer.WatchLocal("main", local.Stats)
	ns := mayfly.Namespace[int, string]{Redis: rdb, TTL: time.Second, Observer: p.observer}
	load := func(ctx context.Context, key int) (string, error) {
		select {
		case <-time.After(500*time.Microsecond + time.Duration(p.slow.Load())):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		if p.fails.Load() {
			return "", errors.New("the database is ill")
		}
		return fmt.Sprint("value ", key), nil
	}
	cache := func(name, prefix string, l *mayfly.Local, o cacheaside.Options) *cacheaside.Cache[int, string] {
		n := ns
		n.Name, n.Prefix, n.Local = name, prefix, l
		c := mayfly.Must(cacheaside.New(n, load, o))
		return c
	}
	stale := cacheaside.Options{StaleWhile: 10 * time.Second}
	near, old := cache("near", "near:", local, cacheaside.Options{}), cache("old", "old:", nil, stale)
	late := cacheaside.Options{Early: earlyrefresh.Never} // so that readers wait when a value has ended
	ones := []*cacheaside.Cache[int, string]{cache("shared", "shared:", nil, late), cache("shared", "shared:", nil, late)}
	crowd := cache("crowd", "crowd:", nil, cacheaside.Options{LoadLimit: 4})
	p.observer.WatchOrigin("crowd", crowd.Origin().Stats)
	p.observer.WatchOrigin("shared", ones[0].Origin().Stats)
	ns.Name, ns.Prefix = "calls", "calls:"
	limiter := mayfly.Must(sliding.NewLimiter(mayfly.Namespace[string, int64]{Name: "calls", Redis: rdb, Prefix: "calls:", TTL: time.Second, Observer: p.observer}, sliding.LimiterOptions{Limit: 200}))
	pages := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: "page:", TTL: time.Minute, Observer: p.observer}, httpcache.Options{}))
	p.observer.WatchHTTP("pages", pages.Stats)
	handler := pages.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		fmt.Fprintln(w, "a page")
	}))

	ctx, stop := context.WithCancel(t.Context())
	var workers sync.WaitGroup
	often := func(n int, every time.Duration, do func(i int)) {
		for i := range n {
			workers.Go(func() {
				<-time.After(rand.N(every)) // or all would come at once
				tick := time.NewTicker(every)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
						do(i)
					case <-ctx.Done():
						return
					}
				}
			})
		}
	}
	often(4, 16*time.Millisecond, func(int) {
		if p.away.Load() {
			return
		}
		key := rand.IntN(12)
		if p.wide.Load() {
			key = rand.IntN(1 << 30)
		}
		near.Get(ctx, key)
		for range map[bool]int{true: 4}[p.wide.Load()] {
			near.Get(ctx, key) // a copy is made by the read that finds it in Redis, after the push of its fill
		}
		if p.churn.Load() {
			near.Delete(ctx, key)
		}
	})
	often(4, 40*time.Millisecond, func(int) {
		if !p.away.Load() {
			old.Get(ctx, rand.IntN(5))
		}
	})
	often(16, 40*time.Millisecond, func(i int) {
		if !p.away.Load() {
			ones[i%2].Get(ctx, rand.IntN(3))
		}
	})
	often(1, 40*time.Millisecond, func(int) {
		if p.both.Load() {
			var gets sync.WaitGroup
			key := rand.IntN(1 << 30)
			for _, c := range ones {
				gets.Go(func() { c.Get(ctx, key) })
			}
			gets.Wait()
		}
	})
	often(12, 100*time.Millisecond, func(int) {
		if !p.away.Load() {
			ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
			defer cancel()
			crowd.Get(ctx, rand.IntN(1<<30))
		}
	})
	often(1, 40*time.Millisecond, func(int) {
		for range map[bool]int{false: 1, true: 50}[p.flood.Load()] {
			limiter.Allow(ctx, "ada", 1)
		}
	})
	often(1, 40*time.Millisecond, func(int) {
		url := "/a"
		if p.flood.Load() {
			url = fmt.Sprint("/", rand.Uint64())
		}
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", url, nil))
	})
	often(1, 40*time.Millisecond, func(i int) {
		db.Client().Set(ctx, fmt.Sprint("k", rand.IntN(1000)), "v", 3*time.Second)
		switch {
		case p.burst.Load():
			pipe := db.Client().Pipeline()
			for range 200 {
				pipe.Set(ctx, fmt.Sprint("b", rand.Uint64()), "v", 10*time.Millisecond)
			}
			pipe.Exec(ctx)
		case p.endless.Load():
			db.Client().Set(ctx, fmt.Sprint("e", rand.Uint64()), "v", 0)
		}
	})
	t.Cleanup(func() {
		p.srv.Thaw()
		stop()
		workers.Wait()
		end := context.Background()
		for _, c := range append(ones, near, old, crowd) {
			c.Close(end)
		}
		pages.Close(end)
		local.Close(end)
		rdb.Close()
		db.Close(end)
	})
	return p
}
