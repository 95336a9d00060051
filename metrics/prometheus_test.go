package metrics_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mayflycache/mayfly/internal/testkit/foreign"
)

// tools returns the directory of prometheus and promtool.
func tools(t *testing.T) string {
	t.Helper()
	return foreign.Named(t, "MAYFLY_PROMETHEUS_BIN", ".ci/prometheus")
}

func TestAlertRules(t *testing.T) {
	promtool := filepath.Join(tools(t), "promtool")
	if out, err := exec.Command(promtool, "check", "rules", "alerts.yml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	cmd := exec.Command(promtool, "test", "rules", "alerts_test.yml")
	cmd.Dir = "testdata"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %.2000s", err, out)
	}
}

// server is a Prometheus that scrapes a program.
type server struct {
	t    *testing.T
	addr string
}

// scraping starts a Prometheus that scrapes target several times a second, and evaluates the alerts every second.
func scraping(t *testing.T, target string) *server {
	dir := t.TempDir()
	rules, err := filepath.Abs("alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs: [{job_name: p, static_configs: [{targets: [%q]}]}]\n",
		rules, strings.TrimPrefix(target, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "p.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{t: t}
	for range 5 { // the port is free when it is chosen, and may be somebody else's when Prometheus wants it
		if s.start(dir) {
			return s
		}
	}
	t.Fatal("Prometheus did not stay")
	return nil
}

// start starts Prometheus on a free port and returns when it has scraped, or false when it has ended.
func (s *server) start(dir string) bool {
	t := s.t
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	l.Close()
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(tools(t), "prometheus"), "--config.file", filepath.Join(dir, "p.yml"), "--storage.tsdb.path", filepath.Join(dir, "data"),
		"--web.listen-address", s.addr, "--enable-feature", "native-histograms,exemplar-storage", "--log.level", "warn")
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("Prometheus said: %.2000s", &log)
		}
	})
	alive := true
	s.eventually("Prometheus has scraped", func() (bool, string) {
		select {
		case <-ended:
			alive = false
			return true, ""
		default:
		}
		all, err := s.query("up")
		return len(all) == 1 && all[0].value == 1, fmt.Sprint(all, err)
	})
	return alive
}

// eventually polls until ok.
func (s *server) eventually(what string, ok func() (bool, string)) {
	s.t.Helper()
	if wrong := s.within(time.Minute, what, ok); wrong != "" {
		s.t.Fatal(wrong)
	}
}

// within polls until ok, and says what was so after d instead.
func (s *server) within(d time.Duration, what string, ok func() (bool, string)) (wrong string) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); ; <-tick.C {
		yes, said := ok()
		if yes {
			return ""
		}
		if time.Now().After(end) {
			return fmt.Sprintf("%s: not after %v; %.500s", what, d, said)
		}
	}
}

type sample struct {
	labels map[string]string
	value  float64
}

func (s *server) get(path string, to any) error {
	r, err := http.Get("http://" + s.addr + path)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	return json.NewDecoder(r.Body).Decode(to)
}

// query evaluates an expression now.
func (s *server) query(expr string) (all []sample, err error) {
	var reply struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Value  [2]any
			}
		}
	}
	if err := s.get("/api/v1/query?query="+url.QueryEscape(expr), &reply); err != nil {
		return nil, err
	}
	if reply.Error != "" {
		return nil, fmt.Errorf("%s", reply.Error)
	}
	for _, r := range reply.Data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, sample{r.Metric, v})
	}
	return all, nil
}

// panels returns the expressions of the dashboard, by title and legend.
func panels(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(raw, &dashboard); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q asks nothing", p.Title)
		}
		for _, target := range p.Targets {
			all[p.Title+": "+target.LegendFormat] = strings.NewReplacer("$__rate_interval", "4s", "$namespace", ".*").Replace(target.Expr)
		}
	}
	return all
}

