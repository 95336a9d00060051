package metrics_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// fault is what goes wrong for a while, and what is to be seen of it.
type fault struct {
	name   string
	begin  func(p *program)
	end    func(p *program)
	up     []string // "panel: legend" or "panel: legend label's value", higher than ever while nothing is wrong
	down   []string // lower than ever then
	alerts []string // all of those that are not quiet
}

var faults = []fault{
	{"the loader is slow", func(p *program) { p.slow.Store(int64(400 * time.Millisecond)) }, func(p *program) { p.slow.Store(0) },
		[]string{"Loads, p99: {{namespace}} shared", "Reads, p99: {{namespace}} shared", "Stampedes avoided: in the process", "Stale answers: {{namespace}} old",
			"Loads at the origin: run {{origin}} crowd", "Loads at the origin: wait {{origin}} crowd", "Hit ratio by tier: stale"},
		nil, []string{"MayflyHitRatioCollapsed", "MayflyOriginOverloaded"}},
	{"the loader fails", func(p *program) { p.fails.Store(true) }, func(p *program) { p.fails.Store(false) },
		[]string{"Loader errors: {{namespace}} shared", "Early refreshes: {{result}} failed"},
		nil, []string{"MayflyHitRatioCollapsed", "MayflyLoaderErrors"}},
	{"two processes miss at once", func(p *program) { p.both.Store(true) }, func(p *program) { p.both.Store(false) },
		[]string{"Stampedes avoided: of another process"}, nil, nil},
	{"keys are deleted all the time", func(p *program) { p.churn.Store(true) }, func(p *program) { p.churn.Store(false) },
		[]string{"Loads saved: loaded", "Reads that missed: {{namespace}} near"}, []string{"Hit ratio by tier: local"}, []string{"MayflyHitRatioCollapsed"}},
	{"more keys than there is room for", func(p *program) { p.wide.Store(true) }, func(p *program) { p.wide.Store(false) },
		[]string{"Evictions of the local tier: {{local}}", "Local tier: {{local}}"}, nil, nil},
	{"too many calls, and pages nobody asked for before", func(p *program) { p.flood.Store(true) }, func(p *program) { p.flood.Store(false) },
		[]string{"Limiter: {{decision}} denied", "HTTP requests: {{outcome}} forwarded"}, []string{"HTTP requests: {{outcome}} hit_redis"},
		[]string{"MayflyHitRatioCollapsed"}},
	{"the engine's keys end in a burst", func(p *program) { p.burst.Store(true) }, func(p *program) { p.burst.Store(false) },
		[]string{"Dead share: engine {{engine}}", "Expiry of the engine: {{engine}}", "Time spent on expiry: {{engine}}"}, nil, nil},
	{"the callers go away", func(p *program) { p.away.Store(true) }, func(p *program) { p.away.Store(false) }, nil,
		[]string{"Reads: {{namespace}} old", "Reads: {{namespace}} shared", "Loads saved: saved"}, nil},
	{"keys without TTL", func(p *program) { p.endless.Store(true); p.observer.ObserveAudit("main", 1000, 12) },
		func(p *program) {
			p.endless.Store(false)
			p.observer.ObserveAudit("main", 1000, 0)
			p.db.Client().FlushDB(context.Background())
		},
		[]string{"Keys without TTL: {{server}}", "Keys without TTL: engine {{engine}}"}, nil, []string{"MayflyKeysWithoutTTL"}},
	{"Redis is slow", func(p *program) { p.srv.Latency(25 * time.Millisecond) }, func(p *program) { p.srv.Latency(trip) },
		[]string{"Redis operations, p99: {{operation}} pipeline", "Invalidation lag, p99: p99", "Waits for a connection: {{namespace}} shared"},
		nil, []string{"MayflyClientCrowded"}},
	{"Redis hangs", func(p *program) { p.srv.Hang() }, func(p *program) { p.srv.Thaw() },
		[]string{"Redis errors: {{kind}} timeout", "Open breakers: {{namespace}} shared", "Coherence: {{rung}} off", "Dead share: local {{local}}"},
		[]string{"Hit ratio by tier: local", "Hit ratio by tier: Redis", "Coherence: {{rung}} tracking"}, []string{"MayflyBreakerOpen", "MayflyCoherenceLost", "MayflyHitRatioCollapsed"}},
}

