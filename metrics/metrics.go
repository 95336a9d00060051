// Package metrics counts and times for Prometheus what a mayfly cache does. [New] returns an Observer for any number of namespaces and
// local tiers:
//
//	observer, err := metrics.New(prometheus.DefaultRegisterer, metrics.Options{})
//	users := mayfly.Namespace[int64, User]{ ..., Observer: observer}
//
// Figures that are not Events are read when Prometheus scrapes: local hits, and the watched local tiers, origins, embedded engine and HTTP
// caches (see [Observer.WatchLocal]). Every name begins with mayfly_; docs/metrics.md lists them. Labels are names of namespaces and
// outcomes, never keys.
//
// grafana.json is a dashboard for them; alerts.yml has alerting rules.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mayflycache/mayfly"
)

// Options say how to measure. The zero value is fine.
type Options struct {
	// TraceID returns the ID of the trace that ctx belongs to, or "". Timed events then carry it as an exemplar named trace_id. Nil: no
	// exemplars.
	TraceID func(ctx context.Context) string

	// Buckets are upper bounds, in seconds, of classic histograms beside the native ones, for a Prometheus that does not take
	// native histograms; nil has none. From 100 microseconds to 10 seconds fits:
	//
	//	prometheus.ExponentialBucketsRange(100e-6, 10, 16)
	Buckets []float64
}

func (o Options) validate() error {
	var wrong []error
	for i, b := range o.Buckets {
		if !(b > 0) || i > 0 && b <= o.Buckets[i-1] {
			wrong = append(wrong, fmt.Errorf("metrics: Options.Buckets[%d] must be greater than 0 and than the one before, got %v", i, b))
		}
	}
	return errors.Join(wrong...)
}

// Observer counts Events. It is safe for concurrent use.
type Observer struct {
	opt   Options
	sums  map[mayfly.Kind]*prometheus.CounterVec   // by namespace and outcome
	times map[mayfly.Kind]*prometheus.HistogramVec // by namespace, or none
	open  *prometheus.GaugeVec                     // breakers
	redis *prometheus.HistogramVec                 // commands of the hook

	audited, endless, auditedAt *prometheus.GaugeVec

	locals  *figures[mayfly.LocalStats]
	engines *figures[mayfly.EngineStats]
	https   *figures[mayfly.HTTPStats]
	origins *figures[mayfly.OriginStats]

	series sync.Map // *series by seriesKey, so that labels are looked up only once

	mu    sync.Mutex                 // guards the fields below
	names map[string]bool            // of namespaces
	local map[string][]func() uint64 // hits
}

var _ interface {
	mayfly.Observer
	ObserveLocal(namespace string, hits func() uint64)
} = (*Observer)(nil)

// mostNamespaces bounds the number of labels: further namespaces are counted as "other".
const mostNamespaces = 200

// sums are the counters of Events: name, help, and the name of the outcome's label.
var sums = map[mayfly.Kind][3]string{
	mayfly.KindRead:      {"mayfly_requests_total", "Reads of cached values, by outcome; hit_local: without a trip to Redis.", "outcome"},
	mayfly.KindLoad:      {"mayfly_loads_total", "Keys that the loader was asked for, by result.", "result"},
	mayfly.KindJoin:      {"mayfly_coalesced_waiters_total", "Callers that waited for a load begun by another caller of their process.", ""},
	mayfly.KindWait:      {"mayfly_lease_waits_total", "Waits for a load of another process, by result.", "result"},
	mayfly.KindFill:      {"mayfly_fills_total", "Loaded values offered to Redis; refused: deleted or replaced meanwhile.", "result"},
	mayfly.KindRefresh:   {"mayfly_early_refreshes_total", "Renewals of values before they expire, by result; refused: another process renews.", "result"},
	mayfly.KindWrite:     {"mayfly_writes_total", "Values set by callers, by result.", "result"},
	mayfly.KindRemoval:   {"mayfly_removals_total", "Keys deleted by callers, by result.", "result"},
	mayfly.KindBackend:   {"mayfly_redis_errors_total", "Times that Redis could not be asked, by kind.", "kind"},
	mayfly.KindBreaker:   {"mayfly_breaker_changes_total", "Breakers that opened (failed) or closed (ok).", "result"},
	mayfly.KindAdmission: {"mayfly_origin_waits_total", "Loads that waited for their turn at the origin, by result; dropped: nobody wanted them any more.", "result"},
	mayfly.KindQueue: {"mayfly_queue_waits_total", "Calls that waited for others of their process to give a connection to Redis back, by result; refused: not sent " +
		"because a breaker opened.", "result"},
	mayfly.KindLimit:   {"mayfly_limiter_decisions_total", "Calls that a limiter was asked about, by decision.", "decision"},
	mayfly.KindWarning: {"mayfly_warnings_total", "Dangerous configurations that were accepted.", ""},
}

