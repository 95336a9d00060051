package httpcache_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// A request whose deadline passes while it waits for another's answer gets a stale answer, where that may stand in, or a 503, and not an
// empty 200. A request whose client has left gets nothing.
func TestADeadlineThatEndsInAWait(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		slow := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Second)
			w.Header().Set("Cache-Control", "max-age=10")
			io.WriteString(w, "page")
		}}
		one, other := opened(t, options(t, rdb)).Handler(slow), opened(t, options(t, rdb)).Handler(slow)
		go ask(one, "GET", "http://a.example/")
		time.Sleep(time.Second)
		for who, h := range map[string]http.Handler{"of this process": one, "of another": other} {
			within, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(within, "GET", "http://a.example/", nil))
			cancel()
			if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || w.Header().Get("Cache-Control") != "no-store" ||
				!strings.Contains(w.Header().Get("Cache-Status"), "detail=deadline") {
				t.Errorf("waits for a request %s: %d %v", who, w.Code, w.Header())
			}
			gone, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			w = httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(gone, "GET", "http://a.example/", nil))
			if w.Body.Len() > 0 {
				t.Errorf("a client that has left gets %q", w.Body)
			}
		}
		time.Sleep(5 * time.Second) // it is stored
		synctest.Wait()
	})
}

// A stale answer that may stand in for a failing handler is used.
func TestADeadlineThatEndsInAWaitIsAnsweredStale(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		slow := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3 * time.Second)
			w.Header().Set("Cache-Control", "max-age=10, stale-if-error=600")
			io.WriteString(w, "page")
		}}
		h := opened(t, options(t, rdb)).Handler(slow)
		ask(h, "GET", "http://a.example/")
		time.Sleep(20 * time.Second)
		go ask(h, "GET", "http://a.example/")
		time.Sleep(time.Second)
		within, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(within, "GET", "http://a.example/", nil))
		if w.Body.String() != "page" || !strings.Contains(w.Header().Get("Cache-Status"), "detail=deadline") {
			t.Errorf("%q, %v", w.Body, w.Header())
		}
		time.Sleep(5 * time.Second) // it is stored
		synctest.Wait()
	})
}
