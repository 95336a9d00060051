// Package mayflyotel shows OpenTelemetry what a mayfly cache does. It uses only OpenTelemetry's API: your program chooses the SDK and where
// it exports to. [New] returns an Observer for any number of namespaces and local tiers:
//
//	observer, err := mayflyotel.New(mayflyotel.Options{})
//	users := mayfly.Namespace[int64, User]{ ..., Observer: observer}
//
// Every Event becomes an event of the span in its context, if that span is recorded, and is counted and timed. The metrics are those of
// package metrics under OpenTelemetry's names: mayfly.requests is mayfly_requests_total. An exporter to Prometheus produces the same names
// and labels, so that package's dashboard and alerts work with either. docs/metrics.md lists them.
//
// It is a separate module, so that programs without OpenTelemetry do not download it.
package mayflyotel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/mayflycache/mayfly"
)

// scope is the name of the instrumentation: the import path, as OpenTelemetry asks for.
const scope = "github.com/mayflycache/mayfly/otel"

// Options say what to show. The zero value shows everything but keys.
type Options struct {
	// MeterProvider makes the metrics. Nil is the global one, which may be set later. With the one of go.opentelemetry.io/otel/metric/noop
	// there are only span events.
	MeterProvider metric.MeterProvider

	// SpanEvents chooses which Events become events of spans. Nil chooses all of them. An SDK keeps a limited number per span, 128 by
	// default, so a request that reads many keys may want only its misses:
	//
	//	SpanEvents: func(e mayfly.Event) bool { return e.Outcome != mayfly.OutcomeHitRedis },
	SpanEvents func(e mayfly.Event) bool

	// Keys adds the key to span events, and leaves it in the texts of errors. It is off by default, since keys contain IDs of users and
	// sessions, and many people read traces. Metrics never have keys.
	Keys bool
}

// Observer shows Events. It is safe for concurrent use. One is enough for a program: two with the same MeterProvider report reads twice.
type Observer struct {
	opt  Options
	make instruments

	series sync.Map // *series by seriesKey, so that attributes are built only once
	reads  sync.Map // *atomic.Int64 by readKey

	locals, engines, https, origins sync.Map // functions that return stats, by name

	mu    sync.Mutex                 // guards the fields below
	names map[string]bool            // of namespaces
	local map[string][]func() uint64 // hits
}

var _ interface {
	mayfly.Observer
	ObserveLocal(namespace string, hits func() uint64)
} = (*Observer)(nil)

// New returns an Observer whose metrics come from the MeterProvider.
func New(o Options) (*Observer, error) {
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	m := &Observer{opt: o, names: map[string]bool{}, local: map[string][]func() uint64{}}
	if err := m.register(o.MeterProvider.Meter(scope)); err != nil {
		return nil, fmt.Errorf("mayflyotel: Options.MeterProvider (%T) refuses a metric, use one that takes these or the noop one: %w", o.MeterProvider, err)
	}
	return m, nil
}

// seriesKey identifies the attributes of an Event.
type seriesKey struct {
	namespace string
	kind      mayfly.Kind
	outcome   mayfly.Outcome
	err       string // its kind
}

// readKey identifies the attributes of a read.
type readKey struct{ namespace, outcome string }

// series is where an Event is counted; nil where it is not counted.
type series struct {
	sum     metric.Int64Counter
	sumOf   []metric.AddOption
	reads   *atomic.Int64 // used instead of sum
	time    metric.Float64Histogram
	timeOf  []metric.RecordOption
	breaker []metric.AddOption
}

// Observe counts and times e, and adds it to the span of ctx.
func (m *Observer) Observe(ctx context.Context, e mayfly.Event) {
	m.measure(ctx, e)
	if span := trace.SpanFromContext(ctx); span.IsRecording() && (m.opt.SpanEvents == nil || m.opt.SpanEvents(e)) {
		span.AddEvent(eventName(e.Kind), trace.WithAttributes(m.describe(e)...))
	}
}

func (m *Observer) measure(ctx context.Context, e mayfly.Event) {
	key := seriesKey{namespace: e.Namespace, kind: e.Kind, outcome: e.Outcome}
	if e.Kind == mayfly.KindBackend {
		key.err = kindOf(e)
	}
	found, ok := m.series.Load(key)
	if !ok {
		found, _ = m.series.LoadOrStore(key, m.seriesOf(key))
	}
	s := found.(*series)
	switch {
	case s.reads != nil:
		s.reads.Add(1)
	case s.sum != nil:
		s.sum.Add(ctx, count(e), s.sumOf...)
	}
	if s.time != nil && e.Took > 0 {
		s.time.Record(ctx, e.Took.Seconds(), s.timeOf...)
	}
	switch {
	case s.breaker == nil:
	case e.Outcome == mayfly.OutcomeFailed:
		m.make.open.Add(ctx, 1, s.breaker...)
	default:
		m.make.open.Add(ctx, -1, s.breaker...)
	}
}

