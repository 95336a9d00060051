package metrics_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/foreign"
	"github.com/mayflycache/mayfly/metrics"
)

// tool returns the path of a program of Prometheus's.
func tool(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(foreign.Named(t, "MAYFLY_PROMETHEUS_BIN", ".ci/prometheus"), name)
}

// promtool runs it, and wants it to be content.
func promtool(t *testing.T, input io.Reader, args ...string) {
	t.Helper()
	cmd := exec.Command(tool(t, "promtool"), args...)
	cmd.Stdin = input
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v: %.2000s", strings.Join(args, " "), err, out)
	}
}

func TestAlertRules(t *testing.T) {
	promtool(t, nil, "check", "rules", "alerts.yml")
	promtool(t, nil, "test", "rules", filepath.Join("testdata", "alerts_test.yml"))
}

// server is a Prometheus.
type server struct {
	t    *testing.T
	addr string
}

// started starts a Prometheus on the data in dir, and returns when it takes questions.
func started(t *testing.T, dir, config string) *server {
	file := filepath.Join(t.TempDir(), "p.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(tool(t, "prometheus"), "--config.file", file, "--storage.tsdb.path", dir, "--storage.tsdb.retention.time", "100y",
		"--web.listen-address", "127.0.0.1:0", "--enable-feature", "native-histograms")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	s, ready := &server{t: t}, false
	var said bytes.Buffer
	for lines := bufio.NewScanner(io.TeeReader(log, &said)); lines.Scan(); {
		if at := listens.FindStringSubmatch(lines.Text()); at != nil {
			s.addr = at[1]
		}
		ready = ready || strings.Contains(lines.Text(), "Server is ready to receive web requests")
		if ready && s.addr != "" { // in any order
			go io.Copy(io.Discard, log)
			return s
		}
	}
	t.Fatalf("Prometheus did not start: %.4000s", &said)
	return nil
}

// listens is the line of Prometheus's log that has its address.
var listens = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

func (s *server) get(path string, query url.Values, data any) {
	s.t.Helper()
	r, err := http.Get("http://" + s.addr + path + "?" + query.Encode())
	if err != nil {
		s.t.Fatal(err)
	}
	defer r.Body.Close()
	reply := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&reply); err != nil || reply.Error != "" {
		s.t.Fatalf("%s?%s: %v %s", path, query, err, reply.Error)
	}
}

// result is what Prometheus answers: series of points, each a time and a value.
type result struct {
	Result []struct {
		Metric map[string]string
		Value  [2]any   // of a query
		Values [][2]any // of a query_range
	}
}

// number is the value of a point.
func number(point [2]any) float64 {
	v, err := strconv.ParseFloat(fmt.Sprint(point[1]), 64)
	if err != nil {
		panic(err)
	}
	return v
}

// panels returns the expressions of the dashboard, by title and legend, with rates over window.
func panels(t *testing.T, window string) map[string]string {
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
			all[p.Title+": "+target.LegendFormat] = strings.NewReplacer("$__rate_interval", window, "$namespace", ".*").Replace(target.Expr)
		}
	}
	return all
}

// Native histograms are scraped, and the panels of durations have them. They cannot be given to a Prometheus as text, so this one scrapes: the
// registry counts on with each scrape.
func TestNativeHistograms(t *testing.T) {
	t.Parallel()
	tool(t, "prometheus")
	m, r := observer(t, metrics.Options{})
	hook := m.Hook("client").ProcessHook(func(context.Context, redis.Cmder) error { <-time.After(30 * time.Millisecond); return nil })
	page := promhttp.HandlerFor(r, promhttp.HandlerOpts{EnableOpenMetrics: true})
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, kind := range []mayfly.Kind{mayfly.KindRead, mayfly.KindLoad, mayfly.KindLag} {
			m.Observe(t.Context(), mayfly.Event{Namespace: "users", Kind: kind, Took: 30 * time.Millisecond})
		}
		hook(t.Context(), redis.NewCmd(t.Context(), "get"))
		page.ServeHTTP(w, r)
	}))
	defer target.Close()
	s := started(t, t.TempDir(), fmt.Sprintf("scrape_configs: [{job_name: p, scrape_interval: 500ms, scrape_timeout: 500ms, static_configs: [{targets: [%q]}]}]\n",
		strings.TrimPrefix(target.URL, "http://")))
	expect.Eventually(t, "two scrapes are stored", func() bool {
		var got result
		s.get("/api/v1/query", url.Values{"query": {"sum_over_time(up[1h])"}}, &got)
		return len(got.Result) == 1 && number(got.Result[0].Value) >= 2
	})
	asked := 0
	for name, expr := range panels(t, "1m") {
		native, _, classic := strings.Cut(expr, " or histogram_quantile")
		if !classic {
			continue
		}
		asked++
		var got result
		s.get("/api/v1/query", url.Values{"query": {native}}, &got)
		if len(got.Result) != 1 || !(number(got.Result[0].Value) > .027) || number(got.Result[0].Value) > 10 { // the hook's time is a clock's
			t.Errorf("%s: %+v", name, got)
		}
	}
	if asked < 4 {
		t.Errorf("%d panels of durations", asked)
	}
}
