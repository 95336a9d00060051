package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mayflycache/mayfly"
)

// backend is the kind whose sum the hook adds to.
const backend = mayfly.KindBackend

// figure is one metric that is read from stats of type S at collection.
type figure[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(S) float64
	also []string // values of a second label
}

// figures collects the figures of several sources. It reads each source once per collection.
type figures[S any] struct {
	label   string // for the names of sources
	all     []figure[S]
	sources sync.Map // func() S by name
}

// add adds a figure that has no second label.
func (f *figures[S]) add(kind prometheus.ValueType, name, help string, of func(S) float64) {
	f.all = append(f.all, figure[S]{prometheus.NewDesc(name, help, []string{f.label}, nil), kind, of, nil})
}

func (f *figures[S]) Describe(to chan<- *prometheus.Desc) {
	for _, one := range f.all {
		to <- one.desc
	}
}

func (f *figures[S]) Collect(to chan<- prometheus.Metric) {
	for name, read := range f.sources.Range {
		stats := read.(func() S)()
		for _, one := range f.all {
			to <- prometheus.MustNewConstMetric(one.desc, one.kind, one.of(stats), append([]string{name.(string)}, one.also...)...)
		}
	}
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// watch adds a source or replaces the one with that name; nil removes it.
func watch[S any](sources *sync.Map, name string, stats func() S) {
	name = strings.ToValidUTF8(name, "?")
	if stats == nil {
		sources.Delete(name)
		return
	}
	sources.Store(name, stats)
}

// WatchLocal shows the stats of a local tier, local.Stats, under a name. It replaces an earlier one of the same name; nil removes it.
func (m *Observer) WatchLocal(name string, stats func() mayfly.LocalStats) {
	watch(&m.locals.sources, name, stats)
}

// WatchEngine shows the stats of an embedded database: db.Stats.
func (m *Observer) WatchEngine(name string, stats func() mayfly.EngineStats) {
	watch(&m.engines.sources, name, stats)
}

// WatchHTTP shows the stats of an HTTP cache: pages.Stats.
func (m *Observer) WatchHTTP(name string, stats func() mayfly.HTTPStats) {
	watch(&m.https.sources, name, stats)
}

// WatchOrigin shows the stats of an origin, origin.Stats or cache.Origin().Stats, under a name. Caches that share an origin count as one.
func (m *Observer) WatchOrigin(name string, stats func() mayfly.OriginStats) {
	watch(&m.origins.sources, name, stats)
}

func originFigures() *figures[mayfly.OriginStats] {
	f := &figures[mayfly.OriginStats]{label: "origin"}
	f.add(gauge, "mayfly_origin_limit", "Loads that may be in flight; negative is any number.", func(s mayfly.OriginStats) float64 { return float64(s.Limit) })
	f.add(gauge, "mayfly_origin_in_flight", "Loads that run.", func(s mayfly.OriginStats) float64 { return float64(s.InFlight) })
	f.add(gauge, "mayfly_origin_queued", "Loads that wait for their turn.", func(s mayfly.OriginStats) float64 { return float64(s.Queued) })
	f.add(counter, "mayfly_origin_entered_total", "Loads that began.", func(s mayfly.OriginStats) float64 { return float64(s.Entered) })
	f.add(counter, "mayfly_origin_refused_total", "Loads that left the queue without a turn, and renewals left out.", func(s mayfly.OriginStats) float64 { return float64(s.Refused) })
	f.add(counter, "mayfly_origin_queued_seconds_total", "Time that loads waited before they began.", func(s mayfly.OriginStats) float64 { return s.Waited.Seconds() })
	return f
}

func localFigures() *figures[mayfly.LocalStats] {
	f := &figures[mayfly.LocalStats]{label: "local"}
	f.add(gauge, "mayfly_local_entries", "Copies in the local tier, dead ones included.", func(s mayfly.LocalStats) float64 { return float64(s.Entries) })
	f.add(gauge, "mayfly_local_size_bytes", "What the copies take.", func(s mayfly.LocalStats) float64 { return float64(s.Bytes) })
	f.add(gauge, "mayfly_local_dead_ratio", "Share of the copies that have expired and still take memory.", func(s mayfly.LocalStats) float64 { return share(s.Dead, s.Entries) })
	f.add(counter, "mayfly_local_hits_total", "Reads that found a copy.", func(s mayfly.LocalStats) float64 { return float64(s.Hits) })
	f.add(counter, "mayfly_local_misses_total", "Reads that found none.", func(s mayfly.LocalStats) float64 { return float64(s.Misses) })
	f.add(counter, "mayfly_local_evictions_total", "Copies evicted to make room.", func(s mayfly.LocalStats) float64 { return float64(s.Evictions) })
	f.add(counter, "mayfly_local_expired_total", "Copies that expired.", func(s mayfly.LocalStats) float64 { return float64(s.Expired) })
	f.add(counter, "mayfly_local_changes_total", "Keys heard to have changed.", func(s mayfly.LocalStats) float64 { return float64(s.Changes) })
	f.add(counter, "mayfly_local_flushes_total", "Times that all copies were dropped, for example when a link was lost.", func(s mayfly.LocalStats) float64 { return float64(s.Flushes) })
	rung := prometheus.NewDesc("mayfly_local_coherence_rung", "1 for the way in which changes are heard now: tracking, pubsub, short_ttl, or off if none is.", []string{"local", "rung"}, nil)
	for _, r := range []string{"off", "short_ttl", "pubsub", "tracking"} {
		f.all = append(f.all, figure[mayfly.LocalStats]{rung, gauge, func(s mayfly.LocalStats) float64 {
			if s.Rung == r {
				return 1
			}
			return 0
		}, []string{r}})
	}
	return f
}

func engineFigures() *figures[mayfly.EngineStats] {
	f := &figures[mayfly.EngineStats]{label: "engine"}
	f.add(gauge, "mayfly_engine_keys", "Keys in the embedded engine.", func(s mayfly.EngineStats) float64 { return float64(s.Keys) })
	f.add(gauge, "mayfly_engine_expires", "Keys with a TTL.", func(s mayfly.EngineStats) float64 { return float64(s.Expires) })
	f.add(gauge, "mayfly_engine_dead_ratio", "Share of the keys with a TTL that have expired and are not removed yet.", func(s mayfly.EngineStats) float64 { return share(s.Dead, s.Expires) })
	f.add(gauge, "mayfly_engine_memory_bytes", "Bytes that the data takes, counted as for MaxMemory.", func(s mayfly.EngineStats) float64 { return float64(s.Memory) })
	f.add(counter, "mayfly_engine_expired_keys_total", "Keys removed because they had expired.", func(s mayfly.EngineStats) float64 { return float64(s.Expired) })
	f.add(counter, "mayfly_engine_evicted_keys_total", "Keys evicted to free memory.", func(s mayfly.EngineStats) float64 { return float64(s.Evicted) })
	f.add(counter, "mayfly_engine_cycle_seconds_total", "Time spent on removing expired keys.", func(s mayfly.EngineStats) float64 { return s.Cycle.Seconds() })
	f.add(counter, "mayfly_engine_commands_total", "Commands processed.", func(s mayfly.EngineStats) float64 { return float64(s.Commands) })
	f.add(counter, "mayfly_engine_hits_total", "Reads of keys that existed.", func(s mayfly.EngineStats) float64 { return float64(s.Hits) })
	f.add(counter, "mayfly_engine_misses_total", "Reads of keys that did not exist.", func(s mayfly.EngineStats) float64 { return float64(s.Misses) })
	return f
}

func httpFigures() *figures[mayfly.HTTPStats] {
	f := &figures[mayfly.HTTPStats]{label: "cache"}
	f.add(counter, "mayfly_http_stored_total", "Responses stored by an HTTP cache.", func(s mayfly.HTTPStats) float64 { return float64(s.Stored) })
	requests := prometheus.NewDesc("mayfly_http_requests_total", "Requests of an HTTP cache, by how they were answered.", []string{"cache", "outcome"}, nil)
	by := func(outcome string, of func(mayfly.HTTPStats) uint64) {
		f.all = append(f.all, figure[mayfly.HTTPStats]{requests, counter, func(s mayfly.HTTPStats) float64 { return float64(of(s)) }, []string{outcome}})
	}
	by("hit_local", func(s mayfly.HTTPStats) uint64 { return s.Local })
	by("hit_redis", func(s mayfly.HTTPStats) uint64 { return s.Redis })
	by("stale", func(s mayfly.HTTPStats) uint64 { return s.Stale })
	by("collapsed", func(s mayfly.HTTPStats) uint64 { return s.Collapsed })
	by("forwarded", func(s mayfly.HTTPStats) uint64 { return s.Forwarded })
	by("passed", func(s mayfly.HTTPStats) uint64 { return s.Passed })
	return f
}

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}
