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
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// outages are ways in which Redis does not do a purge, each with its end.
var outages = map[string]func(srv *redistest.Server) (over func()){
	"hung":    func(srv *redistest.Server) func() { srv.Hang(); return srv.Thaw },
	"refuses": func(srv *redistest.Server) func() { srv.Refuse(true); srv.KillConnections(); return func() { srv.Refuse(false) } },
}

const failedURL = "http://shop.example/p/1"

// failedTargets are purges of the page at failedURL.
var failedTargets = map[string][]httpcache.Target{
	"URL":    {{URL: failedURL}},
	"Tag":    {{Tag: "p-1"}},
	"Group":  {{URL: "http://shop.example/", Group: "g-1"}},
	"Prefix": {{Prefix: "http://shop.example/p/"}},
	"all":    {{URL: "http://shop.example/other"}, {Tag: "other"}, {Prefix: "http://shop.example/p/"}},
}

// A purge that failed is done when Redis is back, and until then this process serves nothing that it would have removed.
func TestAPurgeThatFailsIsMadeUpFor(t *testing.T) {
	for outage, begin := range outages {
		for name, targets := range failedTargets {
			for _, local := range []bool{false, true} {
				for _, vary := range []string{"", "X-Color"} {
					t.Run(fmt.Sprintf("%s, %s, local tier %v, Vary %q", outage, name, local, vary), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							srv, opt, _ := impatient(t)
							if local {
								near := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: srv.Client(), Prefixes: []string{opt.Namespace.Prefix}, MaxBytes: 1 << 20}))
								defer near.Close(context.Background())
								opt.Namespace.Local = near
							}
							version := 1
							page := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
								set(w.Header(), []string{"Cache-Control: max-age=600", "Surrogate-Key: p-1 x", `Cache-Groups: "g-1"`})
								if vary != "" {
									w.Header().Set("Vary", vary)
								}
								fmt.Fprint(w, "v", version)
							}}
							c, other := opened(t, opt), opened(t, options(t, srv.Client()))
							h, theirs := c.Handler(page), other.Handler(page)
							for range 3 {
								get(t, h, failedURL, "X-Color: red")
							}
							over := begin(srv)
							version = 2
							begun := time.Now()
							err := c.Purge(t.Context(), targets...)
							if took := time.Since(begun); took > opt.RedisTimeout+10*time.Millisecond {
								t.Errorf("took %v", took)
							}
							if err == nil || !strings.Contains(err.Error(), "until then this process serves none of it") {
								t.Errorf("the error is %v", err)
							}
							fresh := func(when string) {
								t.Helper()
								if body, status := get(t, h, failedURL, "X-Color: red"); body != "v2" {
									t.Errorf("%s: %s: %s", when, body, status)
								}
							}
							fresh("at once")
							time.Sleep(3 * time.Second)
							fresh("later")
							over()
							fresh("when Redis is back")
							time.Sleep(5 * time.Second)
							synctest.Wait()
							fresh("then")
							if body, status := get(t, h, failedURL, "X-Color: red"); body != "v2" || !isHit(status) {
								t.Errorf("in the end: %s: %s", body, status)
							}
							if body, _ := get(t, theirs, failedURL, "X-Color: red"); body != "v2" {
								t.Errorf("another process: %s", body)
							}
							expect.OK(t, c.Close(context.Background()))
						})
					})
				}
			}
		}
	}
}
