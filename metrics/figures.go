package metrics

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mayflycache/mayfly"
)

// backend is the kind whose sum the hook adds to.
const backend = mayfly.Backend

// EngineStats are what an embedded database says of itself. It has the fields of embedded.Stats, so that one converts to the
// other.
type EngineStats struct {
	Keys, Expires int
	Dead          int
	Expired       int64
	Evicted       int64
	Commands      int64
	Hits, Misses  int64
	Cycle         time.Duration
}

// HTTPStats are what an HTTP cache says of itself. It has the fields of httpcache.Stats, so that one converts to the other.
type HTTPStats struct {
	Local     uint64
	Redis     uint64
	Stale     uint64
	Collapsed uint64
	Forwarded uint64
	Passed    uint64
	Stored    uint64
}

// figure is one metric that is read from stats of type S when it is asked for.
type figure[S any] struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(S) float64
	also string // the value of a second label
}

// figures collects the figures of some sources, each of which is asked once.
type figures[S any] struct {
	all []figure[S]

	mu      sync.Mutex // guards sources
	sources map[string]func() S
}

func (f *figures[S]) watch(name string, read func() S) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sources == nil {
		f.sources = make(map[string]func() S)
	}
	f.sources[name] = read
}

func (f *figures[S]) Describe(to chan<- *prometheus.Desc) {
	for _, one := range f.all {
		to <- one.desc
	}
}

