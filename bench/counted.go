package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/metrics"
)

// counted measures the cost of counting a hit for Prometheus.
func counted(w io.Writer, o settings) {
	srv := startRedis()
	defer srv.stop()
	rdb, ctx := tuned(srv.addr), context.Background()
	defer rdb.Close()
	local := must(mayfly.OpenLocal(ctx, mayfly.LocalOptions{Redis: rdb, MaxEntries: 1000, Prefixes: []string{"near:"}}))
	defer local.Close(ctx)
	get := func(name string, near *mayfly.Local, observer mayfly.Observer) func() {
		ns := mayfly.Namespace[int, article]{Name: name, Redis: rdb, Prefix: "near:" + name + ":", TTL: time.Hour, Local: near, Observer: observer}
		c := must(cacheaside.New(ns, func(context.Context, int) (article, error) { return anArticle, nil }, cacheaside.Options{}))
		for range 3 {
			must(c.Get(ctx, 7))
		}
		return func() { must(c.Get(ctx, 7)) }
	}
	registry := prometheus.NewRegistry()
	m := must(metrics.New(registry, metrics.Options{Buckets: prometheus.ExponentialBucketsRange(100e-6, 10, 16)}))
	fmt.Fprintln(w, "A local hit, and a hit in Redis, without Observer and with that of metrics. A local hit is counted in any case; Prometheus reads it.")
	fmt.Fprintln(w)
	tellPaired(w, []asked{{"a local hit", 0, get("a", local, nil)}, {"a local hit, with metrics", 1.25, get("b", local, m)}}, o.scale(15, 1), o.scale(400_000, 5000))
	fmt.Fprintln(w)
	tellPaired(w, []asked{{"a hit in Redis", 0, get("c", nil, nil)}, {"a hit in Redis, with metrics", 0, get("d", nil, m)}}, o.scale(9, 1), o.scale(4000, 500))
	must(registry.Gather())
}
