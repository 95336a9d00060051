package navsession_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/navsession"
	"github.com/mayflycache/mayfly/redistest"
)

const browser = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"

// site is a handler behind a Middleware, whose user is in a cookie.
type site struct {
	visits     *navsession.Visits[string, navsession.Page]
	middleware *navsession.Middleware[string]
	handler    http.Handler
	events     *expect.Events
}

func newSite(t testing.TB, srv *redistest.Server, handler http.HandlerFunc, o navsession.MiddlewareOptions) *site {
	t.Helper()
	s := &site{events: &expect.Events{}}
	space := ns[navsession.Page](t, srv.Client())
	space.Observer = s.events
	s.visits = expect.Value(navsession.New(space, navsession.Options{Pages: 100, RedisTimeout: patient}))(t)
	s.middleware = expect.Value(navsession.NewMiddleware(s.visits, func(r *http.Request) (string, bool) {
		c, err := r.Cookie("user")
		if err != nil {
			return "", false
		}
		return c.Value, true
	}, o))(t)
	s.handler = s.middleware.Wrap(handler)
	return s
}

// get asks for a path as ada's browser does; change makes it somebody else's.
func (s *site) get(path string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Header.Set("User-Agent", browser)
	r.AddCookie(&http.Cookie{Name: "user", Value: "ada"})
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func (s *site) close(t testing.TB) {
	t.Helper()
	expect.OK(t, s.middleware.Close(context.Background()))
}

func (s *site) paths(t testing.TB) string {
	t.Helper()
	var all []string
	for _, p := range expect.Value(s.visits.Recent(t.Context(), "ada", 100))(t) {
		all = append(all, p.URL)
	}
	return strings.Join(all, " ")
}

func answer(w http.ResponseWriter, r *http.Request) {
	var status int
	if _, err := fmt.Sscanf(r.URL.Path, "/status/%d", &status); err == nil {
		w.WriteHeader(status)
	}
	io.WriteString(w, "hello")
}

func TestWhatAPageViewIs(t *testing.T) {
	s := newSite(t, redistest.Start(t), answer, navsession.MiddlewareOptions{})
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, view := range []struct {
		path   string
		change func(*http.Request)
	}{
		{"/first?token=secret", nil},
		{"/shoes/air.max", nil},
		{"/document", header("Sec-Fetch-Dest", "document")},
		{"/cubot", header("User-Agent", "Mozilla/5.0 (Linux; Android 11; CUBOT NOTE 20)")},
		{"/status/304", nil},
		{"/last.html", nil},

		{"/style.css", nil},
		{"/Logo.PNG", nil},
		{"/image", header("Sec-Fetch-Dest", "image")},
		{"/api", header("Sec-Fetch-Dest", "empty")},
		{"/socket", header("Upgrade", "websocket")},
		{"/crawled", header("User-Agent", "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)")},
		{"/fetched", header("User-Agent", "curl/8.9.1")},
		{"/anonymous", header("User-Agent", "")},
		{"/ahead", header("Sec-Purpose", "prefetch;prerender")},
		{"/status/404", nil},
		{"/status/500", nil},
		{"/status/302", nil},
		{"/posted", func(r *http.Request) { r.Method = http.MethodPost }},
		{"/asked", func(r *http.Request) { r.Method = http.MethodHead }},
		{"/stranger", func(r *http.Request) { r.Header.Del("Cookie") }},
	} {
		if view.change == nil {
			view.change = func(*http.Request) {}
		}
		if w := s.get(view.path, view.change); w.Body.String() != "hello" {
			t.Errorf("%s was answered %q", view.path, w.Body)
		}
	}
	s.close(t)
	if got, want := s.paths(t), "/last.html /status/304 /cubot /document /shoes/air.max /first"; got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	if n := s.events.Count(mayfly.KindWrite, mayfly.OutcomeDropped) + s.events.Count(mayfly.KindWrite, mayfly.OutcomeFailed); n != 0 {
		t.Errorf("%d views were lost", n)
	}
}

func TestOptionsOfAMiddleware(t *testing.T) {
	s := newSite(t, redistest.Start(t), answer, navsession.MiddlewareOptions{
		Bot: func(r *http.Request, guess bool) bool { return guess || r.URL.Path == "/bot" },
		Asset: func(r *http.Request, guess bool) bool {
			return guess && r.URL.Path != "/feed.xml" || r.URL.Path == "/asset"
		},
		Failure: func(status int) bool { return status == http.StatusTeapot },
		Page: func(r *http.Request) navsession.Page {
			return navsession.Page{URL: r.URL.RequestURI(), Title: "T", Time: time.Unix(1, 0).UTC()}
		},
	})
	for _, path := range []string{"/bot", "/asset", "/style.css", "/status/418", "/status/404?q=1", "/feed.xml"} {
		s.get(path)
	}
	s.get("/fetched", func(r *http.Request) { r.Header.Set("User-Agent", "curl/8.9.1") })
	s.close(t)
	pages := expect.Value(s.visits.Recent(t.Context(), "ada", 10))(t)
	var want []navsession.Page
	for _, url := range []string{"/feed.xml", "/status/404?q=1"} {
		want = append(want, navsession.Page{URL: url, Title: "T", Time: time.Unix(1, 0).UTC()})
	}
	if !slices.Equal(pages, want) {
		t.Errorf("recorded %+v", pages)
	}
}

// A page's time is when the request came, and the views of one user keep their order.
func TestTimeAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, redistest.Start(t), func(http.ResponseWriter, *http.Request) { time.Sleep(time.Second) }, navsession.MiddlewareOptions{})
		begun := time.Now()
		for i := range 50 {
			s.get(fmt.Sprint("/", i))
		}
		s.close(t)
		pages := expect.Value(s.visits.Recent(t.Context(), "ada", 100))(t)
		if len(pages) != 50 {
			t.Fatalf("%d pages", len(pages))
		}
		for i, p := range pages {
			if want := fmt.Sprint("/", 49-i); p.URL != want || !p.Time.Equal(begun.Add(time.Duration(49-i)*time.Second)) {
				t.Errorf("page %d is %+v, want %s", i, p, want)
			}
		}
	})
}

