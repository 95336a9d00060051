package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/redistest"
)

// A page made from values made from a database: when Redis hangs, a request waits for it only once.
func TestOneRequestHasOneBudget(t *testing.T) {
	for _, keep := range []bool{true, false} { // false: the router around the cache gives the budget
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			o := srv.Options()
			o.ContextTimeoutEnabled, o.PoolSize = true, 100
			rdb := redis.NewClient(o)
			defer func() { rdb.Close(); time.Sleep(time.Minute) }()
			var values []*cacheaside.Cache[string, string]
			for i := range 3 {
				values = append(values, mayfly.Must(cacheaside.New(mayfly.Namespace[string, string]{Name: "v", Redis: rdb, Prefix: fmt.Sprint("v", i, ":"), TTL: time.Minute},
					func(context.Context, string) (string, error) { return "value", nil }, cacheaside.Options{})))
				defer values[i].Close(context.Background())
			}
			handler := http.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for _, c := range values {
					if v, err := c.Get(r.Context(), "1"); v != "value" || err != nil {
						t.Errorf("%q, %v", v, err)
					}
				}
				w.Header().Set("Cache-Control", "max-age=60")
			}))
			if keep {
				pages := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{Name: "p", Redis: rdb, Prefix: "p:", TTL: time.Minute}, httpcache.Options{}))
				defer pages.Close(context.Background())
				handler = pages.Handler(handler)
			}
			srv.Hang()
			ctx := t.Context()
			if !keep {
				ctx = mayfly.WithRedisBudget(ctx, 150*time.Millisecond)
			}
			begun := time.Now()
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
			if took := time.Since(begun); took > 155*time.Millisecond {
				t.Errorf("through a cache of pages: %v: the request took %v", keep, took)
			}
			srv.Thaw()
		})
	}
}
