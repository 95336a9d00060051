package shop

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
)

// pageCache caches the whole pages of one process. The zero value caches none.
type pageCache struct {
	cache *httpcache.Cache
	local *mayfly.Local // nil without copies
}

// keptAtMost bounds a page's own Cache-Control.
const keptAtMost = time.Minute

func newPageCache(ctx context.Context, s *Shop, rdb *redis.Client, local bool) (c pageCache, err error) {
	if local {
		c.local, err = mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, Prefixes: []string{pagePrefix}, MaxBytes: 16 << 20})
		if err != nil {
			return c, err
		}
	}
	c.cache, err = httpcache.New(mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: pagePrefix, TTL: keptAtMost, Local: c.local, Observer: s.opt.Observer}, httpcache.Options{
		AnyHost:         true, // the simulated shoppers' host and a browser's differ
		RenewBackground: true, // the mux is inside
		RedisTimeout:    s.opt.RedisTimeout,
	})
	return c, err
}

// decorate returns next behind the cache.
func (c pageCache) decorate(next http.Handler) http.Handler {
	if c.cache == nil {
		return next
	}
	return c.cache.Handler(next)
}

func (c pageCache) close(ctx context.Context) {
	if c.cache != nil {
		c.cache.Close(ctx)
	}
	if c.local != nil {
		c.local.Close(ctx)
	}
}