// How the time of TestDashboard passes, which is a bubble's: no clock runs while it does.
const (
	every  = 500 * time.Millisecond // between two scrapes
	window = 2 * time.Second        // of the rates
	settle = 3 * time.Second        // after a fault, until all is as before
	calm   = 2 * time.Second        // that is looked at then
	ill    = 4 * time.Second        // how long a fault lasts
)

// phase is a time of the program in which it was ill, or calm.
type phase struct {
	name       string
	begin, end time.Time
	ill        *fault // nil: nothing is wrong, and nothing that was can be seen any more
}

// Every query of the dashboard and of the alerts shows the fault it is for, and is quiet while nothing is wrong. The program runs in a bubble,
// and Prometheus gets what it would have scraped, all at once and with the bubble's times.
func TestDashboard(t *testing.T) {
	t.Parallel()
	tool(t, "promtool")
	if effort.Race {
		t.Skip("half a minute of what other tests show to the race detector: .ci/run has it without")
	}
	var phases []phase
	samples := filepath.Join(t.TempDir(), "samples")
	file, err := os.Create(samples)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	synctest.Test(t, func(t *testing.T) { phases = play(t, file) })
	fmt.Fprintln(file, "# EOF")
	data := t.TempDir()
	promtool(t, nil, "tsdb", "create-blocks-from", "openmetrics", samples, data)

	rules, err := filepath.Abs("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	s := started(t, data, fmt.Sprintf("rule_files: [%q]\n", rules))
	t.Run("panels", func(t *testing.T) { panelsMove(t, s.history(phases, panels(t, window.String()))) })
	t.Run("alerts", func(t *testing.T) { alertsFire(t, s.history(phases, s.alerts())) })
}

// limits is what no fault of these moves for sure: a panel that shows how the program is set up.
const limits = "Loads at the origin: limit {{origin}}"

func panelsMove(t *testing.T, all history) {
	idle := maps.Clone(all.shown)
	for _, f := range faults {
		for _, name := range f.up {
			calm, ill := slices.Max(append(all.values(t, name, nil), 0)), slices.Max(append(all.values(t, name, &f), 0))
			if t.Logf("%s: %s rises to %v, from %v", f.name, name, ill, calm); !(ill > 1.3*calm+1e-4) {
				t.Errorf("%s: %s rises to %v only, from %v", f.name, name, ill, calm)
			}
		}
		for _, name := range f.down {
			calm, ill := slices.Min(all.values(t, name, nil)), slices.Min(all.values(t, name, &f))
			if t.Logf("%s: %s falls to %v, from %v", f.name, name, ill, calm); !(ill < .8*calm) {
				t.Errorf("%s: %s falls to %v only, from %v", f.name, name, ill, calm)
			}
		}
		for _, name := range slices.Concat(f.up, f.down) {
			panel, _ := all.find(t, name)
			delete(idle, panel)
		}
	}
	if len(all.values(t, limits, nil)) == 0 {
		t.Errorf("%s shows nothing", limits)
	}
	if delete(idle, limits); len(idle) > 0 {
		t.Errorf("no fault moves %q", slices.Sorted(maps.Keys(idle)))
	}
}

func alertsFire(t *testing.T, all history) {
	idle := maps.Clone(all.shown)
	for _, p := range all.phases {
		var want, fire []string
		if p.ill != nil {
			want = p.ill.alerts
		}
		for name := range all.shown {
			if len(all.in(t, name, p)) > 0 {
				fire = append(fire, name)
				delete(idle, name)
			}
		}
		if slices.Sort(fire); !slices.Equal(fire, want) {
			t.Errorf("%s: the alerts %q, not %q", p.name, fire, want)
		}
	}
	if len(idle) > 0 {
		t.Errorf("no fault makes %q fire", slices.Sorted(maps.Keys(idle)))
	}
}

// play runs the program through all faults, and writes what would be scraped.
func play(t *testing.T, to *os.File) (phases []phase) {
	p := running(t)
	pass := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end); {
			time.Sleep(every)
			expose(t, p.registry, to)
		}
	}
	look := func(name string, d time.Duration, f *fault) {
		begin := time.Now().Add(every)
		pass(d)
		phases = append(phases, phase{name, begin, time.Now(), f})
	}
	pass(settle)
	look("at first", calm, nil)
	for i := range faults {
		f := &faults[i]
		f.begin(p)
		look(f.name, ill, f)
		f.end(p)
		pass(settle)
		look("after: "+f.name, calm, nil)
	}
	text := httptest.NewRecorder()
	promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}).ServeHTTP(text, httptest.NewRequest("GET", "/", nil))
	promtool(t, text.Body, "check", "metrics")
	return phases
}

