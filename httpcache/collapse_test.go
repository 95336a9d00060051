package httpcache_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// workers is a database that runs four queries at once, in order, and finishes those without waiters too.
type workers chan struct{}

func (d workers) query(ctx context.Context) error {
	done := make(chan error, 2)
	go func() {
		d <- struct{}{}
		time.Sleep(20 * time.Millisecond)
		<-d
		done <- nil
	}()
	defer context.AfterFunc(ctx, func() { done <- ctx.Err() })()
	return <-done
}

// empty plays an empty Redis in front of a handler that can answer 200 requests a second and gets 800. It returns which share of the last
// second's requests was answered.
func empty(t *testing.T, limit, keys, seconds int, url string) (share float64) {
	synctest.Test(t, func(t *testing.T) {
		opt := options(t, redistest.Start(t).Client())
		opt.LoadLimit, opt.LoadTimeout = limit, 2*time.Second
		opt.SharedTimeout = 2 * time.Second
		d := make(workers, 4)
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
			defer cancel()
			if err := d.query(ctx); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Cache-Control", "max-age=3600")
			io.WriteString(w, "page")
		}))
		r := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		var asked, answered int
		var all sync.WaitGroup
		for begun := time.Now(); time.Since(begun) < time.Duration(seconds)*time.Second; time.Sleep(time.Second / 800) {
			last, key := time.Since(begun) >= time.Duration(seconds-1)*time.Second, r.IntN(keys)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprintf(url, key), nil).WithContext(ctx))
				mu.Lock()
				defer mu.Unlock()
				if last {
					if asked++; w.Code == 200 && ctx.Err() == nil {
						answered++
					}
				}
			})
		}
		all.Wait()
		time.Sleep(time.Hour)
		share = float64(answered) / float64(asked)
	})
	return share
}

// An empty Redis, 200 requests a second that the handler can answer, 800 that wait for half a second: without a limit it stays down.
func TestAnEmptyRedisDoesNotBringTheHandlerDown(t *testing.T) {
	keys, seconds := effort.Times(500, 2000), effort.Times(5, 14)
	for _, url := range []string{"http://a.example/items/%d", "http://a.example/items?id=%d", "http://a.example/%d/item"}[:effort.Times(1, 3)] {
		share := empty(t, 0, keys, seconds, url)
		t.Logf("%s: %.3f answered in the last second", url, share)
		if share < .99 {
			t.Errorf("%s: %.3f answered in the last second", url, share)
		}
	}
	if effort.Long() {
		if share := empty(t, -1, keys, seconds, "http://a.example/items/%d"); share > .5 {
			t.Errorf("without a limit %.3f are answered: the test shows nothing", share)
		}
	}
}
