package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/embedded"
	"github.com/mayflycache/mayfly/metrics"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/sliding"
)

// scraped returns the samples of a registry as Prometheus reads them: "name{labels}" to its value, as text.
func scraped(t testing.TB, r *prometheus.Registry) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	request := httptest.NewRequest("GET", "/metrics", nil)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true}).ServeHTTP(w, request)
	all := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndex(strings.SplitN(line, " # ", 2)[0], " "); i > 0 && line[0] != '#' {
			all[line[:i]] = line[i+1:]
		}
	}
	return all
}

// buckets are classic ones, for all that is timed.
var buckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func observer(t testing.TB, o metrics.Options) (*metrics.Observer, *prometheus.Registry) {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	m, err := metrics.New(r, o)
	if err != nil {
		t.Fatal(err)
	}
	return m, r
}

// Each kind of Event is counted under its name.
func TestEvents(t *testing.T) {
	m, r := observer(t, metrics.Options{Buckets: buckets})
	see := func(n int, e mayfly.Event) {
		for range n {
			if e.Namespace == "" && e.Kind != mayfly.KindLag {
				e.Namespace = "users"
			}
			m.Observe(t.Context(), e)
		}
	}
	ms := time.Millisecond
	see(3, mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeHitRedis, Took: ms})
	see(1, mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeMiss, Took: 30 * ms})
	see(1, mayfly.Event{Kind: mayfly.KindRead, Outcome: "new one"})
	see(2, mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeOK, N: 5, Took: 30 * ms})
	see(1, mayfly.Event{Kind: mayfly.KindLoad, Outcome: mayfly.OutcomeNegative, N: 1})
	see(4, mayfly.Event{Kind: mayfly.KindJoin, Outcome: mayfly.OutcomeOK})
	see(1, mayfly.Event{Kind: mayfly.KindWait, Outcome: mayfly.OutcomeTimedOut, Took: ms})
	see(2, mayfly.Event{Kind: mayfly.KindQueue, Outcome: mayfly.OutcomeOK, N: 30, Took: ms})
	see(1, mayfly.Event{Kind: mayfly.KindQueue, Outcome: mayfly.OutcomeRefused, N: 7, Took: ms})
	see(1, mayfly.Event{Kind: mayfly.KindFill, Outcome: mayfly.OutcomeRefused, N: 300})
	see(1, mayfly.Event{Kind: mayfly.KindRefresh, Outcome: mayfly.OutcomeOK})
	see(1, mayfly.Event{Kind: mayfly.KindWrite, Outcome: mayfly.OutcomeOK, N: 3})
	see(1, mayfly.Event{Kind: mayfly.KindRemoval, Outcome: mayfly.OutcomeOK, N: 2})
	see(2, mayfly.Event{Kind: mayfly.KindBreaker, Outcome: mayfly.OutcomeFailed})
	see(1, mayfly.Event{Kind: mayfly.KindBreaker, Outcome: mayfly.OutcomeOK})
	see(1, mayfly.Event{Kind: mayfly.KindLimit, Outcome: mayfly.OutcomeOK})
	see(2, mayfly.Event{Kind: mayfly.KindLimit, Outcome: mayfly.OutcomeRefused})
	see(1, mayfly.Event{Kind: mayfly.KindWarning, Outcome: mayfly.OutcomeOK})
	see(1, mayfly.Event{Kind: mayfly.KindLag, Outcome: mayfly.OutcomeOK, Took: 200 * time.Microsecond})
	see(1, mayfly.Event{Kind: mayfly.KindCoherence, Outcome: "tracking"})
	see(1, mayfly.Event{Kind: mayfly.Kind(99)})
	for kind, e := range map[string]mayfly.Event{
		"timeout": {Outcome: mayfly.OutcomeTimedOut}, "network": {Err: io.EOF}, "oom": {Err: fmt.Errorf("get %q: %w", "k", redisError("OOM command not allowed"))}, "auth": {Err: redisError("NOPERM no")},
		"reply": {Err: redisError("ERR what")}, "other": {Err: errors.New("undecodable")},
		"crowded": {Err: fmt.Errorf("delete: %w", mayfly.ErrCrowded)},
	} {
		e.Kind = mayfly.KindBackend
		see(1, e)
		if got := scraped(t, r)[`mayfly_redis_errors_total{kind="`+kind+`",namespace="users"}`]; got != "1.0" {
			t.Errorf("redis errors of kind %s: %q", kind, got)
		}
	}
	m.ObserveLocal("users", func() uint64 { return 40 })
	m.ObserveLocal("users", func() uint64 { return 2 })
	got := scraped(t, r)
	for name, want := range map[string]string{
		`mayfly_requests_total{namespace="users",outcome="hit_local"}`:         "42.0",
		`mayfly_requests_total{namespace="users",outcome="hit_redis"}`:         "3.0",
		`mayfly_requests_total{namespace="users",outcome="miss"}`:              "1.0",
		`mayfly_requests_total{namespace="users",outcome="other"}`:             "1.0",
		`mayfly_request_duration_seconds_count{namespace="users"}`:             "4",
		`mayfly_request_duration_seconds_bucket{namespace="users",le="0.001"}`: "3",
		`mayfly_loads_total{namespace="users",result="ok"}`:                    "10.0",
		`mayfly_loads_total{namespace="users",result="not_found"}`:             "1.0",
		`mayfly_load_duration_seconds_count{namespace="users"}`:                "2",
		`mayfly_coalesced_waiters_total{namespace="users"}`:                    "4.0",
		`mayfly_lease_waits_total{namespace="users",result="timed_out"}`:       "1.0",
		`mayfly_queue_waits_total{namespace="users",result="ok"}`:              "60.0",
		`mayfly_queue_waits_total{namespace="users",result="refused"}`:         "7.0",
		`mayfly_queue_wait_duration_seconds_count{namespace="users"}`:          "3",
		`mayfly_fills_total{namespace="users",result="refused"}`:               "1.0",
		`mayfly_early_refreshes_total{namespace="users",result="ok"}`:          "1.0",
		`mayfly_writes_total{namespace="users",result="ok"}`:                   "3.0",
		`mayfly_removals_total{namespace="users",result="ok"}`:                 "2.0",
		`mayfly_breaker_open_servers{namespace="users"}`:                       "1.0",
		`mayfly_breaker_changes_total{namespace="users",result="failed"}`:      "2.0",
		`mayfly_limiter_decisions_total{decision="allowed",namespace="users"}`: "1.0",
		`mayfly_limiter_decisions_total{decision="denied",namespace="users"}`:  "2.0",
		`mayfly_warnings_total{namespace="users"}`:                             "1.0",
		`mayfly_invalidation_lag_seconds_count`:                                "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, not %s", name, got[name], want)
		}
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}

