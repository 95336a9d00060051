package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// outages are ways in which Redis fails to do a purge, each with its end.
var outages = map[string]func(srv *redistest.Server) (over func()){
	"hung": func(srv *redistest.Server) func() { srv.Hang(); return srv.Thaw },
	"refuses": func(srv *redistest.Server) func() {
		srv.Refuse(true)
		srv.KillConnections()
		return func() { srv.Refuse(false) }
	},
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

// A purge that failed is repeated when Redis is back. Until then this process serves nothing that the purge would have removed.
func TestAFailedPurgeIsDoneLater(t *testing.T) {
	for outage, begin := range outages {
		for name, targets := range failedTargets {
			for vary, local := range map[string]bool{"": true, "X-Color": false} {
				{
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
							if err == nil || !strings.Contains(err.Error(), "until then this Cache serves none of it") {
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

// A load or a renewal that runs while a purge fails may store its answer later, but that answer is not served.
func TestALoadBesideAPurgeThatFails(t *testing.T) {
	for outage, begin := range outages {
		for name, targets := range failedTargets {
			for _, renewal := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					srv, opt, _ := impatient(t)
					opt.RenewBackground = true
					var version atomic.Int64
					page := slowPage(&version, "Cache-Control: max-age=60, stale-while-revalidate=600", "Surrogate-Key: p-1", `Cache-Groups: "g-1"`)
					c := opened(t, opt)
					h := c.Handler(page)
					if renewal {
						get(t, h, failedURL)
						time.Sleep(2 * time.Minute)
					}
					var all sync.WaitGroup
					all.Go(func() { get(t, h, failedURL) })
					time.Sleep(500 * time.Millisecond)
					over := begin(srv)
					version.Add(1)
					if c.Purge(t.Context(), targets...) == nil {
						t.Error("it did not fail")
					}
					over()
					for range 8 {
						time.Sleep(200 * time.Millisecond)
						if body, status := get(t, h, failedURL); body != "v1" {
							t.Errorf("%s, %s, renewal %v: %s: %s", outage, name, renewal, body, status)
						}
					}
					all.Wait()
				})
			}
		}
	}
}

// Groups that an answer invalidates are remembered too, and a closing cache still does what is left.
func TestCloseDoesWhatFailed(t *testing.T) {
	for name, void := range map[string]func(c *httpcache.Cache, h http.Handler){
		"an answer's groups": func(_ *httpcache.Cache, h http.Handler) {
			ask(h, "POST", "http://shop.example/change", `X-Voids: "g-1"`)
		},
		"a purge": func(c *httpcache.Cache, _ http.Handler) {
			if c.Purge(context.Background(), httpcache.Target{Tag: "p-1"}, httpcache.Target{Prefix: "http://shop.example/none"}) == nil {
				t.Error("it did not fail")
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			srv, opt, events := impatient(t)
			page := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
				set(w.Header(), []string{"Cache-Control: max-age=600", "Surrogate-Key: p-1", `Cache-Groups: "g-1"`})
				if r.Method == "POST" {
					w.Header().Set("Cache-Group-Invalidation", r.Header.Get("X-Voids"))
				}
			}}
			c, other := opened(t, opt), opened(t, options(t, srv.Client()))
			h, theirs := c.Handler(page), other.Handler(page)
			get(t, h, failedURL)
			rdb, key := srv.Client(), opt.Namespace.Prefix+"purges"
			rdb.Del(t.Context(), key)
			expect.OK(t, rdb.LPush(t.Context(), key, "not a version").Err())
			void(c, h)
			if _, status := get(t, h, failedURL); isHit(status) {
				t.Errorf("%s: it is served: %s", name, status)
			}
			rdb.Del(t.Context(), key)
			expect.OK(t, c.Close(t.Context()))
			if _, status := get(t, theirs, failedURL); isHit(status) {
				t.Errorf("%s: another process serves it after Close: %s", name, status)
			}
			if n := events.Count(mayfly.KindRemoval, mayfly.OutcomeDropped); n != 0 {
				t.Errorf("%s: %d are forgotten", name, n)
			}
		})
	}
}

// A failed purge without room to be remembered is forgotten, and the error and an event say so.
func TestMorePurgesFailThanAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, opt, events := impatient(t)
		opt.Unremoved = 5
		c := opened(t, opt)
		srv.Refuse(true)
		for i, want := range []string{"is repeated", "is repeated", "4 of its keys are not remembered, since Options.Unremoved (5) are already: purge again"} {
			err := c.Purge(t.Context(), []httpcache.Target{{Tag: "x"}, {URL: "http://a.example/"}, {URL: "http://b.example/"}}[i])
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d: %v", i, err)
			}
		}
		for _, e := range events.All() {
			if e.Kind == mayfly.KindRemoval && e.Outcome == mayfly.OutcomeDropped && e.N != 4 {
				t.Errorf("%+v", e)
			}
		}
		if n := events.Count(mayfly.KindRemoval, mayfly.OutcomeDropped); n != 1 {
			t.Errorf("%d events say that something is forgotten", n)
		}
		srv.Refuse(false)
		time.Sleep(2 * time.Second)
		expect.OK(t, c.Purge(t.Context(), httpcache.Target{Tag: "x"}))
	})
}

