package httpcache_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Frameworks whose handlers return errors answer after the handler has returned, on its writer or on their own.
func TestAnAnswerAfterTheHandlerHasReturned(t *testing.T) {
	for name, own := range map[string]bool{"on the handler's writer": false, "on their own": true} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			calls := 0
			var inner http.ResponseWriter
			cached := opened(t, options(t, rdb)).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				calls++
				w.Header().Set("Cache-Control", fresh)
				w.Header().Set("X-Inner", "1")
				inner = w
				if r.URL.Query().Has("found") {
					io.WriteString(w, "found")
				}
			}))
			site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inner = nil
				cached.ServeHTTP(w, r)
				if inner == nil || r.URL.Query().Has("found") {
					return
				}
				if own {
					inner = w
				}
				inner.Header().Set("Content-Type", "text/plain")
				inner.WriteHeader(http.StatusNotFound)
				io.WriteString(inner, "not found")
			})
			for n := range 3 {
				for _, method := range []string{"GET", "POST"} {
					res := ask(site, method, "http://a.example/")
					body, _ := io.ReadAll(res.Body)
					if res.StatusCode != http.StatusNotFound || string(body) != "not found" || res.Header.Get("X-Inner") != "1" {
						t.Errorf("%s: %s %d: %d %q %v", name, method, n, res.StatusCode, body, res.Header)
					}
				}
			}
			if calls != 6 {
				t.Errorf("%s: the handler was asked %d times", name, calls)
			}
			get(t, site, "http://a.example/?found")
			if body, status := get(t, site, "http://a.example/?found"); body != "found" || !isHit(status) {
				t.Errorf("%s: %q %s", name, body, status)
			}
			ask(site, "POST", "http://a.example/?found")
			ask(cached, "PUT", "http://a.example/") // without an answer it may have changed something all the same
			if _, status := get(t, site, "http://a.example/?found"); isHit(status) || strings.Contains(status, "hit") {
				t.Errorf("%s: a POST has not voided its URL: %s", name, status)
			}
		})
	}
}
