package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// Header fields that handlers around the cache set are not stored, even if the inner handler adds lines to them. The added lines are stored,
// and added again.
func TestHeadersSetAroundTheCacheAreNotStored(t *testing.T) {
	for _, local := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rdb := redistest.Start(t).Client()
			opt := options(t, rdb)
			opt.StoreSetCookie = true
			if local {
				l := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{opt.Namespace.Prefix}, MaxBytes: 1 << 20}))
				t.Cleanup(func() { l.Close(context.Background()) })
				opt.Namespace.Local = l
			}
			requests := 0
			inner := opened(t, opt).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
				h := w.Header()
				h.Set("Cache-Control", "max-age=10")
				h.Set("Etag", `"1"`)
				h.Add("Server-Timing", "inner")
				h.Add("Set-Cookie", "theme=dark")
				h.Set("X-Both", "inner")
				h.Add("X-Inner", "1")
				h.Add("X-Inner", "2")
				if r.Header.Get("If-None-Match") == `"1"` {
					w.WriteHeader(http.StatusNotModified)
					return
				}
				fmt.Fprint(w, "page")
			}})
			site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests++
				h := w.Header()
				h.Set("Server-Timing", fmt.Sprint("outer ", requests))
				h.Set("Set-Cookie", fmt.Sprint("session=", requests))
				h.Set("X-Both", "outer")
				h.Set("X-Outer", fmt.Sprint(requests))
				inner.ServeHTTP(w, r)
			})
			for n := 1; n <= 6; n++ {
				res := ask(site, "GET", "http://a.example/")
				got := fmt.Sprintf("%v%v%v%v%v", res.Header["Server-Timing"], res.Header["Set-Cookie"], res.Header["X-Both"], res.Header["X-Inner"], res.Header["X-Outer"])
				want := fmt.Sprintf("[outer %d inner][session=%d theme=dark][inner][1 2][%d]", n, n, n)
				if got != want {
					t.Errorf("local %v, request %d: got %s, want %s: %s", local, n, got, want, res.Header.Get("Cache-Status"))
				}
				if status := res.Header.Get("Cache-Status"); isHit(status) != (n != 1 && n != 4) || n == 4 && !strings.Contains(status, "fwd-status=304") {
					t.Errorf("request %d: %s", n, status)
				}
				if synctest.Wait(); n == 3 {
					time.Sleep(11 * time.Second) // then it is validated
				}
			}
		})
	}
}

// lazy is a writer that sets its fields when the first answer passes it, as those of session middlewares do.
type lazy struct {
	http.ResponseWriter
	done bool
}

func (l *lazy) WriteHeader(status int) {
	if !l.done {
		l.done = true
		l.Header().Add("Set-Cookie", "session=1")
		l.Header().Add("Vary", "Cookie")
		l.Header().Set("X-Frame-Options", "DENY")
	}
	l.ResponseWriter.WriteHeader(status)
}

func (l *lazy) Write(b []byte) (int, error) {
	l.WriteHeader(http.StatusOK)
	return l.ResponseWriter.Write(b)
}

// What a writer around the cache sets when an interim answer passes it reaches its client with the final one, and nobody else.
func TestFieldsSetAtAnInterimAnswer(t *testing.T) {
	h := opened(t, options(t, redistest.Start(t).Client())).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.Header().Set("X-Frame-Options", "ALLOWALL")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Add("X-Frame-Options", "mine")
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Vary", "Accept")
		if r.URL.Path == "/nothing" {
			return
		}
		fmt.Fprint(w, "welcome")
	}))
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(&lazy{ResponseWriter: w}, r) }))
	defer srv.Close()
	for _, method := range []string{"POST", "GET"} {
		for _, path := range []string{"/nothing", "/"} {
			r := expect.Value(http.NewRequest(method, srv.URL+path, nil))(t)
			res := expect.Value(srv.Client().Do(r))(t)
			res.Body.Close()
			got := fmt.Sprint(res.Header["Set-Cookie"], res.Header["X-Frame-Options"], res.Header["Vary"], res.Header["Link"])
			if want := "[session=1] [DENY mine] [Accept Cookie] [</a.css>; rel=preload]"; got != want {
				t.Errorf("%s %s: %s, want %s", method, path, got, want)
			}
		}
	}
	if res := ask(h, "GET", srv.URL+"/"); !isHit(res.Header.Get("Cache-Status")) || res.Header["Set-Cookie"] != nil || fmt.Sprint(res.Header["X-Frame-Options"]) != "[ALLOWALL mine]" {
		t.Errorf("another client gets %v", res.Header)
	}
}

// The same where the cache and not the handler gives the final answer, and where the writer replaced or removed what the handler had set.
func TestFieldsSetAtAnInterimAnswerThatTheCacheEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := options(t, redistest.Start(t).Client())
		end := ""
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"X-Frame-Options: ALLOWALL", "X-Secret: 1"})
			if end != "" {
				w.WriteHeader(http.StatusEarlyHints)
			}
			set(w.Header(), []string{"Cache-Control: max-age=1", `Etag: "1"`})
			switch {
			case end == "304" && r.Header.Get("If-None-Match") != "":
				w.WriteHeader(http.StatusNotModified)
			case end == "another 304" && r.Header.Get("If-None-Match") != "":
				w.Header().Set("Etag", `"2"`)
				w.WriteHeader(http.StatusNotModified)
			case end == "502":
				w.WriteHeader(http.StatusBadGateway)
			case end == "panic":
				panic("at the disco")
			default:
				fmt.Fprint(w, "page")
			}
		}))
		site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				if recover() != nil {
					w.WriteHeader(http.StatusInternalServerError)
				}
			}()
			h.ServeHTTP(&strict{lazy{ResponseWriter: final{w}}}, r)
		})
		for _, end = range []string{"200", "304", "another 304", "502", "panic"} {
			for _, method := range []string{"GET", "DELETE"} {
				time.Sleep(2 * time.Second)
				synctest.Wait()
				res := ask(site, method, "http://a.example/")
				got := fmt.Sprint(res.Header["Set-Cookie"], res.Header["X-Frame-Options"], res.Header["X-Secret"])
				if got != "[session=1] [DENY] []" {
					t.Errorf("%s, %s: %d %s: %s", end, method, res.StatusCode, got, res.Header.Get("Cache-Status"))
				}
			}
			if end == "502" { // so that the panic has nothing to stand in for it
				time.Sleep(time.Hour)
			}
			for range 2 { // stored again
				was := end
				end = ""
				if res := ask(h, "GET", "http://a.example/"); res.Header["Set-Cookie"] != nil || res.Header.Get("X-Frame-Options") != "ALLOWALL" {
					t.Errorf("%s: another client gets %v", was, res.Header)
				}
				end = was
			}
		}
	})
}

// final takes interim answers for what they are, which a recorder does not.
type final struct{ http.ResponseWriter }

func (f final) WriteHeader(status int) {
	if status >= 200 {
		f.ResponseWriter.WriteHeader(status)
	}
}

// strict also removes a field of the handler's.
type strict struct{ lazy }

func (s *strict) WriteHeader(status int) {
	if !s.done {
		s.Header().Del("X-Secret")
	}
	s.lazy.WriteHeader(status)
}

func (s *strict) Write(b []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.lazy.Write(b)
}
