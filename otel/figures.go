package mayflyotel

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/mayflycache/mayfly"
)

// figure is one metric that is read from stats of type S at collection.
type figure[S any] struct {
	whole metric.Int64Observable   // either
	real  metric.Float64Observable // or
	of    func(S) float64
	also  []attribute.KeyValue
}

// maker makes asynchronous instruments.
type maker struct {
	metric.Meter
	check func(error)
}

func (m maker) gauge(name, unit, help string) metric.Int64Observable {
	made, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.check(err)
	return made
}

func (m maker) counter(name, unit, help string) metric.Int64Observable {
	made, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(help))
	m.check(err)
	return made
}

// ratio makes a gauge of a share.
func (m maker) ratio(name, help string) metric.Float64Observable {
	made, err := m.Float64ObservableGauge(name, metric.WithUnit("1"), metric.WithDescription(help))
	m.check(err)
	return made
}

// figures makes the instruments of what is watched.
func (i *instruments) figures(m maker) {
	i.locals = localFigures(m)
	i.engines = engineFigures(m)
	i.https = httpFigures(m)
	i.origins = originFigures(m)
	i.asked = append(i.asked, observables(i.locals)...)
	i.asked = append(i.asked, observables(i.engines)...)
	i.asked = append(i.asked, observables(i.https)...)
	i.asked = append(i.asked, observables(i.origins)...)
}

func observables[S any](all []figure[S]) (them []metric.Observable) {
	for _, f := range all {
		if f.real != nil {
			them = append(them, f.real)
		} else {
			them = append(them, f.whole)
		}
	}
	return them
}

func localFigures(m maker) []figure[mayfly.LocalStats] {
	type S = mayfly.LocalStats
	all := []figure[S]{
		{whole: m.gauge("mayfly.local.entries", "{copy}", "Copies in the local tier, dead ones included."), of: func(s S) float64 { return float64(s.Entries) }},
		{whole: m.gauge("mayfly.local.size", "By", "What the copies take."), of: func(s S) float64 { return float64(s.Bytes) }},
		{real: m.ratio("mayfly.local.dead", "Share of the copies that have expired and still take memory."), of: func(s S) float64 { return share(s.Dead, s.Entries) }},
		{whole: m.counter("mayfly.local.hits", "{read}", "Reads that found a copy."), of: func(s S) float64 { return float64(s.Hits) }},
		{whole: m.counter("mayfly.local.misses", "{read}", "Reads that found none."), of: func(s S) float64 { return float64(s.Misses) }},
		{whole: m.counter("mayfly.local.evictions", "{copy}", "Copies evicted to make room."), of: func(s S) float64 { return float64(s.Evictions) }},
		{whole: m.counter("mayfly.local.expired", "{copy}", "Copies that expired."), of: func(s S) float64 { return float64(s.Expired) }},
		{whole: m.counter("mayfly.local.changes", "{key}", "Keys heard to have changed."), of: func(s S) float64 { return float64(s.Changes) }},
		{whole: m.counter("mayfly.local.flushes", "{flush}", "Times that all copies were dropped, for example when a link was lost."), of: func(s S) float64 { return float64(s.Flushes) }},
	}
	rung := m.gauge("mayfly.local.coherence_rung", "{rung}", "1 for the way in which changes are heard now: tracking, pubsub, short_ttl, or off if none is.")
	for _, r := range []string{"off", "short_ttl", "pubsub", "tracking"} {
		all = append(all, figure[S]{whole: rung, also: []attribute.KeyValue{attribute.String("rung", r)}, of: func(s S) float64 {
			if s.Rung == r {
				return 1
			}
			return 0
		}})
	}
	return all
}

func engineFigures(m maker) []figure[mayfly.EngineStats] {
	type S = mayfly.EngineStats
	cycle, err := m.Float64ObservableCounter("mayfly.engine.cycle", metric.WithUnit("s"), metric.WithDescription("Time spent on removing expired keys."))
	m.check(err)
	return []figure[S]{
		{whole: m.gauge("mayfly.engine.keys", "{key}", "Keys in the embedded engine."), of: func(s S) float64 { return float64(s.Keys) }},
		{whole: m.gauge("mayfly.engine.expires", "{key}", "Keys with a TTL."), of: func(s S) float64 { return float64(s.Expires) }},
		{real: m.ratio("mayfly.engine.dead", "Share of the keys with a TTL that have expired and are not removed yet."), of: func(s S) float64 { return share(s.Dead, s.Expires) }},
		{whole: m.gauge("mayfly.engine.memory", "By", "Bytes that the data takes, counted as for MaxMemory."), of: func(s S) float64 { return float64(s.Memory) }},
		{whole: m.counter("mayfly.engine.expired_keys", "{key}", "Keys removed because they had expired."), of: func(s S) float64 { return float64(s.Expired) }},
		{whole: m.counter("mayfly.engine.evicted_keys", "{key}", "Keys evicted to free memory."), of: func(s S) float64 { return float64(s.Evicted) }},
		{real: cycle, of: func(s S) float64 { return s.Cycle.Seconds() }},
		{whole: m.counter("mayfly.engine.commands", "{command}", "Commands processed."), of: func(s S) float64 { return float64(s.Commands) }},
		{whole: m.counter("mayfly.engine.hits", "{read}", "Reads of keys that existed."), of: func(s S) float64 { return float64(s.Hits) }},
		{whole: m.counter("mayfly.engine.misses", "{read}", "Reads of keys that did not exist."), of: func(s S) float64 { return float64(s.Misses) }},
	}
}