// However many namespaces there are, the labels are bounded.
func TestLabelsAreBounded(t *testing.T) {
	m, r := observer(t, metrics.Options{})
	for i := range 1000 {
		m.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindJoin, Namespace: fmt.Sprint("n", i), Key: fmt.Sprint("k", i)})
	}
	got := scraped(t, r)
	if other := got[`mayfly_coalesced_waiters_total{namespace="other"}`]; len(got) > 300 || other != "800.0" {
		t.Errorf("%d series, %s of other", len(got), other)
	}
}

func TestExemplars(t *testing.T) {
	type key struct{}
	m, r := observer(t, metrics.Options{Buckets: buckets, TraceID: func(ctx context.Context) string { id, _ := ctx.Value(key{}).(string); return id }})
	m.Observe(context.WithValue(t.Context(), key{}, "4bf92f3577b34da6"), mayfly.Event{Kind: mayfly.KindLoad, Namespace: "users", Took: 30 * time.Millisecond})
	m.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindLoad, Namespace: "users", Took: 3 * time.Second})
	got := scraped(t, r)
	if with := got[`mayfly_load_duration_seconds_bucket{namespace="users",le="0.05"}`]; !strings.HasPrefix(with, `1 # {trace_id="4bf92f3577b34da6"} 0.03`) {
		t.Errorf("%q", with)
	}
	if without := got[`mayfly_load_duration_seconds_bucket{namespace="users",le="5.0"}`]; without != "2" {
		t.Errorf("%q", without)
	}
}

