package metrics_test

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/metrics"
)

func Example() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	registry := prometheus.NewRegistry() // or prometheus.DefaultRegisterer
	observer := mayfly.Must(metrics.New(registry, metrics.Options{}))
	users := mayfly.Namespace[int, string]{Name: "users", Redis: db.Client(), Prefix: "cache:user:", TTL: time.Hour, Observer: observer}
	cache := mayfly.Must(cacheaside.New(users, func(context.Context, int) (string, error) { return "Ada", nil }, cacheaside.Options{}))
	defer cache.Close(ctx)
	cache.Get(ctx, 1001)
	cache.Get(ctx, 1001)

	families, _ := registry.Gather() // as Prometheus would
	for _, f := range families {
		if f.GetName() == "mayfly_requests_total" {
			for _, m := range f.Metric {
				fmt.Println(m.Label[0].GetValue(), m.Label[1].GetValue(), m.Counter.GetValue())
			}
		}
	}
	// Output:
	// users hit_redis 1
	// users miss 1
}