// count returns how much an Event counts.
func count(e mayfly.Event) int64 {
	if (e.Kind == mayfly.KindLoad || e.Kind == mayfly.KindRemoval || e.Kind == mayfly.KindWrite || e.Kind == mayfly.KindQueue) && e.N > 0 {
		return int64(e.N)
	}
	return 1
}

// seriesOf returns the series of key.
func (m *Observer) seriesOf(key seriesKey) *series {
	namespace := attribute.String("namespace", m.bounded(key.namespace))
	s := new(series)
	if key.kind == mayfly.KindRead {
		found, _ := m.reads.LoadOrStore(readKey{namespace.Value.AsString(), bounded(key.kind, key.outcome)}, new(atomic.Int64))
		s.reads = found.(*atomic.Int64)
	}
	if sum, ok := m.make.sums[key.kind]; ok {
		all := []attribute.KeyValue{namespace}
		switch label := sums[key.kind].label; label {
		case "":
		case "kind":
			all = append(all, attribute.String(label, key.err))
		default:
			all = append(all, attribute.String(label, bounded(key.kind, key.outcome)))
		}
		s.sum, s.sumOf = sum, []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(all...))}
	}
	if time, ok := m.make.times[key.kind]; ok {
		s.time = time
		if key.kind != mayfly.KindLag {
			s.timeOf = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(namespace))}
		}
	}
	if key.kind == mayfly.KindBreaker {
		s.breaker = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(namespace))}
	}
	return s
}

// mostNamespaces bounds the number of attributes: further names are counted as "other".
const mostNamespaces = 200

// bounded returns the attribute for the name of a namespace, or of anything else that has one.
func (m *Observer) bounded(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.names[name] {
		if len(m.names) == mostNamespaces {
			return "other"
		}
		m.names[name] = true
	}
	return name
}

// ObserveLocal counts the local hits of a cache.
func (m *Observer) ObserveLocal(namespace string, hits func() uint64) {
	namespace = m.bounded(namespace)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.local[namespace] = append(m.local[namespace], hits)
}

// WatchLocal shows the stats of a local tier, local.Stats, under a name. It replaces an earlier one of the same name; nil removes it.
func (m *Observer) WatchLocal(name string, stats func() mayfly.LocalStats) {
	watch(&m.locals, name, stats)
}

// WatchEngine shows the stats of an embedded database, db.Stats, as WatchLocal does.
func (m *Observer) WatchEngine(name string, stats func() mayfly.EngineStats) {
	watch(&m.engines, name, stats)
}

// WatchHTTP shows the stats of an HTTP cache, pages.Stats, as WatchLocal does.
func (m *Observer) WatchHTTP(name string, stats func() mayfly.HTTPStats) {
	watch(&m.https, name, stats)
}

// WatchOrigin shows the stats of an origin, origin.Stats or cache.Origin().Stats, as WatchLocal does. Caches that share an origin count as
// one.
func (m *Observer) WatchOrigin(name string, stats func() mayfly.OriginStats) {
	watch(&m.origins, name, stats)
}

func watch[S any](sources *sync.Map, name string, stats func() S) {
	if stats == nil {
		sources.Delete(name)
		return
	}
	sources.Store(name, stats)
}

// ObserveAudit shows the results of an audit under a name for its server or servers: how many keys were looked at, and how many of them had
// no TTL. A program that runs ttlaudit.Run regularly passes the report's figures here.
func (m *Observer) ObserveAudit(server string, keys, noTTL int64) {
	m.audited(m.bounded(server), keys, noTTL)
}

// register makes the instruments, and registers the function that reads them at collection.
func (m *Observer) register(meter metric.Meter) error {
	var wrong []error
	m.make = newInstruments(meter, func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	})
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	_, err := meter.RegisterCallback(m.collect, m.make.asked...)
	return err
}

// kindOf returns the kind of the error that e reports.
func kindOf(e mayfly.Event) string {
	if e.Outcome == mayfly.OutcomeTimedOut {
		return "timeout"
	}
	return e.ErrorKind()
}
