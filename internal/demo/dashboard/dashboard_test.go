package dashboard_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/dashboard"
	"github.com/mayflycache/mayfly/internal/demo/panel"
	"github.com/mayflycache/mayfly/internal/demo/shop"
	"github.com/mayflycache/mayfly/internal/testkit/chromium"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// opened opens a shop, on a Redis of its own, and its dashboard, which is recording, until the test ends.
func opened(t *testing.T, o shop.Options) (http.Handler, *shop.Shop, *dashboard.Recorder) {
	t.Helper()
	o.Redis = redistest.Start(t).Client().Options()
	s, err := shop.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	until, cancel := context.WithCancel(context.Background())
	r := dashboard.NewRecorder(s)
	var running sync.WaitGroup
	running.Go(func() { r.Run(until) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return dashboard.Handler(s, r, dashboard.Options{Redis: "an embedded Redis", Until: until, Host: "demo.example"}), s, r
}

// pass lets time pass, which it does in a bubble only.
func pass(d time.Duration) {
	synctest.Wait() // panics outside of one
	time.Sleep(d)
}

// inBubble opens a small shop and its dashboard in a bubble.
func inBubble(t *testing.T, f func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		set := panel.Default
		set.Shoppers = 20
		h, s, r := opened(t, shop.Options{Settings: set, Own: true, Catalogue: small, Reviews: 6})
		f(t, h, s, r)
	})
}

func TestFiguresComeFourTimesASecond(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		set := s.Settings()
		set.Shoppers = 1
		expect.OK(t, s.Set(t.Context(), set))
		time.Sleep(70*time.Second + dashboard.Every/2) // between two moments, at the end too
		ctx, cancel := context.WithCancel(t.Context())
		w := httptest.NewRecorder()
		ended := make(chan bool)
		go func() {
			defer close(ended)
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "http://demo.example/events", nil))
		}()
		time.Sleep(10 * time.Second)
		cancel()
		<-ended
		history, moments := strings.Count(w.Body.String(), "event: history\n"), strings.Count(w.Body.String(), "event: moment\n")
		if history != 1 || moments != 40 || w.Header().Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d histories, %d moments in ten seconds, %s", history, moments, w.Header().Get("Content-Type"))
		}
		if first, _, _ := strings.Cut(w.Body.String(), "event: moment"); strings.Count(first, `"at":`) != 240 || strings.Count(first, `"settings":`) != 1 {
			t.Errorf("a visitor after more than a minute gets %.300s", first)
		}
	})
}

func TestWhatThePageAsksFor(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		ask := func(path string, form url.Values, header ...string) (int, string) {
			q := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(form.Encode()))
			q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for i := 0; i < len(header); i += 2 {
				q.Header.Set(header[i], header[i+1])
			}
			q.Host = "demo.example:8379"
			w := httptest.NewRecorder()
			h.ServeHTTP(w, q)
			return w.Code, strings.TrimSpace(w.Body.String())
		}
		for _, test := range []struct {
			path, form string
			status     int
			says       string
		}{
			{"/set", "name=mayfly&value=1", 204, ""},
			{"/set", "name=ttl&value=7000", 204, ""},
			{"/set", "name=shoppers&value=30", 204, ""},
			{"/set", "name=mayfly&value=2", 400, "mayfly takes 0 or 1, got 2"},
			{"/set", "name=ttl&value=soon", 400, `ttl takes a number, got "soon"`},
			{"/set", "name=ttl&value=1", 400, "ttl must be 200ms to 1h0m0s, got 1ms"},
			{"/set", "name=processes&value=13", 400, "processes must be 1 to 12, got 13"},
			{"/set", "name=colour&value=1", 400, `there is no setting "colour": there are admission, connections, early,`},
			{"/press", "button=expire", 204, ""},
			{"/press", "button=empty", 204, ""},
			{"/set", "name=admission&value=0", 204, ""},
			{"/press", "button=self-destruct", 400, `there is no button "self-destruct"`},
			{"/press", "button=processes", 204, ""},
		} {
			form, _ := url.ParseQuery(test.form)
			if status, says := ask(test.path, form); status != test.status || !strings.Contains(says, test.says) {
				t.Errorf("%s %s: %d %q", test.path, test.form, status, says)
			}
		}
		if now := s.Settings(); !now.Mayfly || now.Admission || now.TTL != 7*time.Second || now.Shoppers != 30 || now.Processes != 4 {
			t.Errorf("%+v", now)
		}
		if status, _ := ask("/press", url.Values{"button": {"kill"}}, "Sec-Fetch-Site", "cross-site"); status != 403 {
			t.Errorf("another site's page may press buttons: %d", status)
		}
	})
}

