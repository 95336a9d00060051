package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
)

func TestHTTPCache(t *testing.T) {
	for name, header := range map[string]http.Header{
		"one for all": {"Cache-Control": {"max-age=60"}},
		"varies":      {"Cache-Control": {"max-age=60"}, "Vary": {"X-Color"}},
		"renewed":     {"Cache-Control": {"max-age=1, stale-while-revalidate=5"}},
	} {
		for server, start := range servers {
			t.Run(fmt.Sprintf("%s, %s", name, server), func(t *testing.T) {
				t.Parallel()
				addr := start(t)
				play(t, addr, func(rdb *redis.Client, d *database) cache { return site(rdb, d, header) })
			})
		}
	}
}

// site is an origin with a page of each key, behind a cache.
func site(rdb *redis.Client, d *database, header http.Header) cache {
	c := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "histories", Redis: rdb, Prefix: "http:", TTL: time.Minute}, httpcache.Options{
		RedisTimeout: redisTimeout,
	}))
	h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Trim(r.URL.Path, "/")
		key, _ := strconv.Atoi(name)
		for field, values := range header {
			w.Header()[field] = values
		}
		w.Header().Set("Surrogate-Key", "tag"+name)
		fmt.Fprint(w, d.load(key))
	}))
	url := func(key int) string { return fmt.Sprintf("http://a.example/%d/", key) }
	return cache{
		get: func(ctx context.Context, key int) (int64, error) {
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, url(key), nil)
			r.Header.Set("X-Color", []string{"red", "blue"}[rand.N(2)])
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return strconv.ParseInt(w.Body.String(), 10, 64)
		},
		remove: func(ctx context.Context, key int) error {
			switch key % 3 {
			case 0:
				return c.Purge(ctx, httpcache.Target{Tag: fmt.Sprint("tag", key)})
			case 1:
				return c.Purge(ctx, httpcache.Target{Prefix: url(key)})
			}
			return c.Purge(ctx, httpcache.Target{URL: url(key)})
		},
		close: c.Close,
	}
}