func (f *figures[S]) Collect(to chan<- prometheus.Metric) {
	f.mu.Lock()
	sources := maps.Clone(f.sources)
	f.mu.Unlock()
	for name, read := range sources {
		stats := read()
		for _, one := range f.all {
			labels := []string{name}
			if one.also != "" {
				labels = append(labels, one.also)
			}
			to <- prometheus.MustNewConstMetric(one.desc, one.kind, one.of(stats), labels...)
		}
	}
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// WatchLocal shows the stats of a local tier, by a name for it: local.Stats. Another one of the same name takes its place.
func (m *Observer) WatchLocal(name string, stats func() mayfly.LocalStats) {
	m.locals.watch(name, stats)
}

// WatchEngine shows the stats of an embedded database:
//
//	observer.WatchEngine("main", func() metrics.EngineStats { return metrics.EngineStats(db.Stats()) })
func (m *Observer) WatchEngine(name string, stats func() EngineStats) { m.engines.watch(name, stats) }

// WatchHTTP shows the stats of an HTTP cache:
//
//	observer.WatchHTTP("pages", func() metrics.HTTPStats { return metrics.HTTPStats(pages.Stats()) })
func (m *Observer) WatchHTTP(name string, stats func() HTTPStats) { m.https.watch(name, stats) }

func localFigures() *figures[mayfly.LocalStats] {
	local := func(kind prometheus.ValueType, name, help string, of func(mayfly.LocalStats) float64) figure[mayfly.LocalStats] {
		return figure[mayfly.LocalStats]{prometheus.NewDesc("mayfly_local_"+name, help, []string{"local"}, nil), kind, of, ""}
	}
	locals := []figure[mayfly.LocalStats]{
		local(gauge, "entries", "Copies in the local tier, dead ones included.", func(s mayfly.LocalStats) float64 { return float64(s.Entries) }),
		local(gauge, "size_bytes", "What the copies take.", func(s mayfly.LocalStats) float64 { return float64(s.Bytes) }),
		local(gauge, "dead_ratio", "Share of the copies that are over and still take memory.", func(s mayfly.LocalStats) float64 { return share(s.Dead, s.Entries) }),
		local(counter, "hits_total", "Reads that found a copy.", func(s mayfly.LocalStats) float64 { return float64(s.Hits) }),
		local(counter, "misses_total", "Reads that found none.", func(s mayfly.LocalStats) float64 { return float64(s.Misses) }),
		local(counter, "evictions_total", "Copies that left for want of room.", func(s mayfly.LocalStats) float64 { return float64(s.Evictions) }),
		local(counter, "expired_total", "Copies that came to their end.", func(s mayfly.LocalStats) float64 { return float64(s.Expired) }),
		local(counter, "changes_total", "Keys heard to have changed.", func(s mayfly.LocalStats) float64 { return float64(s.Changes) }),
		local(counter, "flushes_total", "Times that all copies were dropped, as when a link was lost.", func(s mayfly.LocalStats) float64 { return float64(s.Flushes) }),
	}
	rung := prometheus.NewDesc("mayfly_local_coherence_rung", "1 for the way in which changes are heard now: tracking, pubsub, short_ttl, or off, when none is.", []string{"local", "rung"}, nil)
	for _, r := range []mayfly.Rung{mayfly.Off, mayfly.ShortTTL, mayfly.PubSub, mayfly.Tracking} {
		locals = append(locals, figure[mayfly.LocalStats]{rung, gauge, func(s mayfly.LocalStats) float64 {
			if s.Rung == r {
				return 1
			}
			return 0
		}, r.String()})
	}
	return &figures[mayfly.LocalStats]{all: locals}
}

func engineFigures() *figures[EngineStats] {
	engine := func(kind prometheus.ValueType, name, help string, of func(EngineStats) float64) figure[EngineStats] {
		return figure[EngineStats]{prometheus.NewDesc("mayfly_engine_"+name, help, []string{"engine"}, nil), kind, of, ""}
	}
	return &figures[EngineStats]{all: []figure[EngineStats]{
		engine(gauge, "keys", "Keys in the embedded engine.", func(s EngineStats) float64 { return float64(s.Keys) }),
		engine(gauge, "expires", "Keys with a TTL.", func(s EngineStats) float64 { return float64(s.Expires) }),
		engine(gauge, "dead_ratio", "Share of the keys with a TTL that are over and not removed yet.", func(s EngineStats) float64 { return share(s.Dead, s.Expires) }),
		engine(counter, "expired_keys_total", "Keys removed because they were over.", func(s EngineStats) float64 { return float64(s.Expired) }),
		engine(counter, "evicted_keys_total", "Keys removed for want of memory.", func(s EngineStats) float64 { return float64(s.Evicted) }),
		engine(counter, "cycle_seconds_total", "Time spent on removing keys that are over.", func(s EngineStats) float64 { return s.Cycle.Seconds() }),
		engine(counter, "commands_total", "Commands processed.", func(s EngineStats) float64 { return float64(s.Commands) }),
		engine(counter, "hits_total", "Reads of keys that were there.", func(s EngineStats) float64 { return float64(s.Hits) }),
		engine(counter, "misses_total", "Reads of keys that were not.", func(s EngineStats) float64 { return float64(s.Misses) }),
	}}
}

func httpFigures() *figures[HTTPStats] {
	outcome := prometheus.NewDesc("mayfly_http_requests_total", "Requests of an HTTP cache, by how they were answered.", []string{"cache", "outcome"}, nil)
	by := func(name string, of func(HTTPStats) uint64) figure[HTTPStats] {
		return figure[HTTPStats]{outcome, counter, func(s HTTPStats) float64 { return float64(of(s)) }, name}
	}
	return &figures[HTTPStats]{all: []figure[HTTPStats]{
		by("hit_local", func(s HTTPStats) uint64 { return s.Local }), by("hit_redis", func(s HTTPStats) uint64 { return s.Redis }),
		by("stale", func(s HTTPStats) uint64 { return s.Stale }), by("collapsed", func(s HTTPStats) uint64 { return s.Collapsed }),
		by("forwarded", func(s HTTPStats) uint64 { return s.Forwarded }), by("passed", func(s HTTPStats) uint64 { return s.Passed }),
		{prometheus.NewDesc("mayfly_http_stored_total", "Responses stored by an HTTP cache.", []string{"cache"}, nil), counter, func(s HTTPStats) float64 { return float64(s.Stored) }, ""},
	}}
}

func share(part, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(part) / float64(of)
}