// Whoever has stats is not imported, and needs no conversion.
func TestStatsOfOthers(t *testing.T) {
	db := mayfly.Must(embedded.Open(embedded.Options{}))
	defer db.Close(context.Background())
	m, r := observer(t, metrics.Options{})
	m.WatchEngine("main", db.Stats)
	m.WatchHTTP("pages", func() mayfly.HTTPStats { return mayfly.HTTPStats{Local: 3, Collapsed: 2} })
	m.WatchLocal("main", func() mayfly.LocalStats {
		return mayfly.LocalStats{Rung: "pubsub", Entries: 4, Dead: 1, Bytes: 999, Evictions: 5}
	})
	m.WatchOrigin("db", func() mayfly.OriginStats {
		return mayfly.OriginStats{Limit: 8, InFlight: 7, Queued: 6, Entered: 5, Refused: 4, Waited: 3 * time.Second}
	})
	db.Client().Set(t.Context(), "a", "v", time.Hour)
	got := scraped(t, r)
	for name, want := range map[string]string{
		`mayfly_engine_keys{engine="main"}`: "1.0", `mayfly_engine_expires{engine="main"}`: "1.0", `mayfly_engine_dead_ratio{engine="main"}`: "0.0",
		`mayfly_http_requests_total{cache="pages",outcome="hit_local"}`: "3.0", `mayfly_http_requests_total{cache="pages",outcome="collapsed"}`: "2.0",
		`mayfly_origin_limit{origin="db"}`: "8.0", `mayfly_origin_in_flight{origin="db"}`: "7.0", `mayfly_origin_queued{origin="db"}`: "6.0",
		`mayfly_origin_entered_total{origin="db"}`: "5.0", `mayfly_origin_refused_total{origin="db"}`: "4.0", `mayfly_origin_queued_seconds_total{origin="db"}`: "3.0",
		`mayfly_local_coherence_rung{local="main",rung="pubsub"}`: "1.0", `mayfly_local_coherence_rung{local="main",rung="tracking"}`: "0.0",
		`mayfly_local_dead_ratio{local="main"}`: "0.25", `mayfly_local_size_bytes{local="main"}`: "999.0", `mayfly_local_evictions_total{local="main"}`: "5.0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, not %s", name, got[name], want)
		}
	}
}

// A cache with a local tier tells its hits by itself, and so does a store of sessions.
func TestLocalHitsAreCounted(t *testing.T) { synctest.Test(t, testLocalHitsAreCounted) }

func testLocalHitsAreCounted(t *testing.T) {
	rdb := redistest.Start(t).Client()
	m, r := observer(t, metrics.Options{})
	local, err := mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{"a:", "b:"}, MaxEntries: 100, Observer: m})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close(context.Background())
	ns := mayfly.Namespace[int, string]{Name: "users", Redis: rdb, Prefix: "a:", TTL: time.Hour, Local: local, Observer: mayfly.Tee(m, mayfly.ObserverFunc(func(context.Context, mayfly.Event) {}))}
	cache := mayfly.Must(cacheaside.New(ns, func(context.Context, int) (string, error) { return "v", nil }, cacheaside.Options{}))
	defer cache.Close(context.Background())
	ns.Name, ns.Prefix = "sessions", "b:"
	sessions := mayfly.Must(sliding.New(ns, sliding.Options{}))
	if err := sessions.Set(t.Context(), 1, "v"); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		cache.Get(t.Context(), 1)
		sessions.Get(t.Context(), 1)
		synctest.Wait() // for the push of the fill, which would refuse a copy that was made before it came
	}
	got := scraped(t, r)
	if hits := got[`mayfly_requests_total{namespace="users",outcome="hit_local"}`]; hits != "8.0" {
		t.Errorf("%q hits of users", hits)
	}
	if hits := got[`mayfly_requests_total{namespace="sessions",outcome="hit_local"}`]; hits == "" || hits == "0.0" {
		t.Errorf("%q hits of sessions", hits)
	}
	if n := testing.AllocsPerRun(200, func() { cache.Get(t.Context(), 1) }); n != 0 {
		t.Errorf("a local hit that is counted allocates %v", n)
	}
}

