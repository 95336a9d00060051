package httppeers

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gorilla/mux"
	"github.com/julienschmidt/httprouter"
	"github.com/labstack/echo/v4"
)

// mount puts a cache and a router together, as docs/http.md says. The router serves GET /users/{id} by page, and GET /missing by its own way
// to fail, for which the handler has set a Cache-Control already.
type mount func(page func(w http.ResponseWriter, id string), cached func(http.Handler) http.Handler) http.Handler

var mounts = map[string]mount{
	"ServeMux, around": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return cached(serveMux(page, func(h http.Handler) http.Handler { return h }))
	},
	"ServeMux, a route": serveMux,
	"chi, around": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return cached(chiRouter(page))
	},
	"chi, Use": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return chiRouter(page, cached)
	},
	"chi, With": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		r := chi.NewRouter()
		r.With(cached).Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) { page(w, chi.URLParam(r, "id")) })
		return r
	},
	"gorilla, around": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return cached(gorillaRouter(page))
	},
	"gorilla, Use": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return gorillaRouter(page, cached)
	},
	"httprouter, around": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return cached(httpRouter(page, func(h http.Handler) http.Handler { return h }))
	},
	"httprouter, a route": httpRouter,
	"echo, around": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return cached(echoRouter(page))
	},
	"echo, Use": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return echoRouter(page, echo.WrapMiddleware(cached))
	},
	"gin, around": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return cached(ginRouter(page))
	},
	"gin, Use": func(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
		return ginRouter(page, ginMiddleware(cached))
	},
}

func serveMux(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
	m := http.NewServeMux()
	m.Handle("GET /users/{id}", cached(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { page(w, r.PathValue("id")) })))
	m.Handle("GET /missing", cached(http.HandlerFunc(missing)))
	return m
}

func missing(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=60")
	http.Error(w, "it is missing", http.StatusNotFound) // which takes the Cache-Control away
}

func chiRouter(page func(http.ResponseWriter, string), use ...func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(use...)
	r.Get("/users/{id}", func(w http.ResponseWriter, r *http.Request) { page(w, chi.URLParam(r, "id")) })
	return r
}

func gorillaRouter(page func(http.ResponseWriter, string), use ...func(http.Handler) http.Handler) http.Handler {
	r := mux.NewRouter()
	for _, m := range use {
		r.Use(m)
	}
	r.HandleFunc("/users/{id}", func(w http.ResponseWriter, r *http.Request) { page(w, mux.Vars(r)["id"]) })
	return r
}

func httpRouter(page func(http.ResponseWriter, string), cached func(http.Handler) http.Handler) http.Handler {
	r := httprouter.New()
	r.Handler("GET", "/users/:id", cached(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page(w, httprouter.ParamsFromContext(r.Context()).ByName("id"))
	})))
	return r
}

func echoRouter(page func(http.ResponseWriter, string), use ...echo.MiddlewareFunc) http.Handler {
	e := echo.New()
	e.Use(use...)
	e.GET("/users/:id", func(c echo.Context) error {
		page(c.Response(), c.Param("id"))
		return nil
	})
	e.GET("/missing", func(c echo.Context) error {
		c.Response().Header().Set("Cache-Control", "max-age=60")
		return echo.NewHTTPError(http.StatusNotFound, "it is missing")
	})
	return e
}

func ginRouter(page func(http.ResponseWriter, string), use ...gin.HandlerFunc) http.Handler {
	r := newGin()
	r.Use(use...)
	r.GET("/users/:id", func(c *gin.Context) { page(c.Writer, c.Param("id")) })
	r.GET("/missing", func(c *gin.Context) {
		c.Header("Cache-Control", "max-age=60")
		c.AbortWithStatus(http.StatusNotFound)
	})
	return r
}

// ginMiddleware is a middleware of net/http as one of gin: the handlers after it write to the writer that it gives them.
func ginMiddleware(m func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		request, writer := c.Request, c.Writer
		defer func() { c.Request, c.Writer = request, writer }()
		m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c.Request, c.Writer = r, &ginWriter{ResponseWriter: writer, w: w, size: -1, status: http.StatusOK}
			c.Next()
			c.Writer.WriteHeaderNow()
		})).ServeHTTP(writer, request)
		c.Abort() // whoever comes after has run, or is not to
	}
}

