package mayflyotel

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mayflycache/mayfly"
)

// An exporter to Prometheus derives names from these: it replaces dots, and by convention adds the unit, "total" or "ratio".
// TestNamesOfPrometheus compares the result with package metrics.

// sums are the counters of Events, and what the outcome is called there. Reads are not among them: local hits count under the same name,
// and are read at collection.
var sums = map[mayfly.Kind]struct{ name, unit, help, label string }{
	mayfly.KindLoad:      {"mayfly.loads", "{key}", "Keys that the loader was asked for, by result.", "result"},
	mayfly.KindJoin:      {"mayfly.coalesced_waiters", "{caller}", "Callers that waited for a load begun by another caller of their process.", ""},
	mayfly.KindWait:      {"mayfly.lease.waits", "{wait}", "Waits for a load of another process, by result.", "result"},
	mayfly.KindFill:      {"mayfly.fills", "{fill}", "Loaded values offered to Redis; refused: deleted or replaced meanwhile.", "result"},
	mayfly.KindRefresh:   {"mayfly.early_refreshes", "{refresh}", "Renewals of values before they expire, by result; refused: another process renews.", "result"},
	mayfly.KindWrite:     {"mayfly.writes", "{key}", "Values set by callers, by result.", "result"},
	mayfly.KindRemoval:   {"mayfly.removals", "{key}", "Keys deleted by callers, by result.", "result"},
	mayfly.KindBackend:   {"mayfly.redis.errors", "{error}", "Times that Redis could not be asked, by kind.", "kind"},
	mayfly.KindBreaker:   {"mayfly.breaker.changes", "{change}", "Breakers that opened (failed) or closed (ok).", "result"},
	mayfly.KindAdmission: {"mayfly.origin.waits", "{load}", "Loads that waited for their turn at the origin, by result; dropped: nobody wanted them any more.", "result"},
	mayfly.KindLimit:     {"mayfly.limiter.decisions", "{call}", "Calls that a limiter was asked about, by decision.", "decision"},
	mayfly.KindQueue: {"mayfly.queue.waits", "{call}", "Calls that waited for others of their process to give a connection to Redis back, by result; refused: not sent " +
		"because a breaker opened.", "result"},
	mayfly.KindWarning: {"mayfly.warnings", "{warning}", "Dangerous configurations that were accepted.", ""},
}

// times are the histograms of Events.
var times = map[mayfly.Kind][2]string{
	mayfly.KindRead:      {"mayfly.request.duration", "How long reads took, without local hits."},
	mayfly.KindLoad:      {"mayfly.load.duration", "How long the loader took."},
	mayfly.KindWait:      {"mayfly.lease.wait.duration", "How long calls waited for a load of another process."},
	mayfly.KindAdmission: {"mayfly.origin.wait.duration", "How long loads waited for their turn at the origin."},
	mayfly.KindQueue:     {"mayfly.queue.wait.duration", "How long the first of the calls that were sent together waited."},
	mayfly.KindLag:       {"mayfly.invalidation.lag", "How long it took to hear of a change in Redis, tried several times a second."},
}

// buckets go from 100 microseconds to 10 seconds. A View of the SDK replaces them, by exponential ones for example.
var buckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

// instruments are the meter's instruments.
type instruments struct {
	sums  map[mayfly.Kind]metric.Int64Counter
	times map[mayfly.Kind]metric.Float64Histogram
	open  metric.Int64UpDownCounter

	auditKeys, auditEndless, auditAt metric.Int64Gauge

	requests metric.Int64ObservableCounter
	locals   []figure[mayfly.LocalStats]
	engines  []figure[mayfly.EngineStats]
	https    []figure[mayfly.HTTPStats]
	origins  []figure[mayfly.OriginStats]
	asked    []metric.Observable // the asynchronous ones
}

// newInstruments makes the instruments. It returns all errors.
func newInstruments(meter metric.Meter, check func(error)) instruments {
	made := instruments{sums: map[mayfly.Kind]metric.Int64Counter{}, times: map[mayfly.Kind]metric.Float64Histogram{}}
	var err error
	for kind, s := range sums {
		made.sums[kind], err = meter.Int64Counter(s.name, metric.WithUnit(s.unit), metric.WithDescription(s.help))
		check(err)
	}
	for kind, t := range times {
		made.times[kind], err = meter.Float64Histogram(t[0], metric.WithUnit("s"), metric.WithDescription(t[1]), metric.WithExplicitBucketBoundaries(buckets...))
		check(err)
	}
	made.open, err = meter.Int64UpDownCounter("mayfly.breaker.open_servers", metric.WithUnit("{server}"), metric.WithDescription("Servers that are not asked because they did not answer."))
	check(err)
	made.auditKeys, err = meter.Int64Gauge("mayfly.audit.keys", metric.WithUnit("{key}"), metric.WithDescription("Keys that the latest audit looked at."))
	check(err)
	made.auditEndless, err = meter.Int64Gauge("mayfly.audit.keys_without_ttl", metric.WithUnit("{key}"), metric.WithDescription("Keys without TTL among those that the latest audit looked at."))
	check(err)
	made.auditAt, err = meter.Int64Gauge("mayfly.audit.timestamp", metric.WithUnit("s"), metric.WithDescription("When the latest audit was, in unix time."))
	check(err)
	made.requests, err = meter.Int64ObservableCounter("mayfly.requests", metric.WithUnit("{request}"),
		metric.WithDescription("Reads of cached values, by outcome; hit_local: without a trip to Redis."))
	check(err)
	made.asked = append(made.asked, made.requests)
	made.figures(maker{meter, check})
	return made
}

func (m *Observer) audited(server string, keys, noTTL int64) {
	of, ctx := metric.WithAttributeSet(attribute.NewSet(attribute.String("server", server))), context.Background()
	m.make.auditKeys.Record(ctx, keys, of)
	m.make.auditEndless.Record(ctx, noTTL, of)
	m.make.auditAt.Record(ctx, time.Now().Unix(), of)
}

// outcomes are those that become attributes of metrics; others are "other".
var outcomes = []mayfly.Outcome{
	mayfly.OutcomeOK, mayfly.OutcomeFailed, mayfly.OutcomeHitRedis, mayfly.OutcomeStale, mayfly.OutcomeNegative, mayfly.OutcomeMiss, mayfly.OutcomeBypass, mayfly.OutcomeRefused, mayfly.OutcomeTimedOut, mayfly.OutcomeDropped,
}

func bounded(k mayfly.Kind, o mayfly.Outcome) string {
	if !slices.Contains(outcomes, o) {
		return "other"
	}
	return outcome(k, o)
}

// outcome returns the name of an outcome in metrics and traces.
func outcome(k mayfly.Kind, o mayfly.Outcome) string {
	switch {
	case k == mayfly.KindLimit && o == mayfly.OutcomeOK:
		return "allowed"
	case k == mayfly.KindLimit && o == mayfly.OutcomeRefused:
		return "denied"
	case k == mayfly.KindLoad && o == mayfly.OutcomeNegative:
		return "not_found"
	}
	return string(o)
}
