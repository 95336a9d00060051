package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/redistest"
)

// What handlers around the cache set is theirs, also where the handler adds to it: it is not stored, and what was added is added again.
func TestWhatIsSetAroundTheCacheIsNotStored(t *testing.T) {
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
					time.Sleep(11 * time.Second) // it is validated then
				}
			}
		})
	}
}
