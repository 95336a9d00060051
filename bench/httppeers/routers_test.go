// Package httppeers holds tests of httpcache beside routers and frameworks that the library itself must not depend on.
package httppeers

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/redistest"
)

// site is what each router serves: a page by its name, which says how often it was made.
type site struct{ made atomic.Int64 }

func (s *site) page(w http.ResponseWriter, name string) {
	w.Header().Set("Cache-Control", "max-age=60")
	fmt.Fprintf(w, "%s %d", name, s.made.Add(1))
}

// routers are the ways to put a cache and a router together.
var routers = []struct {
	name  string
	stage func(s *site, cached func(http.Handler) http.Handler) http.Handler
}{
	{"net/http, outside", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc("GET /page/{name}", func(w http.ResponseWriter, r *http.Request) { s.page(w, r.PathValue("name")) })
		return cached(mux)
	}},
	{"net/http, inside", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("GET /page/{name}", cached(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.page(w, r.PathValue("name")) })))
		return mux
	}},
	{"chi, outside", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		r := chi.NewRouter()
		r.Get("/page/{name}", func(w http.ResponseWriter, r *http.Request) { s.page(w, chi.URLParam(r, "name")) })
		return cached(r)
	}},
	{"chi, as its middleware", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.RequestID, middleware.Recoverer, cached, middleware.GetHead)
		r.Get("/page/{name}", func(w http.ResponseWriter, r *http.Request) { s.page(w, chi.URLParam(r, "name")) })
		return r
	}},
	{"chi, with compression before it", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		r := chi.NewRouter()
		r.Use(middleware.Compress(5), cached)
		r.Get("/page/{name}", func(w http.ResponseWriter, r *http.Request) { s.page(w, chi.URLParam(r, "name")) })
		return r
	}},
	{"chi, one route", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		r := chi.NewRouter()
		r.With(cached).Get("/page/{name}", func(w http.ResponseWriter, r *http.Request) { s.page(w, chi.URLParam(r, "name")) })
		return r
	}},
	{"gin, outside", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		r := newGin()
		r.GET("/page/:name", func(c *gin.Context) { s.page(c.Writer, c.Param("name")) })
		return cached(r)
	}},
	{"gin, one route", func(s *site, cached func(http.Handler) http.Handler) http.Handler {
		r := newGin()
		r.GET("/page/:name", gin.WrapH(cached(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.page(w, strings.TrimPrefix(r.URL.Path, "/page/"))
		}))))
		return r
	}},
}

func newGin() *gin.Engine {
	gin.SetMode(gin.TestMode)
	return gin.New()
}

// setup is what a cache is made from.
type setup struct {
	Namespace mayfly.Namespace[string, []byte]
	httpcache.Options
}

func newCache(t *testing.T, change func(*setup)) *httpcache.Cache {
	o := setup{
		Namespace: mayfly.Namespace[string, []byte]{Name: "pages", Redis: redistest.Start(t).Client(), Prefix: "web:", TTL: time.Hour},
		Options:   httpcache.Options{RedisTimeout: 10 * time.Second},
	}
	if change != nil {
		change(&o)
	}
	cache := mayfly.Must(httpcache.New(o.Namespace, o.Options))
	t.Cleanup(func() { cache.Close(context.Background()) })
	return cache
}

func get(t *testing.T, url string, header ...string) (body string, res *http.Response) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	if res, err = http.DefaultClient.Do(r); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), res
}

func TestRouters(t *testing.T) {
	for _, x := range routers {
		t.Run(x.name, func(t *testing.T) {
			s := &site{}
			srv := httptest.NewServer(x.stage(s, newCache(t, nil).Handler))
			defer srv.Close()
			for _, want := range []struct{ path, body, how string }{
				{"/page/a", "a 1", "mayfly; fwd=uri-miss"},
				{"/page/a", "a 1", "mayfly; hit"},
				{"/page/b", "b 2", "mayfly; fwd=uri-miss"},
				{"/page/a", "a 1", "mayfly; hit"},
			} {
				body, res := get(t, srv.URL+want.path)
				if how := res.Header.Get("Cache-Status"); body != want.body || !strings.HasPrefix(how, want.how) {
					t.Errorf("%s: %q %q, want %+v", want.path, body, how, want)
				}
			}
			if _, res := get(t, srv.URL+"/nowhere"); res.StatusCode != 404 {
				t.Errorf("nowhere: %d", res.StatusCode)
			}
		})
	}
}

// What a router puts into a request's context is another request's when it is over. Wherever the cache is, what it renews is of the same
// page.
func TestRenewalInsideARouter(t *testing.T) {
	for name, stage := range map[string]func(page http.HandlerFunc, cached func(http.Handler) http.Handler) http.Handler{
		"chi, outside": func(page http.HandlerFunc, cached func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Get("/users/{name}", page)
			return cached(r)
		},
		"chi, Use": func(page http.HandlerFunc, cached func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Use(cached)
			r.Get("/users/{name}", page)
			return r
		},
		"chi, With": func(page http.HandlerFunc, cached func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.With(cached).Get("/users/{name}", page)
			return r
		},
		"chi, Group": func(page http.HandlerFunc, cached func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Group(func(r chi.Router) {
				r.Use(cached)
				r.Get("/users/{name}", page)
			})
			return r
		},
		"chi, Route": func(page http.HandlerFunc, cached func(http.Handler) http.Handler) http.Handler {
			r := chi.NewRouter()
			r.Route("/users", func(r chi.Router) {
				r.Use(cached)
				r.Get("/{name}", page)
			})
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int64
			page := func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=0, stale-while-revalidate=60")
				fmt.Fprintf(w, "%s %d", chi.URLParam(r, "name"), made.Add(1))
			}
			srv := httptest.NewServer(stage(page, newCache(t, nil).Handler))
			defer srv.Close()
			if body, _ := get(t, srv.URL+"/users/a"); body != "a 1" {
				t.Errorf("first %q", body)
			}
			for n := 1; n < 20; n++ {
				body, res := get(t, srv.URL+"/users/a")
				if !strings.HasPrefix(res.Header.Get("Cache-Status"), "mayfly; hit") || !strings.HasPrefix(body, "a ") {
					t.Errorf("%q %v", body, res.Header)
				}
				if n == 10 && body == "a 1" {
					t.Error("never renewed")
				}
			}
		})
	}
}

// gin's own ways to stream ask of the writer what net/http's has: Flush and CloseNotify.
func TestGinStreams(t *testing.T) {
	next := make(chan string)
	r := newGin()
	r.GET("/events", func(c *gin.Context) {
		c.Stream(func(w io.Writer) bool {
			text, ok := <-next
			if ok {
				c.SSEvent("message", text)
			}
			return ok
		})
	})
	srv := httptest.NewServer(newCache(t, nil).Handler(r))
	defer srv.Close()
	go func() { next <- "one" }()
	res, err := http.Get(srv.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	buf := make([]byte, 100)
	n, err := res.Body.Read(buf)
	if got := string(buf[:n]); err != nil || !strings.Contains(got, "one") {
		t.Errorf("the first event: %q, %v", got, err)
	}
	close(next)
	io.Copy(io.Discard, res.Body)
}