// Nobody who leads a name of his own here, or has his page ask, reads or changes anything.
func TestWhoIsServed(t *testing.T) {
	inBubble(t, func(t *testing.T, _ http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		for _, test := range []struct {
			at, host string
			served   bool
		}{
			{"127.0.0.1", "127.0.0.1:8379", true},
			{"127.0.0.1", "localhost:8379", true},
			{"127.0.0.1", "LOCALHOST", true},
			{"127.0.0.1", "[::1]:8379", true},
			{"127.0.0.1", "127.8.8.8:8379", true},
			{"127.0.0.1", "10.0.0.7:8379", false},
			{"127.0.0.1", "evil.example", false},
			{"127.0.0.1", "evil.example:8379", false},
			{"127.0.0.1", "127.0.0.1.evil.example", false},
			{"127.0.0.1", "localhost.evil.example", false},
			{"127.0.0.1", "", false},
			{"demo.example", "demo.Example:8379", true},
			{"demo.example", "evil.example:8379", false},
			{"10.0.0.7", "10.0.0.7:8379", true},
			{"10.0.0.7", "10.0.0.8:8379", false},
			{"0.0.0.0", "10.0.0.7:8379", true},
			{"0.0.0.0", "evil.example:8379", false},
			{"::", "10.0.0.7:8379", true},
			{"", "[2001:db8::7]:8379", true},
			{"", "evil.example", false},
		} {
			h := dashboard.Handler(s, r, dashboard.Options{Host: test.at, Metrics: http.NotFoundHandler()})
			for _, ask := range []string{"GET /", "GET /events", "GET /metrics", "GET /shop/", "GET /shop/mine", "GET /shop/product/1", "POST /press", "POST /set", "POST /tour", "POST /shop/cart/1", "POST /shop/login"} {
				method, path, _ := strings.Cut(ask, " ")
				ctx, cancel := context.WithTimeout(t.Context(), time.Second/10) // a stream of events does not end
				q := httptest.NewRequestWithContext(ctx, method, path, nil)
				q.Host = test.host
				w := httptest.NewRecorder()
				if test.served && method == "POST" { // and does nothing
					q.Header.Set("Origin", "http://evil.example")
				}
				h.ServeHTTP(w, q)
				cancel()
				if served := w.Code != http.StatusForbidden; served != (test.served && method == "GET") {
					t.Errorf("listening at %q, %s for %q: %d %.100s", test.at, ask, test.host, w.Code, w.Body)
				}
			}
		}
		h := dashboard.Handler(s, r, dashboard.Options{Host: "127.0.0.1"})
		for _, test := range []struct {
			header, value string
			status        int
		}{
			{"Sec-Fetch-Site", "cross-site", 403}, {"Sec-Fetch-Site", "same-site", 403}, {"Sec-Fetch-Site", "same-origin", 204}, {"Sec-Fetch-Site", "none", 204},
			{"Origin", "null", 403}, {"Origin", "http://evil.example", 403}, {"Origin", "http://127.0.0.1:8380", 403}, {"Origin", "http://127.0.0.1:8379", 204},
			{"User-Agent", "curl", 204},
		} {
			q := httptest.NewRequestWithContext(t.Context(), "POST", "/press", strings.NewReader("button=expire"))
			q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			q.Host = "127.0.0.1:8379"
			q.Header.Set(test.header, test.value)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, q); w.Code != test.status {
				t.Errorf("%s: %s: %d %s, want %d", test.header, test.value, w.Code, w.Body, test.status)
			}
		}
	})
}

// Everything that the pages refer to is there, and everything that browsers request by themselves.
func TestNoPageAsksForWhatIsNotThere(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		get := func(path string) *httptest.ResponseRecorder {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // a stream of events does not end
			defer cancel()
			q := httptest.NewRequestWithContext(ctx, "GET", "http://localhost"+path, nil)
			q.Header.Set("Accept", "text/html")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, q); w.Code != http.StatusOK {
				t.Errorf("%s: %d", path, w.Code)
			}
			return w
		}
		asked := regexp.MustCompile(`(?:href=|src=|fetch\(|EventSource\()"(/[^"]*)"`)
		for _, page := range []string{"/", "/shop/", "/shop/product/1"} {
			all := asked.FindAllStringSubmatch(get(page).Body.String(), -1)
			if len(all) == 0 {
				t.Errorf("%s asks for nothing", page)
			}
			for _, a := range all {
				if a[1] != "/metrics" { // there are none here
					get(a[1])
				}
			}
		}
		for path, kind := range map[string]string{"/favicon.ico": "image/svg+xml", "/page.css": "text/css; charset=utf-8"} {
			if w := get(path); w.Header().Get("Content-Type") != kind || w.Body.Len() == 0 {
				t.Errorf("%s: %d bytes of %s", path, w.Body.Len(), w.Header().Get("Content-Type"))
			}
		}
	})
}