// Every query of the dashboard answers under load, and every panel moves as it should under the fault it is for.
func TestDashboard(t *testing.T) {
	tools(t)
	p := running(t)
	metricsServer := httptest.NewServer(promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	defer metricsServer.Close()
	check := exec.Command(filepath.Join(tools(t), "promtool"), "check", "metrics")
	text := httptest.NewRecorder()
	promhttp.HandlerFor(p.registry, promhttp.HandlerOpts{}).ServeHTTP(text, httptest.NewRequest("GET", "/", nil))
	check.Stdin = strings.NewReader(ours(text.Body.String()))
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v: %.2000s", err, out)
	}

	s := scraping(t, metricsServer.URL)
	all := panels(t)
	for name, expr := range all {
		s.eventually(name+" is not empty", func() (bool, string) {
			found, err := s.query(expr)
			some := slices.ContainsFunc(found, func(f sample) bool { return !math.IsNaN(f.value) }) // of what did not happen lately there is no quantile
			return err == nil && some, fmt.Sprint(found, err)
		})
	}

	for _, fault := range []struct {
		name   string
		begin  func()
		end    func()
		up     []string // "panel: legend" or "panel: legend label=value"
		down   []string
		alerts []string // that are no longer quiet
	}{
		{"the loader is slow", func() { p.slow.Store(int64(400 * time.Millisecond)) }, func() { p.slow.Store(0) },
			[]string{"Loads, p99: {{namespace}} shared", "Reads, p99: {{namespace}} shared", "Stampedes avoided: in the process", "Stampedes avoided: of another process",
				"Stale answers: {{namespace}} old", "Loads at the origin: wait {{origin}}", "Hit ratio by tier: stale"}, nil, nil},
		{"the loader fails", func() { p.fails.Store(true) }, func() { p.fails.Store(false) },
			[]string{"Loader errors: {{namespace}} shared", "Early refreshes: {{result}} failed"}, nil, []string{"MayflyLoaderErrors"}},
		{"keys are deleted all the time", func() { p.churn.Store(true) }, func() { p.churn.Store(false) },
			[]string{"Loads saved: loaded", "Reads that missed: {{namespace}} near"}, []string{"Hit ratio by tier: local"}, nil},
		{"more keys than there is room for", func() { p.wide.Store(true) }, func() { p.wide.Store(false) },
			[]string{"Evictions of the local tier: {{local}}", "Local tier: {{local}}"}, nil, nil},
		{"too many calls, and pages nobody asked for before", func() { p.flood.Store(true) }, func() { p.flood.Store(false) },
			[]string{"Limiter: {{decision}} denied", "HTTP requests: {{outcome}} forwarded"}, []string{"HTTP requests: {{outcome}} hit_redis"}, nil},
		{"the engine's keys end in a burst", func() { p.burst.Store(true) }, func() { p.burst.Store(false) },
			[]string{"Dead share: engine {{engine}}", "Expiry of the engine: {{engine}}", "Time spent on expiry: {{engine}}"}, nil, nil},
		{"the callers go away", func() { p.away.Store(true) }, func() { p.away.Store(false) }, nil,
			[]string{"Reads: {{namespace}} old", "Reads: {{namespace}} shared", "Loads saved: saved"}, nil},
		{"keys without TTL", func() { p.endless.Store(true); p.observer.ObserveAudit("main", 1000, 12) }, func() { p.endless.Store(false); p.observer.ObserveAudit("main", 1000, 0) },
			[]string{"Keys without TTL: {{server}}", "Keys without TTL: engine {{engine}}"}, nil, []string{"MayflyKeysWithoutTTL"}},
		{"Redis is slow", func() { p.srv.Latency(25 * time.Millisecond) }, func() { p.srv.Latency(0) },
			[]string{"Redis operations, p99: {{operation}} pipeline", "Invalidation lag, p99: p99", "Waits for a connection: {{namespace}} shared"}, nil, nil},
		{"Redis hangs", p.srv.Hang, p.srv.Thaw,
			[]string{"Redis errors: {{kind}} timeout", "Open breakers: {{namespace}} shared", "Coherence: {{rung}} off"},
			[]string{"Hit ratio by tier: local", "Hit ratio by tier: Redis", "Coherence: {{rung}} tracking"}, []string{"MayflyBreakerOpen", "MayflyCoherenceLost"}},
	} {
		wrong := ""
		for range 4 { // one look at a panel of a machine that stands still now and then may be none of its calm
			calm := map[string]float64{}
			for _, name := range fault.up {
				calm[name] = s.value(all, name)
			}
			for _, name := range fault.down {
				s.eventually(name+" is something", func() (bool, string) { calm[name] = s.value(all, name); return calm[name] > 0, "" })
			}
			fault.begin()
			moves := func(name, how string, so func(v, calm float64) bool) {
				if wrong == "" {
					wrong = s.within(30*time.Second, fault.name+": "+name+how, func() (bool, string) {
						v := s.value(all, name)
						return so(v, calm[name]), fmt.Sprintf("%v, before %v", v, calm[name])
					})
				}
			}
			wrong = ""
			for _, name := range fault.up {
				moves(name, " rises", func(v, calm float64) bool { return v > 1.3*calm+1e-4 })
			}
			for _, name := range fault.down {
				moves(name, " falls", func(v, calm float64) bool { return v < 0.8*calm })
			}
			for _, alert := range fault.alerts {
				if wrong == "" {
					wrong = s.within(30*time.Second, fault.name+": "+alert, func() (bool, string) {
						found, err := s.query(`ALERTS{alertname="` + alert + `"}`)
						return err == nil && len(found) > 0, fmt.Sprint(found, err)
					})
				}
			}
			fault.end()
			t.Log(fault.name, calm, wrong)
			ended := time.Now()
			s.eventually("the rates have forgotten it", func() (bool, string) { return time.Since(ended) > 6*time.Second, "" })
			if wrong == "" {
				break
			}
		}
		if wrong != "" {
			t.Fatal(wrong)
		}
	}
	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
	}
	if err := s.get("/api/v1/rules", &rules); err != nil || len(rules.Data.Groups) != 1 || len(rules.Data.Groups[0].Rules) < 5 {
		t.Fatalf("%+v, %v", rules, err)
	}
	for _, r := range rules.Data.Groups[0].Rules {
		if r.Health != "ok" {
			t.Errorf("%s: %s, %s", r.Name, r.Health, r.LastError)
		}
	}
}

// value is what a panel shows now: "panel: legend" is its only series or the largest, "panel: {{label}} value" the one with that label.
func (s *server) value(all map[string]string, name string) float64 {
	s.t.Helper()
	expr, label := all[name], ""
	if i := strings.LastIndexByte(name, ' '); expr == "" && i > 0 {
		expr, label = all[name[:i]], name[i+1:]
	}
	if expr == "" {
		s.t.Fatalf("the dashboard has no %q", name)
	}
	found, err := s.query(expr)
	if err != nil {
		s.t.Fatalf("%s: %v", name, err)
	}
	most := 0.0
	for _, f := range found {
		fits := label == ""
		for _, v := range f.labels {
			fits = fits || v == label
		}
		if fits && f.value > most {
			most = f.value
		}
	}
	return most
}

// ours are the metrics of mayfly in an exposition.
func ours(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.Contains(line, "mayfly_") {
			b.WriteString(line)
		}
	}
	return b.String()
}