// ginWriter is a writer as gin's handlers know it.
type ginWriter struct {
	gin.ResponseWriter
	w            http.ResponseWriter
	status, size int
}

func (g *ginWriter) Unwrap() http.ResponseWriter { return g.w }
func (g *ginWriter) Header() http.Header         { return g.w.Header() }
func (g *ginWriter) Status() int                 { return g.status }
func (g *ginWriter) Size() int                   { return g.size }
func (g *ginWriter) Written() bool               { return g.size >= 0 }
func (g *ginWriter) WriteHeader(status int) {
	if status > 0 && !g.Written() {
		g.status = status
	}
}
func (g *ginWriter) WriteHeaderNow() {
	if !g.Written() {
		g.size = 0
		g.w.WriteHeader(g.status)
	}
}
func (g *ginWriter) Write(b []byte) (int, error) {
	g.WriteHeaderNow()
	n, err := g.w.Write(b)
	g.size += n
	return n, err
}
func (g *ginWriter) WriteString(s string) (int, error) { return g.Write([]byte(s)) }
func (g *ginWriter) Flush() {
	g.WriteHeaderNow()
	http.NewResponseController(g.w).Flush()
}
func (g *ginWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(g.w).Hijack()
}

// Each recipe serves each page under its own URL, also after it was renewed, on the live request, through the router or, around it, in the
// background.
func TestRecipes(t *testing.T) {
	for name, mount := range mounts {
		for _, renew := range []string{"live", "through", "behind"} {
			if renew == "behind" && !strings.HasSuffix(name, "around") {
				continue
			}
			t.Run(name+", renewed "+renew, func(t *testing.T) {
				var made atomic.Int64
				var site http.Handler
				page := func(w http.ResponseWriter, id string) {
					w.Header().Set("Cache-Control", "max-age=0, stale-while-revalidate=60")
					fmt.Fprintf(w, "user %s, %d", id, made.Add(1))
				}
				site = mount(page, newCache(t, func(o *setup) {
					o.RenewBackground = renew == "behind"
					if renew == "through" {
						o.Renew = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { site.ServeHTTP(w, r) })
					}
				}).Handler)
				srv := httptest.NewServer(site)
				defer srv.Close()
				first, renewed := map[string]string{}, map[string]bool{}
				for n, end := 0, time.Now().Add(20*time.Second); len(renewed) < 3 && time.Now().Before(end) || n < 5; n++ {
					for _, id := range []string{"ada", "bob", "eve"} {
						body, res := get(t, srv.URL+"/users/"+id)
						if !strings.HasPrefix(body, "user "+id+", ") || n > 0 && !strings.Contains(res.Header.Get("Cache-Status"), "; hit") {
							t.Fatalf("%d: %s got %q %v", n, id, body, res.Header)
						}
						if n == 0 {
							first[id] = body
						}
						renewed[id] = renewed[id] || body != first[id]
						if !renewed[id] {
							delete(renewed, id)
						}
					}
				}
				if len(renewed) < 3 {
					t.Errorf("renewed are only %v", renewed)
				}
				for range 2 {
					if body, res := get(t, srv.URL+"/missing"); res.StatusCode != 404 {
						t.Errorf("what is missing: %d %q %v", res.StatusCode, body, res.Header)
					}
				}
			})
		}
	}
}

// Routers whose only handler is h, behind a cache that is their middleware.

func chiAll(h http.Handler, cached func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.Use(cached)
	r.Handle("/*", h)
	return r
}

func gorillaAll(h http.Handler, cached func(http.Handler) http.Handler) http.Handler {
	r := mux.NewRouter()
	r.Use(cached)
	r.PathPrefix("/").Handler(h)
	return r
}

func echoAll(h http.Handler, cached func(http.Handler) http.Handler) http.Handler {
	e := echo.New()
	e.Use(echo.WrapMiddleware(cached))
	e.Any("/*", echo.WrapHandler(h))
	return e
}

func ginAll(h http.Handler, cached func(http.Handler) http.Handler) http.Handler {
	r := newGin()
	r.Use(ginMiddleware(cached))
	r.Any("/*any", gin.WrapH(h))
	return r
}
