package httpcache_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// within is the part of a page that a handler got by requesting another page of the site.
func within(ctx context.Context, h http.Handler, url string) string {
	r := httptest.NewRequestWithContext(ctx, "GET", url, nil)
	r.Header.Set("X-Inside", "1")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// Handlers that request each other's missing pages do not wait in a circle: the request that would close the circle asks its handler.
func TestPagesThatShowEachOther(t *testing.T) {
	for name, x := range map[string]struct {
		shows  map[string]string // a page, and the page that it shows
		caches int               // each requests one page; negative: they share a prefix, and each requests any page
		calls  int               // of handlers: no page is made more often than necessary
	}{
		"two":                       {map[string]string{"/a": "/b", "/b": "/a"}, 1, 3},
		"three":                     {map[string]string{"/a": "/b", "/b": "/c", "/c": "/a"}, 1, 4},
		"two, by two caches":        {map[string]string{"/a": "/b", "/b": "/a"}, 2, 3},
		"two, by two of one prefix": {map[string]string{"/a": "/b", "/b": "/a"}, -2, 3},
		"two that show a third one": {map[string]string{"/a": "/c", "/b": "/c", "/c": ""}, 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, rdb *redis.Client) {
				var site http.Handler
				o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(time.Second)
					w.Header().Set("Cache-Control", "max-age=60")
					shown := x.shows[r.URL.Path]
					if shown != "" && r.Header.Get("X-Inside") == "" {
						shown = within(r.Context(), site, "http://a.example"+shown)
					}
					io.WriteString(w, r.URL.Path+" with "+shown)
				}}
				var hs []http.Handler
				n := max(x.caches, -x.caches)
				for i := range n {
					opt := options(t, rdb)
					if x.caches > 0 {
						opt.Namespace.Prefix += string(rune('a'+i)) + ":"
					}
					hs = append(hs, must(t)(opt.New()).Handler(o))
				}
				site = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					which := int(r.URL.Path[1])
					if x.caches < 0 && r.Header.Get("X-Inside") != "" {
						which++
					}
					hs[which%n].ServeHTTP(w, r)
				})
				begun := time.Now()
				var all sync.WaitGroup
				for page, shows := range x.shows {
					all.Go(func() {
						body, status := get(t, site, "http://a.example"+page)
						if want := page + " with " + shows; body[:min(len(want), len(body))] != want || time.Since(begun) > 4*time.Second {
							t.Errorf("%s after %v: %q, %s", page, time.Since(begun), body, status)
						}
					})
				}
				all.Wait()
				synctest.Wait()
				if n := o.called(); n != x.calls {
					t.Errorf("%d calls of handlers, want %d", n, x.calls)
				}
			})
		})
	}
}

// The request that closes a circle does not queue for its handler either: the one before it in the queue waits for its answer.
func TestACircleAndAQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.LoadLimit = 1
		var site http.Handler
		known := false
		site = opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			switch at := r.URL.Path; {
			case !known:
				w.Header().Set("Cache-Control", "private")
			case r.Header.Get("X-Inside") != "":
			case at == "/some/one":
				time.Sleep(2 * time.Second)
				io.WriteString(w, within(r.Context(), site, "http://a.example/for/all"))
			default:
				time.Sleep(time.Second)
				io.WriteString(w, within(r.Context(), site, "http://a.example/some/one"))
			}
			io.WriteString(w, r.URL.Path)
		}))
		get(t, site, "http://a.example/some/one") // which needs no turn from now on
		time.Sleep(11 * time.Second)
		known = true
		begun := time.Now()
		var all sync.WaitGroup
		for _, page := range []string{"/some/one", "/for/all"} {
			all.Go(func() {
				if body, status := get(t, site, "http://a.example"+page); !strings.HasSuffix(body, page) || time.Since(begun) > 2200*time.Millisecond {
					t.Errorf("%s after %v: %q, %s", page, time.Since(begun), body, status)
				}
			})
		}
		all.Wait()
	})
}