// A part of a query may stand anywhere in an equivalent query.
func TestAPurgeOfAQueryThatFails(t *testing.T) {
	for name, target := range map[string]httpcache.Target{"URL": {URL: "http://a.example/p?b=2&a=1"}, "Prefix": {Prefix: "http://a.example/p?b"}} {
		synctest.Test(t, func(t *testing.T) {
			srv, opt, _ := impatient(t)
			opt.NoVarySearch = true
			v := newVersions("Cache-Control: max-age=600", "No-Vary-Search: key-order")
			c := opened(t, opt)
			h := c.Handler(v)
			for range 2 {
				get(t, h, "http://a.example/p?a=1&b=2")
			}
			v.version++
			srv.FailNext("del", "ERR not now")
			if c.Purge(t.Context(), target) == nil {
				t.Error("it did not fail")
			}
			if body, status := get(t, h, "http://a.example/p?a=1&b=2"); body != "/p v1 " {
				t.Errorf("%s: %s, %s", name, body, status)
			}
			time.Sleep(3 * time.Second)
			for range 2 {
				if body, status := get(t, h, "http://a.example/p?a=1&b=2"); body != "/p v1 " {
					t.Errorf("%s: %s, %s", name, body, status)
				}
			}
		})
	}
}

// While Redis does not answer, concurrent requests share pages with tags as they share others, and the tags are not checked.
func TestTaggedPagesInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, opt, events := impatient(t)
		var version atomic.Int64
		page := slowPage(&version, "Cache-Control: max-age=600", "Surrogate-Key: p-1")
		h := opened(t, opt).Handler(page)
		srv.Hang()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() { get(t, h, failedURL) })
		}
		all.Wait()
		if n := page.called(); n != 1 {
			t.Errorf("the handler was asked %d times", n)
		}
		if n := events.Count(mayfly.KindFill, mayfly.OutcomeDropped); n != 0 {
			t.Errorf("%d events", n)
		}
		srv.Thaw()
	})
}

// Redis answers, but cannot tell which purges there were: one event for all pages says so.
func TestWhichPurgesThereWereIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, opt, events := impatient(t)
		client := redis.NewClient(srv.Options())
		defer client.Close()
		client.AddHook(reading{opt.Namespace.Prefix + "purges", func() { srv.Hang(); time.AfterFunc(time.Second, srv.Thaw) }})
		opt.Namespace.Redis = client
		h := opened(t, opt).Handler(says("page", "Cache-Control: max-age=600", "Surrogate-Key: p-1"))
		for i := range 3 {
			if _, status := get(t, h, fmt.Sprint(failedURL, i)); !strings.Contains(status, "detail=purges-unknown") {
				t.Error(status)
			}
			time.Sleep(2 * time.Second)
		}
		told := 0
		for _, e := range events.All() {
			if e.Kind == mayfly.KindFill && e.Outcome == mayfly.OutcomeDropped && strings.Contains(e.Err.Error(), "redis did not say") {
				told++
			}
		}
		if told != 1 {
			t.Errorf("it was told %d times", told)
		}
	})
}

// The same with real servers, one of which is stopped and continued: it then receives what was sent to it meanwhile.
func TestAPurgeOfAServerThatIsStopped(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (rdb redis.UniversalClient, owner func(key string) *realredis.Server){
		"single": func(t *testing.T) (redis.UniversalClient, func(string) *realredis.Server) {
			srv := realredis.Start(t, realredis.Options{})
			return srv.Client(), func(string) *realredis.Server { return srv }
		},
		"cluster": func(t *testing.T) (redis.UniversalClient, func(string) *realredis.Server) {
			cluster := realredis.StartCluster(t, 3, 0, realredis.Options{Config: []string{"cluster-node-timeout 60000"}})
			return cluster.Client(), cluster.Owner
		},
	} {
		t.Run(name, func(t *testing.T) {
			rdb, owner := start(t)
			for kind, targets := range failedTargets {
				opt := options(t, rdb)
				opt.RedisTimeout = 300 * time.Millisecond
				opt.Namespace.Prefix += kind + ":"
				page := newVersions("Cache-Control: max-age=600", "Surrogate-Key: p-1", `Cache-Groups: "g-1"`)
				c, other := must(t)(opt.New()), must(t)(opt.New())
				h, theirs := c.Handler(page), other.Handler(page)
				expect.Eventually(t, "a hit", func() bool { _, status := get(t, h, failedURL); return isHit(status) })
				stopped := map[string]string{
					"Tag":   opt.Namespace.Prefix + "tag p-1",
					"Group": opt.Namespace.Prefix + "purges",
				}[kind]
				if stopped == "" {
					stopped = opt.Namespace.Prefix + failedURL
				}
				srv := owner(stopped)
				srv.Pause()
				page.version++
				begun := time.Now()
				err := c.Purge(t.Context(), targets...)
				if took := time.Since(begun); err == nil || took > time.Second {
					t.Errorf("%s: after %v: %v", kind, took, err)
				}
				if body, status := get(t, h, failedURL); body != "/p/1 v1 " {
					t.Errorf("%s: while it is stopped: %s: %s", kind, body, status)
				}
				srv.Resume()
				expect.Eventually(t, "another process serves what is new", func() bool {
					if body, status := get(t, h, failedURL); body != "/p/1 v1 " {
						t.Errorf("%s: %s: %s", kind, body, status)
					}
					body, _ := get(t, theirs, failedURL)
					return body == "/p/1 v1 "
				})
				expect.Eventually(t, "a hit of what is new", func() bool {
					body, status := get(t, h, failedURL)
					return body == "/p/1 v1 " && isHit(status)
				})
			}
		})
	}
}
