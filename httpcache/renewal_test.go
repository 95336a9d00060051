package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// flushed is a client that notes when its answer was flushed.
type flushed struct {
	*httptest.ResponseRecorder
	at time.Time
}

func (f *flushed) Flush() { f.at = time.Now() }

type stateKey struct{}

// A router around the cache puts its state into the request's context, and reuses that state when the request is over.
func TestARenewalIsOnTheLiveRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		var events expect.Events
		opt := options(t, rdb)
		opt.Namespace.Observer = &events
		calls := 0
		cached := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if calls++; calls > 1 {
				time.Sleep(3 * time.Second)
			}
			if err := r.Context().Err(); err != nil {
				t.Errorf("call %d: %v", calls, err)
			}
			set(w.Header(), []string{"Cache-Control: max-age=10, stale-while-revalidate=60"})
			fmt.Fprintf(w, "user %s, version %d", *r.Context().Value(stateKey{}).(*string), calls)
		}))
		router := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id := strings.TrimPrefix(r.URL.Path, "/users/")
			cached.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), stateKey{}, &id)))
			id = "of another request"
		})
		get(t, router, "http://a.example/users/7")
		time.Sleep(20 * time.Second)

		ctx, leave := context.WithCancel(t.Context())
		client, begun := &flushed{ResponseRecorder: httptest.NewRecorder()}, time.Now()
		var all sync.WaitGroup
		all.Go(func() {
			router.ServeHTTP(client, httptest.NewRequestWithContext(ctx, "GET", "http://a.example/users/7", nil))
		})
		time.Sleep(time.Second)
		leave()
		for range 10 { // meanwhile other requests are served
			if body, status := get(t, router, "http://a.example/users/7"); body != "user 7, version 1" || !isHit(status) {
				t.Errorf("stale: %q, %s", body, status)
			}
		}
		if took := time.Since(begun); took > time.Second {
			t.Errorf("others waited until %v for the renewal", took)
		}
		all.Wait()
		if client.Body.String() != "user 7, version 1" || client.at.Sub(begun) > 0 {
			t.Errorf("the client got %q after %v", client.Body, client.at.Sub(begun))
		}
		synctest.Wait()
		if body, status := get(t, router, "http://a.example/users/7"); body != "user 7, version 2" || !isHit(status) || calls != 2 {
			t.Errorf("renewed: %q, %s, the handler was called %d times", body, status, calls)
		}
		if n := events.Count(mayfly.KindRefresh, mayfly.OutcomeOK); n != 1 {
			t.Errorf("%d renewals were told of", n)
		}
	})
}