// A report is the page, with figures in it, and needs no server.
func TestReport(t *testing.T) {
	var report bytes.Buffer
	inBubble(t, func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		if err := r.Tour(t.Context(), 20*time.Second); err != nil {
			t.Fatal(err)
		}
		if err := dashboard.Report(&report, s, r, dashboard.Options{Redis: "</script><script>alert(1)</script>"}); err != nil {
			t.Fatal(err)
		}
	})
	if strings.Contains(report.String(), "<script>alert") {
		t.Error("what is shown is not escaped")
	}
	browser := chromium.Start(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path != "/" {
			t.Errorf("the report asks for %s", q.URL.Path)
		}
		w.Write(report.Bytes())
	}))
	defer server.Close()
	page := browser.Open(t, server.URL, chromium.Screen{Width: 1000, Height: 800})
	var seen struct {
		Charts, Marks, Enabled int
		Crowd                  bool // the chart of what did not happen
		Rows, Columns          int  // of the table
		Way                    string
	}
	page.Eval(t, `({ Charts: [...document.querySelectorAll("svg")].filter(s => s.querySelector("path[d*=L]")).length,
		Marks: document.querySelectorAll("[data-chart=queries] .mark").length, Enabled: document.querySelectorAll("input[role]:enabled").length,
		Crowd: !document.querySelector("[data-chart=crowd]").parentElement.hidden,
		Rows: document.querySelectorAll("#trials tbody tr").length, Columns: document.querySelectorAll("#trials thead th").length,
		Way: [...document.querySelectorAll("#trials th[rowspan]")].map(t => t.textContent).join() })`, &seen)
	if seen.Charts != 5 || seen.Marks != 4 || seen.Enabled != 0 || seen.Crowd || seen.Rows != 6 || seen.Columns != 10 || seen.Way != "by hand,mayfly" {
		t.Errorf("%+v", seen)
	}
	labelsAreApart(t, page)
}

// labelsAreApart draws a chart with marks here and there, again and again, and looks whether a label covers another, a line, or leaves the roof.
func labelsAreApart(t *testing.T, page *chromium.Page) {
	var wrong []string
	page.Eval(t, `(() => {
		const wrong = [], svg = document.querySelector("[data-chart=queries]"), texts = ["mayfly on", "everything expires", "Redis is back", "ttl 7s", "the database is slow", "all is filled at once"];
		let seed = 7, shown = 0;
		const draws = n => (seed = seed * 1103515245 + 12345 & 0x7fffffff) % n;
		for (let round = 0; round < 150; round++) {
			moments.forEach(m => delete m.mark);
			for (let n = draws(14); n > 0; n--) moments[draws(moments.length)].mark = texts[draws(texts.length)];
			draw(svg, charts.queries);
			const boxes = [...svg.querySelectorAll(".said")].map(e => e.getBBox()), lines = [...svg.querySelectorAll(".mark")].map(e => e.getBBox());
			shown += boxes.length;
			if (lines.length != moments.filter(m => m.mark).length) wrong.push("a line is missing");
			if (lines.length && !boxes.length) wrong.push("nothing is said");
			boxes.forEach((a, i) => {
				if (a.y < -1 || a.y + a.height > roof || a.x < 0 || a.x + a.width > svg.clientWidth + 1) wrong.push("out of the roof");
				if (boxes.some((b, j) => i < j && a.x < b.x + b.width && b.x < a.x + a.width && a.y + 2 < b.y + b.height && b.y + 2 < a.y + a.height)) wrong.push("over another");
				if (lines.some(l => a.x < l.x && l.x < a.x + a.width && l.y + 1 < a.y + a.height - 2)) wrong.push("over a line");
			});
		}
		if (shown < 300) wrong.push("only " + shown + " were shown");
		return wrong;
	})()`, &wrong)
	if len(wrong) > 0 {
		t.Errorf("%d labels are not where they should be, such as %s", len(wrong), wrong[0])
	}
}

// The summary describes the crowd by whether its loads were admitted, and leaves it out where there was none.
func TestTheSummaryTellsOfTheCrowd(t *testing.T) {
	inBubble(t, func(t *testing.T, h http.Handler, s *shop.Shop, r *dashboard.Recorder) {
		summary := func() string {
			var b strings.Builder
			r.Summary(&b)
			return b.String()
		}
		next := s.Settings()
		next.Mayfly = true
		if err := s.Set(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if text := summary(); strings.Contains(text, "crowd") {
			t.Errorf("before there was one: %s", text)
		}
		if _, err := s.Press(t.Context(), panel.EmptyRedis); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		with := "the crowd, its loads admitted: "
		if text := summary(); !strings.Contains(text, with) || strings.Contains(text, "without admission") {
			t.Errorf("with admission: %s", text)
		}
		next.Admission = false
		if err := s.Set(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		text := summary()
		_, row, _ := strings.Cut(text, "the crowd, without admission: ")
		var answered, of int
		if n, err := fmt.Sscanf(row, "%d of %d answered", &answered, &of); n != 2 || answered == 0 || answered >= of || !strings.Contains(text, with) {
			t.Errorf("without admission: %s, %v", text, err)
		}
	})
}
