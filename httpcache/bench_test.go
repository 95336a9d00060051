package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// discard is a writer that costs nothing, so that only the cache is measured.
type discard struct {
	header http.Header
	n      int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { d.n += len(b); return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// page is 10 KiB of HTML with a typical header.
var page = []byte(strings.Repeat("<p>some text</p>", 640))

func servePage(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", fmt.Sprint(len(page)))
	h.Set("Cache-Control", "public, max-age=3600")
	h.Set("Etag", `"5f3a-1"`)
	h.Set("Last-Modified", "Sat, 21 Nov 2026 09:00:00 GMT")
	if strings.HasPrefix(r.URL.Path, "/vary") {
		h.Set("Vary", "Accept-Encoding")
	}
	if strings.HasPrefix(r.URL.Path, "/tag") {
		h.Set("Cache-Tag", "page")
	}
	w.Write(page)
}

// withLocal is a page cache with a local tier that has the page of path in it.
func withLocal(tb testing.TB, path string) (http.Handler, *http.Request) {
	rdb := redistest.Start(tb).Client()
	opt := options(tb, rdb)
	local, err := mayfly.OpenLocal(tb.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{opt.Namespace.Prefix}, MaxBytes: 1 << 20})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { local.Close(context.Background()) })
	opt.Namespace.Local = local
	cache := must(tb)(opt.New())
	h := cache.Handler(http.HandlerFunc(servePage))
	r := httptest.NewRequest("GET", "http://a.example"+path, nil)
	set(r.Header, []string{"User-Agent: Mozilla/5.0", "Accept: text/html,*/*;q=0.8", "Accept-Encoding: gzip, deflate, br", "Accept-Language: en-US,en;q=0.5"})
	for end := time.Now().Add(20 * time.Second); cache.Stats().Local == 0; {
		h.ServeHTTP(&discard{header: make(http.Header)}, r)
		if time.Now().After(end) {
			tb.Fatal("no local hit")
		}
	}
	return h, r
}

// A local hit allocates six times at most. The map of the header is net/http's.
func TestAllocationsOfALocalHit(t *testing.T) {
	for path, most := range map[string]float64{"/": 4, "/vary": 6, "/tag": 4} {
		h, r := withLocal(t, path)
		w := &discard{header: make(http.Header)}
		if n := testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }); n > most {
			t.Errorf("%s: %v allocations, want %v", path, n, most)
		}
	}
}

func tuned(tb testing.TB) *redis.Client {
	o := realredis.Start(tb, realredis.Options{}).Options()
	o.ContextTimeoutEnabled = true
	rdb := redis.NewClient(o)
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

func BenchmarkHit(b *testing.B) {
	for _, path := range []string{"/", "/vary", "/tag"} {
		b.Run("local"+path, func(b *testing.B) {
			h, r := withLocal(b, path)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(&discard{header: make(http.Header)}, r)
			}
		})
	}
	b.Run("redis", func(b *testing.B) {
		rdb := tuned(b)
		h := must(b)(options(b, rdb).New()).Handler(http.HandlerFunc(servePage))
		r := httptest.NewRequest("GET", "http://a.example/", nil)
		h.ServeHTTP(&discard{header: make(http.Header)}, r)
		b.ReportAllocs()
		for b.Loop() {
			h.ServeHTTP(&discard{header: make(http.Header)}, r)
		}
	})
	b.Run("go-redis", func(b *testing.B) {
		rdb := tuned(b)
		rdb.Set(b.Context(), "page", page, time.Hour)
		b.ReportAllocs()
		for b.Loop() {
			w := &discard{header: make(http.Header)}
			body, err := rdb.Get(b.Context(), "page").Bytes()
			if err != nil {
				b.Fatal(err)
			}
			w.Write(body)
		}
	})
	b.Run("handler", func(b *testing.B) {
		r := httptest.NewRequest("GET", "http://a.example/", nil)
		b.ReportAllocs()
		for b.Loop() {
			servePage(&discard{header: make(http.Header)}, r)
		}
	})
}

// counting is an observer that counts local hits, as that of metrics does.
type counting struct {
	expect.Events
	hits func() uint64
}

func (c *counting) ObserveLocal(_ string, hits func() uint64) { c.hits = hits }

// A local hit counts once, however many copies it reads: the index, the variant, the versions of its tags.
func TestLocalHitsAreTold(t *testing.T) {
	rdb, o := redistest.Start(t).Client(), &counting{}
	opt := options(t, rdb)
	local := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{opt.Namespace.Prefix}, MaxBytes: 1 << 20}))
	defer local.Close(context.Background())
	opt.Namespace.Local, opt.Namespace.Observer = local, o
	cache := must(t)(opt.New())
	h := cache.Handler(http.HandlerFunc(servePage))
	r := httptest.NewRequest("GET", "http://a.example/vary", nil)
	expect.Eventually(t, "a local hit", func() bool {
		h.ServeHTTP(&discard{header: make(http.Header)}, r)
		return cache.Stats().Local > 0
	})
	if got := o.hits(); got != cache.Stats().Local {
		t.Errorf("%d hits were told, %d there were", got, cache.Stats().Local)
	}
}
