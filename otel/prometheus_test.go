package mayflyotel_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/metrics"
	mayflyotel "github.com/mayflycache/mayfly/otel"
)

// observer is what both Observers can do.
type observer interface {
	mayfly.Observer
	ObserveLocal(namespace string, hits func() uint64)
	WatchLocal(string, func() mayfly.LocalStats)
	WatchEngine(string, func() mayfly.EngineStats)
	WatchHTTP(string, func() mayfly.HTTPStats)
	WatchOrigin(string, func() mayfly.OriginStats)
	ObserveAudit(string, int64, int64)
}

// What an exporter to Prometheus makes of the metrics is what the package metrics makes of the same Events: every name, label and value.
func TestNamesOfPrometheus(t *testing.T) { synctest.Test(t, testNamesOfPrometheus) }

func testNamesOfPrometheus(t *testing.T) {
	theirs := prometheus.NewPedanticRegistry()
	want := mayfly.Must(metrics.New(theirs, metrics.Options{Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}}))
	ours := prometheus.NewPedanticRegistry()
	got := mayfly.Must(mayflyotel.New(mayflyotel.Options{MeterProvider: exported(t, ours)}))
	words := replyWords(t)
	for _, o := range []observer{want, got} {
		everything(t.Context(), o, words)
	}
	a, b := scraped(theirs), scraped(ours)
	for name, value := range a {
		if b[name] != value {
			t.Errorf("%s is %q, not %s", name, b[name], value)
		}
	}
	for name, value := range b {
		if _, ok := a[name]; !ok {
			t.Errorf("%s %s is not in metrics", name, value)
		}
	}
	if len(a) < 250 {
		t.Errorf("only %d series", len(a))
	}
}

// everything does with an Observer all that it can do, and each thing a different number of times.
func everything(ctx context.Context, o observer, words []string) {
	outcomes := []mayfly.Outcome{
		mayfly.OutcomeOK, mayfly.OutcomeFailed, mayfly.OutcomeHitRedis, mayfly.OutcomeStale, mayfly.OutcomeNegative, mayfly.OutcomeMiss, mayfly.OutcomeBypass, mayfly.OutcomeRefused, mayfly.OutcomeTimedOut,
		mayfly.OutcomeDropped, "new one", mayfly.OutcomeHitLocal, "",
	}
	for kind := mayfly.Kind(0); kind < 20; kind++ { // a few that do not exist yet
		for i, outcome := range outcomes {
			for n := range int(kind)%3 + i%4 {
				o.Observe(ctx, mayfly.Event{Kind: kind, Outcome: outcome, Namespace: "users", N: n, Took: time.Duration(i*n) * time.Millisecond, Key: "k"})
			}
		}
	}
	errs := []error{
		io.EOF, context.Canceled, context.DeadlineExceeded, redis.ErrClosed, mayfly.ErrCrowded, errors.New("undecodable"), nil, fmt.Errorf("in: %w", io.ErrUnexpectedEOF),
		redisError("ERR what"), redisError("NEVERHEARD of it"),
	}
	for _, word := range words {
		errs = append(errs, redisError(word+" and why"))
	}
	for i, err := range errs {
		for range i + 1 {
			o.Observe(ctx, mayfly.Event{Kind: mayfly.KindBackend, Outcome: mayfly.OutcomeFailed, Namespace: "orders", Err: err})
		}
	}
	o.ObserveLocal("users", func() uint64 { return 40 })
	o.ObserveLocal("users", func() uint64 { return 2 })
	o.ObserveLocal("carts", func() uint64 { return 0 })
	o.WatchLocal("main", func() mayfly.LocalStats {
		return mayfly.LocalStats{Rung: "pubsub", Entries: 4, Dead: 1, Bytes: 999, Hits: 5, Misses: 6, Evictions: 7, Expired: 8, Changes: 9, Flushes: 10}
	})
	o.WatchLocal("empty", func() mayfly.LocalStats { return mayfly.LocalStats{} })
	o.WatchEngine("main", func() mayfly.EngineStats {
		return mayfly.EngineStats{Keys: 8, Expires: 5, Dead: 2, Memory: 77, Expired: 3, Evicted: 4, Commands: 6, Hits: 7, Misses: 9, Cycle: 1500 * time.Millisecond}
	})
	o.WatchHTTP("pages", func() mayfly.HTTPStats {
		return mayfly.HTTPStats{Local: 3, Redis: 4, Stale: 5, Collapsed: 2, Forwarded: 6, Passed: 7, Stored: 8}
	})
	o.WatchOrigin("db", func() mayfly.OriginStats {
		return mayfly.OriginStats{Limit: 20, InFlight: 3, Queued: 4, Entered: 50, Refused: 6, Waited: 2500 * time.Millisecond}
	})
	o.ObserveAudit("main", 1000, 3)
	for i := range 300 { // more than there are labels for
		o.Observe(ctx, mayfly.Event{Kind: mayfly.KindJoin, Outcome: mayfly.OutcomeOK, Namespace: fmt.Sprint("n", i)})
	}
}

// exported is a provider whose metrics r exports.
func exported(t *testing.T, r *prometheus.Registry) *sdkmetric.MeterProvider {
	t.Helper()
	reader, err := exporter.New(exporter.WithRegisterer(r), exporter.WithoutScopeInfo(), exporter.WithoutTargetInfo())
	if err != nil {
		t.Fatal(err)
	}
	return sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
}

// scraped returns the samples of a registry as Prometheus reads them: "name{labels}" to its value, as text.
func scraped(r *prometheus.Registry) map[string]string {
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	all := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndex(line, " "); i > 0 && line[0] != '#' {
			all[line[:i]] = line[i+1:]
		}
	}
	return all
}

// replyWords are the words that the package metrics tells errors of Redis by, from its source: this module has a copy of them.
func replyWords(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../errorkind.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok {
			if word, ok := pair.Key.(*ast.BasicLit); ok {
				text, _ := strconv.Unquote(word.Value)
				words[text] = true
			}
		}
		return true
	})
	if len(words) < 10 {
		t.Fatalf("only %d words in metrics/errors.go", len(words))
	}
	return slices.Sorted(maps.Keys(words))
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
