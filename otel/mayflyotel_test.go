package mayflyotel_test

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/mayflycache/mayfly"
	mayflyotel "github.com/mayflycache/mayfly/otel"
)

// recorded returns a function that runs do within a span, and returns what that span's events were: "name attribute=value ...".
func recorded(t *testing.T) func(do func(ctx context.Context)) []string {
	spans := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	return func(do func(ctx context.Context)) (events []string) {
		ctx, span := tracer.Start(t.Context(), "request")
		do(ctx)
		span.End()
		all := spans.Ended()
		for _, e := range all[len(all)-1].Events() {
			text := e.Name
			for _, a := range e.Attributes {
				text += " " + string(a.Key) + "=" + a.Value.String()
			}
			events = append(events, text)
		}
		return events
	}
}

// An Event becomes an event of the span that its context belongs to.
func TestSpanEvents(t *testing.T) {
	record := recorded(t)
	load := mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeNegative, Namespace: "users", Key: "user:7", N: 1, Took: 30 * time.Millisecond}
	fail := mayfly.Event{Kind: mayfly.KindBackend, Outcome: mayfly.OutcomeFailed, Namespace: "users", Key: "user:7", Err: fmt.Errorf(`get "user:7": %w`, redisError("OOM full"))}
	for _, c := range []struct {
		name string
		opt  mayflyotel.Options
		want []string
	}{
		{"with all but keys", mayflyotel.Options{}, []string{
			"mayfly.load mayfly.namespace=users mayfly.outcome=not_found mayfly.duration=0.03 mayfly.n=1",
			`mayfly.backend mayfly.namespace=users mayfly.outcome=failed error.type=oom error.message=get "(key)": OOM full`,
		}},
		{"with keys", mayflyotel.Options{Keys: true}, []string{
			"mayfly.load mayfly.namespace=users mayfly.outcome=not_found mayfly.key=user:7 mayfly.duration=0.03 mayfly.n=1",
			`mayfly.backend mayfly.namespace=users mayfly.outcome=failed mayfly.key=user:7 error.type=oom error.message=get "user:7": OOM full`,
		}},
		{"as chosen", mayflyotel.Options{SpanEvents: func(e mayfly.Event) bool { return e.Kind == mayfly.KindLoad }}, []string{
			"mayfly.load mayfly.namespace=users mayfly.outcome=not_found mayfly.duration=0.03 mayfly.n=1",
		}},
	} {
		c.opt.MeterProvider = noop.NewMeterProvider()
		m := mayfly.Must(mayflyotel.New(c.opt))
		got := record(func(ctx context.Context) { m.Observe(ctx, load); m.Observe(ctx, fail) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s", c.name, strings.Join(got, "\n"))
		}
	}
}

// What the kinds are called in a trace is what metrics call their errors and outcomes.
func TestWordsOfSpanEvents(t *testing.T) {
	m := mayfly.Must(mayflyotel.New(mayflyotel.Options{MeterProvider: noop.NewMeterProvider()}))
	got := recorded(t)(func(ctx context.Context) {
		m.Observe(ctx, mayfly.Event{Kind: mayfly.KindLimit, Outcome: mayfly.OutcomeOK, Namespace: "calls"})
		m.Observe(ctx, mayfly.Event{Kind: mayfly.KindBackend, Outcome: mayfly.OutcomeTimedOut, Namespace: "calls", Err: errors.New("redis did not answer in time")})
		m.Observe(ctx, mayfly.Event{Kind: mayfly.KindCoherence, Outcome: "tracking"})
		m.Observe(ctx, mayfly.Event{Kind: mayfly.Kind(99), Outcome: "new one"})
	})
	want := []string{
		"mayfly.limit mayfly.namespace=calls mayfly.outcome=allowed",
		"mayfly.backend mayfly.namespace=calls mayfly.outcome=timed_out error.type=timeout error.message=redis did not answer in time",
		"mayfly.coherence mayfly.outcome=tracking",
		"mayfly.unknown mayfly.outcome=new one",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// Without a span, and with one that is not sampled or has ended, there are metrics alone.
func TestWithoutSpan(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := mayfly.Must(mayflyotel.New(mayflyotel.Options{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		SpanEvents:    func(e mayfly.Event) bool { t.Errorf("asked about %+v", e); return true },
	}))
	join := mayfly.Event{Kind: mayfly.KindJoin, Outcome: mayfly.OutcomeOK, Namespace: "users"}
	m.Observe(t.Context(), join)
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample())).Tracer("test")
	unsampled, span := never.Start(t.Context(), "request")
	m.Observe(unsampled, join)
	span.End()
	ended, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "request")
	span.End()
	m.Observe(ended, join)
	if sum := collected(t, reader)["mayfly.coalesced_waiters"].(metricdata.Sum[int64]).DataPoints; len(sum) != 1 || sum[0].Value != 3 {
		t.Errorf("%+v", sum)
	}
}