// expose writes what a scrape would read now, with the time.
func expose(t *testing.T, r *prometheus.Registry, to *os.File) {
	now := float64(time.Now().UnixMilli()) / 1000
	var text strings.Builder
	for name, value := range scraped(t, r) {
		fmt.Fprintf(&text, "%s %s %.3f\n", name, value, now)
	}
	if _, err := to.WriteString(text.String()); err != nil {
		t.Error(err)
	}
}

// alerts returns the expressions of the alerts, by name, with the test's windows instead of minutes and hours.
func (s *server) alerts() map[string]string {
	var rules struct {
		Groups []struct {
			Rules []struct{ Name, Query string }
		}
	}
	s.get("/api/v1/rules", nil, &rules)
	all := map[string]string{}
	for _, r := range rules.Groups[0].Rules {
		all[r.Name] = strings.NewReplacer("5m", window.String(), "10m", settle.String(), "1h", (2 * settle).String()).Replace(r.Query)
	}
	return all
}

// history is what expressions were in all phases.
type history struct {
	phases []phase
	shown  map[string]result // by the name of a panel, "title: legend", or of an alert
}

// history asks for expressions at each time of a scrape.
func (s *server) history(phases []phase, exprs map[string]string) history {
	s.t.Helper()
	at := func(t time.Time) []string { return []string{fmt.Sprintf("%.3f", float64(t.UnixMilli())/1000)} }
	h := history{phases, map[string]result{}}
	for name, expr := range exprs {
		var r result
		s.get("/api/v1/query_range", url.Values{"query": {expr}, "start": at(phases[0].begin), "end": at(phases[len(phases)-1].end), "step": {every.String()}}, &r)
		h.shown[name] = r
	}
	return h
}

// find returns the panel that name is about, and the label of one of its series if it is about that alone: "panel: {{label}} value".
func (h history) find(t *testing.T, name string) (panel, label string) {
	t.Helper()
	panel = name
	if _, ok := h.shown[name]; !ok {
		if i := strings.LastIndexByte(name, ' '); i > 0 {
			panel, label = name[:i], name[i+1:]
		}
	}
	if _, ok := h.shown[panel]; !ok {
		t.Fatalf("the dashboard has no %q", name)
	}
	return panel, label
}

// in returns what was shown of name in a phase.
func (h history) in(t *testing.T, name string, p phase) (values []float64) {
	t.Helper()
	panel, label := h.find(t, name)
	for _, series := range h.shown[panel].Result {
		if label != "" && !slices.Contains(slices.Collect(maps.Values(series.Metric)), label) {
			continue
		}
		for _, point := range series.Values {
			at := time.UnixMilli(int64(point[0].(float64) * 1000))
			if v := number(point); !math.IsNaN(v) && !at.Before(p.begin) && !at.After(p.end) {
				values = append(values, v)
			}
		}
	}
	return values
}

// values returns what was shown of name while a fault lasted; nil: whenever nothing was wrong.
func (h history) values(t *testing.T, name string, f *fault) (values []float64) {
	t.Helper()
	for _, p := range h.phases {
		if f == nil && p.ill == nil || f != nil && p.ill != nil && p.ill.name == f.name {
			values = append(values, h.in(t, name, p)...)
		}
	}
	return values
}
