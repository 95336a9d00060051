package httpcache_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// atHeader changes the header when the final answer passes.
type atHeader struct {
	http.ResponseWriter
	change func(http.Header)
	done   bool
}

func (w *atHeader) WriteHeader(status int) {
	if !w.done {
		w.done = true
		w.change(w.Header())
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *atHeader) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// around serves h behind a handler that changes the header before h is called, and one when its answer passes.
func around(t *testing.T, h http.Handler, before, at func(http.Header)) (ask func() http.Header) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		before(w.Header())
		h.ServeHTTP(&atHeader{ResponseWriter: w, change: at}, r)
	}))
	t.Cleanup(srv.Close)
	return func() http.Header {
		res := expect.Value(srv.Client().Get(srv.URL))(t)
		io.Copy(io.Discard, res.Body)
		res.Body.Close()
		return res.Header
	}
}

// A Content-Type that a handler around the cache sets is not overwritten by a guess: with nosniff a browser would run the text as a script.
func TestATypeSetAroundTheCacheIsNotGuessed(t *testing.T) {
	nothing := func(http.Header) {}
	sets := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	for name, x := range map[string]struct {
		own        string // the handler's type
		before, at func(http.Header)
	}{
		"before":                  {"", sets("Content-Type", "text/plain"), nothing},
		"before, and the handler": {"text/plain", sets("Content-Type", "text/plain"), nothing},
		"at the header":           {"", nothing, sets("Content-Type", "text/plain")},
		"at the header, if absent": {"", nothing, func(h http.Header) {
			if h.Get("Content-Type") == "" {
				h.Set("Content-Type", "text/plain")
			}
		}},
		"none, at the header": {"", nothing, func(h http.Header) { h["Content-Type"] = nil }},
		"encoded":             {"", sets("Content-Encoding", "br"), nothing},
		"nobody":              {"", nothing, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			ask := around(t, opened(t, options(t, redistest.Start(t).Client())).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				if x.own != "" {
					w.Header().Set("Content-Type", x.own)
				}
				io.WriteString(w, "<script>alert('what a user wrote')</script>")
			})), x.before, x.at)
			miss, hit := ask(), ask()
			if !isHit(hit.Get("Cache-Status")) || len(miss["Content-Type"]) != len(hit["Content-Type"]) || miss.Get("Content-Type") != hit.Get("Content-Type") {
				t.Errorf("the miss is %q, the hit %q: %s", miss["Content-Type"], hit["Content-Type"], hit.Get("Cache-Status"))
			}
		})
	}
}

// What a handler around the cache forbids when the header is sent is not stored, and its whole body reaches the client.
func TestForbiddenAroundTheCache(t *testing.T) {
	for _, field := range [][2]string{{"Cache-Control", "no-store"}, {"Cache-Control", "private, max-age=60"}, {"Vary", "*"}} {
		calls := 0
		ask := around(t, opened(t, options(t, redistest.Start(t).Client())).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "for one ")
			io.WriteString(w, "client")
		})), func(http.Header) {}, func(h http.Header) { h.Add(field[0], field[1]) })
		for range 3 {
			if got := ask(); got.Get("Content-Length") != "14" {
				t.Errorf("%s: %s: %v", field[0], field[1], got)
			}
		}
		if calls != 3 {
			t.Errorf("%s: %s: the handler was called %d times for 3 requests", field[0], field[1], calls)
		}
	}
}