// A Redis that hangs slows no request and fails none; what does not fit the queue is dropped, and counted.
func TestAMiddlewareWhoseRedisHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		s := newSite(t, srv, answer, navsession.MiddlewareOptions{Queue: 40})
		srv.Hang()
		begun := time.Now()
		for i := range 100 {
			if w := s.get(fmt.Sprint("/", i)); w.Code != http.StatusOK || w.Body.String() != "hello" {
				t.Errorf("request %d: %d %q", i, w.Code, w.Body)
			}
			synctest.Wait()
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("requests waited %v", took)
		}
		if n := s.events.Count(mayfly.KindWrite, mayfly.OutcomeDropped); n != 100-10-1 { // a quarter of the queue, and one on its way
			t.Errorf("%d views were dropped, want 89", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := s.middleware.Close(ctx); err == nil {
			t.Error("Close dropped views and returned no error")
		}
		if took := time.Since(begun); took > 200*time.Millisecond {
			t.Errorf("Close took %v", took)
		}
		time.Sleep(6 * time.Second) // the one on its way ends when its client gives up
		if lost := s.events.Count(mayfly.KindWrite, mayfly.OutcomeDropped) + s.events.Count(mayfly.KindWrite, mayfly.OutcomeFailed); lost != 100 {
			t.Errorf("%d of 100 lost views were counted", lost)
		}
		srv.Thaw()
	})
}

func TestCloseOfAMiddleware(t *testing.T) {
	s := newSite(t, redistest.Start(t), answer, navsession.MiddlewareOptions{})
	for i := range 20 {
		s.get(fmt.Sprint("/", i))
	}
	s.close(t)
	s.close(t)
	if n := len(expect.Value(s.visits.Recent(t.Context(), "ada", 100))(t)); n != 20 {
		t.Errorf("Close left %d of 20 recorded", n)
	}
	if w := s.get("/late"); w.Body.String() != "hello" || s.events.Count(mayfly.KindWrite, mayfly.OutcomeDropped) != 1 {
		t.Errorf("after Close: %q, %d views dropped", w.Body, s.events.Count(mayfly.KindWrite, mayfly.OutcomeDropped))
	}
}

// A function that panics costs the view, not the request. A handler that panics does so, and shows no page.
func TestPanics(t *testing.T) {
	s := newSite(t, redistest.Start(t), func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/handler" {
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, "hello")
	}, navsession.MiddlewareOptions{
		Bot:  func(r *http.Request, _ bool) bool { return r.URL.Path == "/bot" && r.Header["None"][0] == "" },
		Page: func(r *http.Request) navsession.Page { panic("no page") },
	})
	for _, path := range []string{"/bot", "/page"} {
		if w := s.get(path); w.Body.String() != "hello" {
			t.Errorf("%s was answered %q", path, w.Body)
		}
	}
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("the handler's panic came out as %v", p)
			}
		}()
		s.get("/handler")
	}()
	s.close(t)
	if n := s.events.Count(mayfly.KindWrite, mayfly.OutcomeFailed); n != 2 || s.paths(t) != "" {
		t.Errorf("%d failures, recorded %q", n, s.paths(t))
	}
}

// Behind a Middleware, a handler can do everything with its response that it can do without.
func TestAResponseIsWhatItWas(t *testing.T) {
	s := newSite(t, redistest.Start(t), func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("SetWriteDeadline: %v", err)
		}
		<-r.Context().Done()
	}, navsession.MiddlewareOptions{})
	defer s.close(t)
	server := httptest.NewServer(s.handler)
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := expect.Value(http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/", nil))(t)
	r.Header.Set("User-Agent", browser)
	res := expect.Value(server.Client().Do(r))(t)
	defer res.Body.Close()
	first := make([]byte, len("first"))
	if _, err := io.ReadFull(res.Body, first); err != nil || string(first) != "first" {
		t.Errorf("read %q, %v", first, err)
	}
	cancel()
}

func TestBadMiddlewares(t *testing.T) {
	v := expect.Value(navsession.New(ns[navsession.Page](t, redistest.Start(t).Client()), navsession.Options{Pages: 1, RedisTimeout: patient}))(t)
	anybody := func(*http.Request) (string, bool) { return "", false }
	_, noVisits := navsession.NewMiddleware(nil, anybody, navsession.MiddlewareOptions{})
	_, noUser := navsession.NewMiddleware(v, nil, navsession.MiddlewareOptions{})
	_, queue := navsession.NewMiddleware(v, anybody, navsession.MiddlewareOptions{Queue: -1, Timeout: -time.Second})
	for want, err := range map[string]error{
		"needs visits to record in":                             noVisits,
		"needs a function that tells the user":                  noUser,
		"MiddlewareOptions.Queue must not be negative, got -1":  queue,
		"MiddlewareOptions.Timeout must not be negative, got -": errors.Join(queue),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

// A handler that was forgotten shows when it is mounted, not at the first request.
func TestWrapNil(t *testing.T) {
	s := newSite(t, redistest.Start(t), func(http.ResponseWriter, *http.Request) {}, navsession.MiddlewareOptions{})
	defer s.middleware.Close(t.Context())
	for _, next := range []http.Handler{nil, http.HandlerFunc(nil)} {
		expect.Panic(t, "navsession: Wrap got a nil handler", func() { s.middleware.Wrap(next) })
	}
}