func TestHook(t *testing.T) {
	srv := redistest.Start(t)
	rdb := redis.NewClient(srv.Options())
	defer rdb.Close()
	m, r := observer(t, metrics.Options{})
	rdb.AddHook(m.Hook("cache"))
	rdb.Get(t.Context(), "a")
	rdb.LPush(t.Context(), "list", "v")
	rdb.Get(t.Context(), "list")
	rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Get(t.Context(), "a"); p.Get(t.Context(), "b"); return nil })
	redis.NewScript("return 1").Run(t.Context(), rdb, []string{"a"}) // which the server has not seen
	rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.EvalSha(t.Context(), "0", []string{"a"})
		p.Get(t.Context(), "b")
		return nil
	})
	rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error { p.Get(t.Context(), "a"); p.HGet(t.Context(), "list", "f"); return nil })
	got := scraped(t, r)
	if n := strings.Count(fmt.Sprint(got), "mayfly_redis_errors_total{"); n != 1 {
		t.Errorf("%d kinds of errors: %v", n, got)
	}
	for name, want := range map[string]string{
		`mayfly_redis_operation_duration_seconds_count{operation="get"}`:      "2",
		`mayfly_redis_operation_duration_seconds_count{operation="lpush"}`:    "1",
		`mayfly_redis_operation_duration_seconds_count{operation="pipeline"}`: "3",
		`mayfly_redis_errors_total{kind="wrong_type",namespace="cache"}`:      "2.0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, not %s", name, got[name], want)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for says, o := range map[string]metrics.Options{
		"Buckets[0] must": {Buckets: []float64{0}},
		"Buckets[1] must": {Buckets: []float64{1, 1}},
	} {
		if _, err := metrics.New(prometheus.NewRegistry(), o); err == nil || !strings.Contains(err.Error(), "metrics: Options."+says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	if _, err := metrics.New(nil, metrics.Options{}); err == nil || !strings.Contains(err.Error(), "the registerer is nil") {
		t.Error(err)
	}
	r := prometheus.NewRegistry()
	first, err := metrics.New(r, metrics.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := metrics.New(r, metrics.Options{}); err == nil || !strings.Contains(err.Error(), "make one Observer") {
		t.Errorf("twice: %v", err)
	}
	first.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindJoin, Namespace: "users"})
	if got := scraped(t, r)[`mayfly_coalesced_waiters_total{namespace="users"}`]; got != "1.0" {
		t.Errorf("the first was taken away with the second: %q", got)
	}
}

// A name that no label can have is spelled so that it is one, and what is nil is not watched.
func TestOddNames(t *testing.T) {
	r := prometheus.NewPedanticRegistry()
	m := mayfly.Must(metrics.New(r, metrics.Options{}))
	m.Observe(t.Context(), mayfly.Event{Kind: mayfly.KindRead, Outcome: mayfly.OutcomeHitRedis, Namespace: "a\xff"})
	m.ObserveAudit("a\xff", 1, 1)
	m.ObserveLocal("a\xff", nil)
	m.WatchLocal("a\xff", func() mayfly.LocalStats { return mayfly.LocalStats{} })
	m.WatchLocal("nobody", nil)
	m.WatchOrigin("nobody", nil)
	if _, err := r.Gather(); err != nil {
		t.Error(err)
	}
}