func httpFigures(m maker) []figure[mayfly.HTTPStats] {
	type S = mayfly.HTTPStats
	requests := m.counter("mayfly.http.requests", "{request}", "Requests of an HTTP cache, by how they were answered.")
	by := func(outcome string, of func(S) uint64) figure[S] {
		return figure[S]{whole: requests, of: func(s S) float64 { return float64(of(s)) }, also: []attribute.KeyValue{attribute.String("outcome", outcome)}}
	}
	return []figure[S]{
		{whole: m.counter("mayfly.http.stored", "{response}", "Responses stored by an HTTP cache."), of: func(s S) float64 { return float64(s.Stored) }},
		by("hit_local", func(s S) uint64 { return s.Local }),
		by("hit_redis", func(s S) uint64 { return s.Redis }),
		by("stale", func(s S) uint64 { return s.Stale }),
		by("collapsed", func(s S) uint64 { return s.Collapsed }),
		by("forwarded", func(s S) uint64 { return s.Forwarded }),
		by("passed", func(s S) uint64 { return s.Passed }),
	}
}

func originFigures(m maker) []figure[mayfly.OriginStats] {
	type S = mayfly.OriginStats
	waited, err := m.Float64ObservableCounter("mayfly.origin.queued.seconds", metric.WithUnit("s"), metric.WithDescription("Time that loads waited before they began."))
	m.check(err)
	return []figure[S]{
		{whole: m.gauge("mayfly.origin.limit", "{load}", "Loads that may be in flight; negative is any number."), of: func(s S) float64 { return float64(s.Limit) }},
		{whole: m.gauge("mayfly.origin.in_flight", "{load}", "Loads that run."), of: func(s S) float64 { return float64(s.InFlight) }},
		{whole: m.gauge("mayfly.origin.queued", "{load}", "Loads that wait for their turn."), of: func(s S) float64 { return float64(s.Queued) }},
		{whole: m.counter("mayfly.origin.entered", "{load}", "Loads that began."), of: func(s S) float64 { return float64(s.Entered) }},
		{whole: m.counter("mayfly.origin.refused", "{load}", "Loads that left the queue without a turn, and renewals left out."), of: func(s S) float64 { return float64(s.Refused) }},
		{real: waited, of: func(s S) float64 { return s.Waited.Seconds() }},
	}
}

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}

// collect reports, at collection, what is counted elsewhere.
func (m *Observer) collect(_ context.Context, to metric.Observer) error {
	read := func(namespace, outcome string, n int64) {
		to.ObserveInt64(m.make.requests, n, metric.WithAttributes(attribute.String("namespace", namespace), attribute.String("outcome", outcome)))
	}
	for key, n := range m.reads.Range {
		read(key.(readKey).namespace, key.(readKey).outcome, n.(*atomic.Int64).Load())
	}
	m.mu.Lock()
	local := maps.Clone(m.local)
	m.mu.Unlock()
	for namespace, caches := range local {
		sum := uint64(0)
		for _, hits := range caches {
			sum += hits()
		}
		read(namespace, string(mayfly.OutcomeHitLocal), int64(sum))
	}
	observe(to, &m.locals, "local", m.make.locals)
	observe(to, &m.engines, "engine", m.make.engines)
	observe(to, &m.https, "cache", m.make.https)
	observe(to, &m.origins, "origin", m.make.origins)
	return nil
}

// observe reports the figures of several sources; each source is read once.
func observe[S any](to metric.Observer, sources *sync.Map, label string, all []figure[S]) {
	for name, ask := range sources.Range {
		stats := ask.(func() S)()
		for _, f := range all {
			of := metric.WithAttributes(append([]attribute.KeyValue{attribute.String(label, name.(string))}, f.also...)...)
			if f.real != nil {
				to.ObserveFloat64(f.real, f.of(stats), of)
			} else {
				to.ObserveInt64(f.whole, int64(f.of(stats)), of)
			}
		}
	}
}
