package mayflyotel_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/embedded"
	mayflyotel "github.com/mayflycache/mayfly/otel"
)

func Example() {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	ctx := context.Background()
	defer db.Close(ctx)

	// The SDK, as your program has set it up; here it keeps all in memory.
	reader, spans := sdkmetric.NewManualReader(), tracetest.NewInMemoryExporter()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)).Tracer("shop")

	observer := mayfly.Must(mayflyotel.New(mayflyotel.Options{MeterProvider: meters})) // Options{} where the global ones are set
	users := mayfly.Namespace[int, string]{Name: "users", Redis: db.Client(), Prefix: "cache:user:", TTL: time.Hour, Observer: observer}
	cache := mayfly.Must(cacheaside.New(users, func(context.Context, int) (string, error) { return "Ada", nil }, cacheaside.Options{}))
	defer cache.Close(ctx)

	request, span := tracer.Start(ctx, "GET /users/1001")
	cache.Get(request, 1001)
	cache.Get(request, 1001)
	span.End()

	for _, e := range spans.GetSpans()[0].Events {
		outcome := e.Attributes[slices.IndexFunc(e.Attributes, func(a attribute.KeyValue) bool { return a.Key == "mayfly.outcome" })]
		fmt.Println(e.Name, outcome.Value.AsString())
	}
	var all metricdata.ResourceMetrics
	reader.Collect(ctx, &all)
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name == "mayfly.requests" {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				outcome, _ := p.Attributes.Value("outcome")
				fmt.Println(m.Name, outcome.AsString(), p.Value)
			}
		}
	}
	// Unordered output:
	// mayfly.load ok
	// mayfly.fill ok
	// mayfly.read miss
	// mayfly.read hit_redis
	// mayfly.requests miss 1
	// mayfly.requests hit_redis 1
}