// times are the histograms of Events.
var times = map[mayfly.Kind][2]string{
	mayfly.KindRead:      {"mayfly_request_duration_seconds", "How long reads took, without local hits."},
	mayfly.KindLoad:      {"mayfly_load_duration_seconds", "How long the loader took."},
	mayfly.KindWait:      {"mayfly_lease_wait_duration_seconds", "How long calls waited for a load of another process."},
	mayfly.KindAdmission: {"mayfly_origin_wait_duration_seconds", "How long loads waited for their turn at the origin."},
	mayfly.KindQueue:     {"mayfly_queue_wait_duration_seconds", "How long the first of the calls that were sent together waited."},
	mayfly.KindLag:       {"mayfly_invalidation_lag_seconds", "How long it took to hear of a change in Redis, tried several times a second."},
}

// New returns an Observer whose metrics are registered with r.
func New(r prometheus.Registerer, o Options) (*Observer, error) {
	if r == nil {
		return nil, errors.New("metrics: the registerer is nil: give it prometheus.DefaultRegisterer or a registry of your own")
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	m := &Observer{
		opt: o, sums: map[mayfly.Kind]*prometheus.CounterVec{}, times: map[mayfly.Kind]*prometheus.HistogramVec{},
		names: map[string]bool{}, local: map[string][]func() uint64{},
	}
	var all []prometheus.Collector
	for kind, s := range sums {
		labels := []string{"namespace"}
		if s[2] != "" {
			labels = append(labels, s[2])
		}
		m.sums[kind] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: s[0], Help: s[1]}, labels)
		if kind != mayfly.KindRead { // requests collects those, with the local hits
			all = append(all, m.sums[kind])
		}
	}
	for kind, s := range times {
		labels := []string{"namespace"}
		if kind == mayfly.KindLag {
			labels = nil
		}
		m.times[kind] = m.histogram(s[0], s[1], labels...)
		all = append(all, m.times[kind])
	}
	m.redis = m.histogram("mayfly_redis_operation_duration_seconds", "How long Redis took to answer, by command, as the hook saw it.", "operation")
	m.open = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "mayfly_breaker_open_servers", Help: "Servers that are not asked because they did not answer."}, []string{"namespace"})
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"server"})
	}
	m.audited = gauge("mayfly_audit_keys", "Keys that the latest audit looked at.")
	m.endless = gauge("mayfly_audit_keys_without_ttl", "Keys without TTL among those that the latest audit looked at.")
	m.auditedAt = gauge("mayfly_audit_timestamp_seconds", "When the latest audit was, in unix time.")
	all = append(all, m.redis, m.open, m.audited, m.endless, m.auditedAt, requests{m})
	m.locals, m.engines, m.https, m.origins = localFigures(), engineFigures(), httpFigures(), originFigures()
	all = append(all, m.locals, m.engines, m.https, m.origins)
	for i, c := range all {
		if err := r.Register(c); err != nil {
			for _, done := range all[:i] {
				r.Unregister(done)
			}
			if errors.As(err, new(prometheus.AlreadyRegisteredError)) {
				return nil, fmt.Errorf("metrics: this registerer has an Observer's metrics already; make one Observer and give it to every namespace: %w", err)
			}
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	return m, nil
}

func (m *Observer) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: m.opt.Buckets,
		NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 100, NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

type seriesKey struct {
	namespace string
	kind      mayfly.Kind
	outcome   mayfly.Outcome
	of        string // the kind of the error
}

// series is where an Event is counted; nil where it is not counted.
type series struct {
	sum  prometheus.Counter
	time prometheus.Observer
	open prometheus.Gauge
}

// Observe counts e.
func (m *Observer) Observe(ctx context.Context, e mayfly.Event) {
	key := seriesKey{namespace: e.Namespace, kind: e.Kind, outcome: e.Outcome}
	switch {
	case e.Kind == mayfly.KindBackend && e.Outcome == mayfly.OutcomeTimedOut:
		key.of = "timeout"
	case e.Kind == mayfly.KindBackend:
		key.of = e.ErrorKind()
	}
	found, ok := m.series.Load(key)
	if !ok {
		found, _ = m.series.LoadOrStore(key, m.make(key))
	}
	s := found.(*series)
	if s.sum != nil {
		s.sum.Add(count(e))
	}
	if s.time != nil && e.Took > 0 {
		m.observe(ctx, s.time, e.Took)
	}
	if s.open != nil {
		if e.Outcome == mayfly.OutcomeFailed {
			s.open.Inc()
		} else {
			s.open.Dec()
		}
	}
}

// count returns how much an Event counts.
func count(e mayfly.Event) float64 {
	if (e.Kind == mayfly.KindLoad || e.Kind == mayfly.KindRemoval || e.Kind == mayfly.KindWrite || e.Kind == mayfly.KindQueue) && e.N > 0 {
		return float64(e.N)
	}
	return 1
}

func (m *Observer) observe(ctx context.Context, to prometheus.Observer, took time.Duration) {
	if m.opt.TraceID != nil {
		if id := m.opt.TraceID(ctx); id != "" && len(id) <= 64 {
			to.(prometheus.ExemplarObserver).ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": id})
			return
		}
	}
	to.Observe(took.Seconds())
}

// make returns the series of key.
func (m *Observer) make(key seriesKey) *series {
	namespace := m.bounded(key.namespace)
	s := new(series)
	if vec := m.sums[key.kind]; vec != nil {
		labels := []string{namespace}
		switch name := sums[key.kind][2]; {
		case name == "kind":
			labels = append(labels, key.of)
		case name != "":
			labels = append(labels, outcome(key.kind, key.outcome))
		}
		s.sum = vec.WithLabelValues(labels...)
	}
	if vec := m.times[key.kind]; vec != nil {
		labels := []string{namespace}
		if key.kind == mayfly.KindLag {
			labels = nil
		}
		s.time = vec.WithLabelValues(labels...)
	}
	if key.kind == mayfly.KindBreaker {
		s.open = m.open.WithLabelValues(namespace)
	}
	return s
}

// outcomes are those that become labels; others are "other".
var outcomes = []mayfly.Outcome{
	mayfly.OutcomeOK, mayfly.OutcomeFailed, mayfly.OutcomeHitRedis, mayfly.OutcomeStale, mayfly.OutcomeNegative, mayfly.OutcomeMiss, mayfly.OutcomeBypass, mayfly.OutcomeRefused, mayfly.OutcomeTimedOut, mayfly.OutcomeDropped,
}

func outcome(k mayfly.Kind, o mayfly.Outcome) string {
	switch {
	case k == mayfly.KindLimit && o == mayfly.OutcomeOK:
		return "allowed"
	case k == mayfly.KindLimit && o == mayfly.OutcomeRefused:
		return "denied"
	case k == mayfly.KindLoad && o == mayfly.OutcomeNegative:
		return "not_found"
	case !slices.Contains(outcomes, o):
		return "other"
	}
	return string(o)
}

// bounded returns the label of a namespace.
func (m *Observer) bounded(namespace string) string {
	namespace = strings.ToValidUTF8(namespace, "?") // labels must be valid UTF-8
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.names[namespace] {
		if len(m.names) == mostNamespaces {
			return "other"
		}
		m.names[namespace] = true
	}
	return namespace
}

// ObserveLocal counts the local hits of a cache.
func (m *Observer) ObserveLocal(namespace string, hits func() uint64) {
	if hits == nil {
		return
	}
	namespace = m.bounded(namespace)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.local[namespace] = append(m.local[namespace], hits)
}

// requests collects mayfly_requests_total: what Events reported, and local hits, which are counted elsewhere.
type requests struct{ m *Observer }

var localHits = prometheus.NewDesc(sums[mayfly.KindRead][0], sums[mayfly.KindRead][1], []string{"namespace", "outcome"}, nil)

func (r requests) Describe(to chan<- *prometheus.Desc) { to <- localHits }

func (r requests) Collect(to chan<- prometheus.Metric) {
	r.m.sums[mayfly.KindRead].Collect(to)
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	for namespace, caches := range r.m.local {
		sum := uint64(0)
		for _, hits := range caches {
			sum += hits()
		}
		to <- prometheus.MustNewConstMetric(localHits, prometheus.CounterValue, float64(sum), namespace, string(mayfly.OutcomeHitLocal))
	}
}