// collected returns what a reader collects, by name.
func collected(t *testing.T, reader sdkmetric.Reader) map[string]metricdata.Aggregation {
	t.Helper()
	var got metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &got); err != nil {
		t.Fatal(err)
	}
	all := map[string]metricdata.Aggregation{}
	for _, scope := range got.ScopeMetrics {
		if scope.Scope.Name != "github.com/mayflycache/mayfly/otel" {
			t.Errorf("scope %q", scope.Scope.Name)
		}
		for _, one := range scope.Metrics {
			all[one.Name] = one.Data
		}
	}
	return all
}

// What is timed within a sampled span carries its trace as an exemplar: that is the SDK's work, for which it needs the context.
func TestExemplars(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := mayfly.Must(mayflyotel.New(mayflyotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}))
	ctx, span := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "request")
	m.Observe(ctx, mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeOK, Namespace: "users", Took: 30 * time.Millisecond})
	span.End()
	times := collected(t, reader)["mayfly.load.duration"].(metricdata.Histogram[float64]).DataPoints
	if len(times) != 1 || len(times[0].Exemplars) != 1 {
		t.Fatalf("%+v", times)
	}
	if id := span.SpanContext().TraceID(); string(times[0].Exemplars[0].TraceID) != string(id[:]) {
		t.Errorf("%x, not %v", times[0].Exemplars[0].TraceID, id)
	}
	if users, _ := times[0].Attributes.Value("namespace"); users != attribute.StringValue("users") {
		t.Errorf("%v", users)
	}
}

// An Observer may be made before the program sets its MeterProvider.
func TestGlobalMeterProvider(t *testing.T) {
	m := mayfly.Must(mayflyotel.New(mayflyotel.Options{}))
	reader := sdkmetric.NewManualReader()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	m.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeMiss, Namespace: "users"})
	if sum := collected(t, reader)["mayfly.requests"].(metricdata.Sum[int64]).DataPoints; len(sum) != 1 || sum[0].Value != 1 {
		t.Errorf("%+v", sum)
	}
}

// What is watched is asked by its name: another of that name takes its place, and nil ends it.
func TestWatch(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	m := mayfly.Must(mayflyotel.New(mayflyotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}))
	for _, entries := range []int{1, 2} {
		m.WatchLocal("main", func() mayfly.LocalStats { return mayfly.LocalStats{Entries: entries} })
		points := collected(t, reader)["mayfly.local.entries"].(metricdata.Gauge[int64]).DataPoints
		if len(points) != 1 || points[0].Value != int64(entries) {
			t.Errorf("%+v, want %d", points, entries)
		}
	}
	m.WatchLocal("main", nil)
	if got := collected(t, reader)["mayfly.local.entries"]; got != nil {
		t.Errorf("%+v", got)
	}
}

// A MeterProvider that refuses a metric is an error of New, which names it.
func TestMeterProviderThatRefuses(t *testing.T) {
	_, err := mayflyotel.New(mayflyotel.Options{MeterProvider: refusing{}})
	if err == nil || !strings.Contains(err.Error(), "mayflyotel: Options.MeterProvider (mayflyotel_test.refusing) refuses") || !strings.Contains(err.Error(), "no more histograms") {
		t.Error(err)
	}
}

type refusing struct{ noop.MeterProvider }

func (refusing) Meter(string, ...metric.MeterOption) metric.Meter { return refusingMeter{} }

type refusingMeter struct{ noop.Meter }

func (refusingMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return noop.Float64Histogram{}, errors.New("no more histograms")
}

// An Event outside of a recorded span costs no allocation of ours.
func TestAllocations(t *testing.T) {
	m := mayfly.Must(mayflyotel.New(mayflyotel.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))}))
	for _, kind := range []mayfly.Kind{mayfly.KindRead, mayfly.KindLoad, mayfly.KindFill} {
		e := mayfly.Event{Kind: kind, Outcome: mayfly.OutcomeOK, Namespace: "users", Key: "user:7", Took: time.Millisecond}
		if n := testing.AllocsPerRun(100, func() { m.Observe(t.Context(), e) }); n != 0 {
			t.Errorf("%v allocates %v", kind, n)
		}
	}
}

// Programs that use this package choose the SDK: it stands on the API alone.
func TestTheAPIAlone(t *testing.T) {
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			switch imported, _ := strconv.Unquote(spec.Path.Value); {
			case imported == "go.opentelemetry.io/otel", imported == "go.opentelemetry.io/otel/attribute", imported == "go.opentelemetry.io/otel/metric", imported == "go.opentelemetry.io/otel/trace":
				seen++
			case strings.Contains(imported, ".") && !strings.HasPrefix(imported, "github.com/mayflycache/mayfly") && imported != "github.com/redis/go-redis/v9":
				t.Errorf("%s imports %s", name, imported)
			}
		}
	}
	if seen == 0 {
		t.Error("no import of OpenTelemetry seen")
	}
}
