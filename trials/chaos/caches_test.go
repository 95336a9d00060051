package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/httpcache"
)

const (
	rows = 12 // of each cache

	// life is how long anything is served after it was stored: the bound of what a Redis that loses data may bring back.
	fresh = 700 * time.Millisecond
	stale = 300 * time.Millisecond
	life  = fresh + stale
)

// cache is one process's copy of rows.
type cache struct {
	world, name string
	get         func(ctx context.Context, row int) (int64, error)
	remove      func(ctx context.Context, row int) error
	close       func(ctx context.Context) error
}

func (c *cache) row(n int) string { return fmt.Sprint(c.world, " ", c.name, " ", n) }

func (c *cache) read(ctx context.Context, d *truth) {
	n := rand.N(rows)
	row := c.row(n)
	least, before := d.promised(ctx, c.world, row)
	v, err := c.get(ctx, n)
	d.count(c.name + " reads")
	switch {
	case err != nil:
		d.count(c.name + " reads that failed")
	case v >= least:
	case before.calm() && d.era(ctx, c.world) == before:
		wrong("%s: version %d of row %q was read after %d had been deleted", c.name, v, row, least)
	default:
		d.count(c.name + " stale reads while Redis lost data")
	}
}

func (c *cache) write(ctx context.Context, d *truth) {
	n := rand.N(rows)
	v := d.commit(ctx, c.row(n))
	d.count(c.name + " deletions")
	if c.remove(ctx, n) != nil {
		d.count(c.name + " deletions that failed")
		return
	}
	d.promise(ctx, c.row(n), v)
}

// loading reads a row, and takes a moment for it.
func (c *cache) loading(ctx context.Context, d *truth, n int) int64 {
	v := d.load(ctx, c.row(n))
	d.count(c.name + " loads")
	<-time.After(rand.N(10 * time.Millisecond))
	return v
}

// padding makes values that a small Redis has no room for.
var padding = strings.Repeat("mayfly ", 300)

type padded struct {
	Version int64
	Padding string
}

func aside(world string, rdb redis.UniversalClient, d *truth) *cache {
	c := &cache{world: world, name: "cacheaside"}
	ns := mayfly.Namespace[int, padded]{Name: world, Redis: rdb, Prefix: "cache:", TTL: fresh}
	cached := mayfly.Must(cacheaside.New(ns, func(ctx context.Context, n int) (padded, error) {
		return padded{c.loading(ctx, d, n), padding}, nil
	}, cacheaside.Options{Early: earlyrefresh.Linear(0.5), StaleWhile: stale}))
	c.get = func(ctx context.Context, n int) (int64, error) {
		p, err := cached.Get(ctx, n)
		return p.Version, err
	}
	c.remove = func(ctx context.Context, n int) error { return cached.Delete(ctx, n) }
	c.close = cached.Close
	return c
}

func pages(world string, rdb redis.UniversalClient, d *truth) *cache {
	c := &cache{world: world, name: "httpcache"}
	cached := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: world, Redis: rdb, Prefix: "http:", TTL: time.Minute}, httpcache.Options{}))
	h := cached.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		w.Header().Set("Cache-Control", "max-age=600")
		fmt.Fprint(w, c.loading(r.Context(), d, n), " ", padding)
	}))
	url := func(n int) string { return fmt.Sprintf("http://a.example/%d/", n) }
	c.get = func(ctx context.Context, n int) (int64, error) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, url(n), nil))
		version, _, _ := strings.Cut(w.Body.String(), " ")
		return strconv.ParseInt(version, 10, 64)
	}
	// By URL: where barriers may be evicted a purge by tag promises less.
	c.remove = func(ctx context.Context, n int) error { return cached.Purge(ctx, httpcache.Target{URL: url(n)}) }
	c.close = cached.Close
	return c
}
