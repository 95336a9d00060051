package httpcache_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/chromium"
	"github.com/mayflycache/mayfly/internal/testkit/foreign"
	"github.com/mayflycache/mayfly/redistest"
)

// gate is a handler in front of a cache that records the requests it passes on.
type gate struct {
	next http.Handler

	mu     sync.Mutex // guards passed
	passed []string
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	seen := &statusOf{ResponseWriter: w, status: 200}
	g.next.ServeHTTP(seen, r)
	g.mu.Lock()
	defer g.mu.Unlock()
	how, _, _ := strings.Cut(w.Header().Get("Cache-Status"), "; ttl")
	how, _, _ = strings.Cut(how, "; key")
	g.passed = append(g.passed, fmt.Sprintf("%s %s: %d %s", r.URL.Path, r.Header.Get("Cache-Control"), seen.status, how))
}

// since returns what has passed since the last call.
func (g *gate) since() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.passed = nil }()
	return g.passed
}

type statusOf struct {
	http.ResponseWriter
	status int
}

func (s *statusOf) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}
func (s *statusOf) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// newSite is a site with a page, a script that never changes, and a page around the first.
func newSite(t *testing.T) (*httptest.Server, *gate) {
	serve := func(kind, cc, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.Header().Set("Cache-Control", cc)
			if cc != "no-store" {
				w.Header().Set("ETag", `"v1"`)
			}
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/page", serve("text/html", "max-age=3600", `<title>page</title><script src="/app.js"></script>`))
	mux.Handle("/app.js", serve("text/javascript", "max-age=31536000, immutable", "parent.ran = (parent.ran || 0) + 1"))
	mux.Handle("/around", serve("text/html", "no-store", `<link rel="icon" href="data:,"><iframe src="/page" onload="loads = (window.loads || 0) + 1"></iframe>`))
	g := &gate{next: must(t)(options(t, redistest.Start(t).Client()).New()).Handler(mux)}
	srv := httptest.NewServer(g)
	t.Cleanup(srv.Close)
	return srv, g
}

// A browser that reloads a page asks whether its copy is still good, and gets a 304.
func TestChromium(t *testing.T) {
	browser := chromium.Start(t)
	srv, gate := newSite(t)
	page := browser.Open(t, srv.URL+"/around", chromium.Screen{Width: 400, Height: 300})
	wants := func(what string, want ...string) {
		t.Helper()
		if got := gate.since(); strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	page.Await(t, time.Minute, "loads == 1 && ran == 1")
	wants("the first visit", "/around : 200 mayfly; fwd=uri-miss", "/page : 200 mayfly; fwd=uri-miss", "/app.js : 200 mayfly; fwd=uri-miss")

	page.Eval(t, "frames[0].location.reload()", nil)
	page.Await(t, time.Minute, "loads == 2 && ran == 2")
	wants("a reload", "/page max-age=0: 304 mayfly; fwd=request; fwd-status=304")

	fetch := func(path, mode string) (status string) {
		t.Helper()
		page.Eval(t, fmt.Sprintf("fetch(%q, {cache: %q}).then(r => r.status + ' ' + r.headers.get('Cache-Status'))", path, mode), &status)
		status, _, _ = strings.Cut(status, "; ttl")
		return status
	}
	if got := fetch("/page", "no-store"); got != "200 mayfly; fwd=request; fwd-status=304" { // the browser says no-cache, too
		t.Errorf("without the browser's cache: %s", got)
	}
	gate.since()
	if got := fetch("/app.js", "no-cache"); got != "200 mayfly; hit" { // the browser makes this 200 from a 304
		t.Errorf("is the script still good? %s", got)
	}
	wants("what is immutable", "/app.js max-age=0: 304 mayfly; hit")
	if got := fetch("/app.js", "reload"); !strings.HasPrefix(got, "200 mayfly; fwd=request") {
		t.Errorf("a forced reload of the script: %s", got)
	}
	var script string
	page.Eval(t, "fetch('/app.js', {cache: 'no-store', headers: {Range: 'bytes=0-5'}}).then(async r => r.status + ' ' + r.headers.get('Content-Range') + ' ' + await r.text())", &script)
	if !strings.HasPrefix(script, "206 bytes 0-5/") || !strings.HasSuffix(script, " parent") {
		t.Errorf("a part of the script: %q", script)
	}
}

// curl, with the options that people know.
func TestCurl(t *testing.T) {
	program := foreign.Named(t, "MAYFLY_CURL_BIN", "command -v curl")
	srv, _ := newSite(t)
	etag := filepath.Join(t.TempDir(), "etag")
	for _, x := range []struct {
		name string
		args []string
		want string // status, Cache-Status
	}{
		{"first", []string{"--etag-save", etag, "/page"}, "200 mayfly; fwd=uri-miss; ttl="},
		{"again", []string{"/page"}, "200 mayfly; hit"},
		{"do you have a newer one?", []string{"--etag-compare", etag, "/page"}, "304 mayfly; hit"},
		{"its header", []string{"--head", "/page"}, "200 mayfly; hit"},
		{"a part", []string{"--range", "0-6", "/page"}, "206 mayfly; hit"},
		{"HTTP/1.0", []string{"--http1.0", "/page"}, "200 mayfly; hit"},
		{"compressed", []string{"--compressed", "/page"}, "200 mayfly; hit"},
		{"from the cache or not at all", []string{"-H", "Cache-Control: only-if-cached", "/app.js"}, "504 mayfly; key="},
		{"posted", []string{"--data", "a=b", "/page"}, "200 mayfly; fwd=method"},
		{"after the post", []string{"/page"}, "200 mayfly; fwd=uri-miss"},
	} {
		args := append([]string{"--silent", "--show-error", "--max-time", "60", "--dump-header", "-", "--output", filepath.Join(t.TempDir(), "body")}, x.args...)
		args[len(args)-1] = srv.URL + args[len(args)-1]
		cmd := exec.CommandContext(t.Context(), program, args...)
		var errors bytes.Buffer
		cmd.Stderr = &errors
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v %s", x.name, err, &errors)
		}
		status, how := "", ""
		for line := range strings.SplitSeq(string(out), "\r\n") {
			if code, ok := strings.CutPrefix(line, "HTTP/1.1 "); ok {
				status = code[:3]
			} else if code, ok := strings.CutPrefix(line, "HTTP/1.0 "); ok {
				status = code[:3]
			}
			if s, ok := strings.CutPrefix(line, "Cache-Status: "); ok {
				how = s
			}
		}
		if got := status + " " + how; !strings.HasPrefix(got, x.want) {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}
