package httpcache_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/httpcache"
)

// searched is a handler that answers with the query that it got, and declares by the parameter "rule" which parts of a query count.
func searched(rule string, header ...string) *origin {
	return &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			set(w.Header(), append(header, "Cache-Control: "+fresh))
			if rule != "" {
				w.Header().Set("No-Vary-Search", rule)
			}
		}
		fmt.Fprint(w, r.URL.RawQuery)
	}}
}

// searching runs a test with the option on.
func searching(t *testing.T, test func(t *testing.T, opt setup)) {
	localOrNot(t, func(t *testing.T, opt setup) {
		opt.NoVarySearch = true
		test(t, opt)
	})
}

const shopPath = "http://a.example/shop"

// A request with another query gets the stored answer if that declares that the difference does not count.
func TestNoVarySearch(t *testing.T) {
	for name, x := range map[string]struct {
		rule    string
		queries []string // in the order of the requests
		hits    string   // which of them hit the answer that the latest miss stored
	}{
		"key order":              {`key-order`, []string{"?a=1&b=2", "?b=2&a=1", "?b=1&a=2", "?a=%31&b=2&&", "?a=1"}, "-h-h-"},
		"some":                   {`params=("utm" "ref")`, []string{"?id=1&utm=x", "?id=1&utm=y", "?ref=1&id=1", "?id=1", "?id=2&utm=x", "?id=2"}, "-hhh-h"},
		"none but some":          {`params, except=("id")`, []string{"?id=1&a=1", "?id=1&b=1", "?id=2", "?c&id=2", "", "?x"}, "-h-h-h"},
		"none":                   {`params`, []string{"", "?a", "?b=1&c=2", "?"}, "-hhh"},
		"what is decoded":        {`params=("%C3%A9+%E6%B0%97")`, []string{"?%C3%A9+%E6%B0%97=4", "?%C3%A9%20%E6%B0%97=3", "?"}, "-hh"},
		"long queries":           {`params=("utm")`, []string{"?utm=1&id=" + strings.Repeat("x", 300), "?id=" + strings.Repeat("x", 300), "?id=" + strings.Repeat("x", 301)}, "-h-"},
		"a semicolon":            {`params=("utm")`, []string{"?a=1&utm=1", "?a=1&utm=1;callback=evil", "?utm=1;callback=evil&a=1", "?a=1&utm=2"}, "---h"},
		"says nothing":           {``, []string{"?a=1&b=2", "?b=2&a=1", "?a=1&b=2"}, "--h"},
		"says that all counts":   {`params=()`, []string{"?a=1&b=2", "?b=2&a=1", "?a=1&b=2"}, "--h"},
		"malformed":              {`params=("utm`, []string{"?utm=1", "?utm=2", "?utm=1"}, "--h"},
		"what the draft forbids": {`params=("utm"), except=("id")`, []string{"?utm=1", "?utm=2", "?utm=1"}, "--h"},
		"far too long":           {`params=("utm" "` + strings.Repeat("x", 5000) + `")`, []string{"?utm=1", "?utm=2", "?utm=1"}, "--h"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, header := range [][]string{nil, {"Vary: X-Color"}, {"Cache-Tag: shop"}} {
				searching(t, func(t *testing.T, opt setup) {
					o := searched(x.rule, header...)
					h := opened(t, opt).Handler(o)
					hits := ""
					for _, query := range x.queries {
						if _, status := get(t, h, shopPath+query, "X-Color: red"); isHit(status) {
							hits += "h"
						} else {
							hits += "-"
						}
						synctest.Wait() // local copies learn of the change
					}
					if hits != x.hits {
						t.Errorf("%v: %s, want %s", header, hits, x.hits)
					}
				})
			}
		})
	}
}

// Without the option, any difference counts.
func TestNoVarySearchIsAnOption(t *testing.T) {
	localOrNot(t, func(t *testing.T, opt setup) {
		h := opened(t, opt).Handler(searched(`params`))
		get(t, h, shopPath+"?a=1")
		if body, status := get(t, h, shopPath+"?a=2"); isHit(status) || body != "a=2" {
			t.Errorf("%q, %q", body, status)
		}
	})
}

// When a URL is purged or changed, the stored answers of all equivalent URLs go, and nothing else.
func TestPurgesOfEquivalentQueries(t *testing.T) {
	for name, void := range map[string]func(c *httpcache.Cache, h http.Handler) error{
		"by URL": func(c *httpcache.Cache, h http.Handler) error {
			return c.Purge(context.Background(), httpcache.Target{URL: shopPath + "?b=2&a=1&utm=9"})
		},
		"by the other scheme": func(c *httpcache.Cache, h http.Handler) error {
			return c.Purge(context.Background(), httpcache.Target{URL: "https://a.example/shop?b=2&a=1"})
		},
		"by a part of the query": func(c *httpcache.Cache, h http.Handler) error {
			return c.Purge(context.Background(), httpcache.Target{Prefix: shopPath + "?b=2"})
		},
		"by a prefix of the path": func(c *httpcache.Cache, h http.Handler) error {
			return c.Purge(context.Background(), httpcache.Target{Prefix: "http://a.example/sh"})
		},
		"by a change": func(c *httpcache.Cache, h http.Handler) error { return changed(h, shopPath+"?b=2&utm=7&a=1") },
		"by a Location": func(c *httpcache.Cache, h http.Handler) error {
			return changed(h, "http://a.example/other", "X-Location: /shop?b=2&utm=7&a=1")
		},
		"by a tag": func(c *httpcache.Cache, h http.Handler) error {
			return c.Purge(context.Background(), httpcache.Target{Tag: "first"})
		},
		"by a group": func(c *httpcache.Cache, h http.Handler) error {
			return c.Purge(context.Background(), httpcache.Target{URL: "http://a.example/", Group: "of the first"})
		},
		"by a change of a group": func(c *httpcache.Cache, h http.Handler) error {
			return changed(h, "http://a.example/other?utm=3", `X-Voids: "of the first"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			searching(t, func(t *testing.T, opt setup) {
				c := opened(t, opt)
				h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if voids := r.Header.Get("X-Voids"); voids != "" {
						w.Header().Set("Cache-Group-Invalidation", voids)
					}
					if at := r.Header.Get("X-Location"); at != "" {
						w.Header().Set("Location", at)
					}
					if r.Method == http.MethodGet {
						set(w.Header(), []string{"Cache-Control: " + fresh, `No-Vary-Search: key-order, params=("utm")`, "Vary: " + r.Header.Get("X-Vary")})
						if r.URL.Query().Get("a") == "1" {
							set(w.Header(), []string{"Cache-Tag: first", `Cache-Groups: "of the first"`})
						}
					}
					fmt.Fprint(w, r.URL.RawQuery)
				}))
				colors := []string{"X-Color: red", "X-Color: blue"}
				for n, vary := range []string{"X-Vary: ", "X-Vary: X-Color"} {
					for range 2 {
						for _, color := range colors {
							get(t, h, shopPath+"?a=1&b=2&utm=0", vary, color)
							get(t, h, shopPath+"?a=2&b=2&utm=0", vary, color)
							synctest.Wait()
						}
					}
					if _, status := get(t, h, shopPath+"?utm=5&a=1&b=2", vary, colors[0]); !isHit(status) {
						t.Errorf("%s: before: %q", vary, status)
					}
					if err := void(c, h); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					for _, color := range colors[:n+1] { // without Vary, both get the same
						_, other := get(t, h, shopPath+"?b=2&a=2", vary, color)
						if _, status := get(t, h, shopPath+"?a=1&b=2&utm=1", vary, color); isHit(status) || isHit(other) == strings.Contains(name, "pa") {
							t.Errorf("%s, %s: what was voided is %q, another is %q", vary, color, status, other)
						}
						synctest.Wait()
					}
					if err := c.Purge(context.Background(), httpcache.Target{Prefix: "http://a.example/"}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
			})
		})
	}
}

func changed(h http.Handler, url string, header ...string) error {
	if res := ask(h, "POST", url, header...); res.StatusCode > 299 {
		return errors.New(res.Status)
	}
	return nil
}

// An answer that the handler began before the purge of a URL that turns out to be equivalent is not stored, whatever rule is known by then.
func TestPurgesWhileARuleIsLearnt(t *testing.T) {
	for _, before := range []string{"nothing is known", "another query was asked", "there is a rule"} {
		for _, purged := range []string{"?utm=2&a=1", "?a=1", "?a=1&utm=1"} {
			searching(t, func(t *testing.T, opt setup) {
				c := opened(t, opt)
				version, began := 1, make(chan struct{}, 9)
				var mu sync.Mutex
				h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					mu.Lock()
					v := version
					mu.Unlock()
					began <- struct{}{}
					time.Sleep(time.Second)
					if before != "another query was asked" || r.URL.RawQuery != "z" {
						w.Header().Set("No-Vary-Search", `params=("utm")`)
					}
					w.Header().Set("Cache-Control", fresh)
					fmt.Fprint(w, v)
				}))
				if before != "nothing is known" {
					get(t, h, shopPath+"?z")
					<-began
				}
				var all sync.WaitGroup
				all.Go(func() { get(t, h, shopPath+"?a=1&utm=1") })
				<-began
				mu.Lock()
				version = 2
				mu.Unlock()
				if err := c.Purge(context.Background(), httpcache.Target{URL: shopPath + purged}); err != nil {
					t.Fatal(err)
				}
				for _, query := range []string{"?a=1&utm=3", "?a=1"} {
					all.Go(func() {
						if body, status := get(t, h, shopPath+query); body != "2" {
							t.Errorf("%s: after a purge of %s %s got version %s: %s", before, purged, query, body, status)
						}
					})
				}
				all.Wait()
				for _, query := range []string{"?a=1&utm=3", "?a=1"} {
					if body, status := get(t, h, shopPath+query); body != "2" {
						t.Errorf("%s: some time after a purge of %s %s got version %s: %s", before, purged, query, body, status)
					}
				}
			})
		}
	}
}

// Concurrent requests that are equivalent by the rule call the handler once, and no request waits for an answer that it cannot use.
func TestNoVarySearchTogether(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		opt.LoadLimit, opt.SharedPass = -1, time.Hour
		rule := `params=("utm")`
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=5", "No-Vary-Search: " + rule})
			time.Sleep(time.Second)
			fmt.Fprint(w, r.URL.RawQuery)
		}}
		h := opened(t, opt).Handler(o)
		crowd := func(calls int) {
			t.Helper()
			var all sync.WaitGroup
			was, begun := o.called(), time.Now()
			for i := range 20 {
				all.Go(func() {
					id := fmt.Sprint(i%2 + was)
					query := fmt.Sprintf("id=%s&utm=%d", id, i)
					body, status := get(t, h, shopPath+"?"+query)
					if got, _ := url.ParseQuery(body); got.Get("id") != id || rule == "" && body != query {
						t.Errorf("%s got %s: %s", query, body, status)
					}
				})
			}
			all.Wait()
			if n := o.called() - was; n != calls || time.Since(begun) > 3*time.Second { // a request that came too late for one answer waits for the next
				t.Errorf("%d calls of the handler, want %d, in %v", n, calls, time.Since(begun))
			}
			time.Sleep(6 * time.Second)
		}
		get(t, h, shopPath+"?id=0") // which learns the rule
		time.Sleep(6 * time.Second)
		crowd(2)
		rule = "" // the handler has changed its mind: answers that cannot be shared are not served to others, and they wait once
		crowd(20)
		rule = `params=("tag")` // or declares another rule than the one that led there
		crowd(20)
	})
}

// A mounted handler sees another path and the client's query: parameters that it declares irrelevant do not count.
func TestNoVarySearchInAMount(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		c := opened(t, opt)
		o := searched(`params=("utm")`)
		one, other := http.StripPrefix("/a", c.Handler(o)), http.StripPrefix("/a", c.Handler(searched(`params=("utm")`)))
		for i, x := range []struct {
			h     http.Handler
			query string
			calls int
		}{{one, "?utm=1", 1}, {one, "?utm=2", 1}, {other, "?utm=3", 1}, {one, "?id=1", 2}} {
			if get(t, x.h, "http://a.example/a/x"+x.query); o.called() != x.calls {
				t.Errorf("%d: %d calls, want %d", i, o.called(), x.calls)
			}
			synctest.Wait()
		}
		cuts := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.RawQuery = ""
			c.Handler(o).ServeHTTP(w, r)
		})
		if body, status := get(t, cuts, "http://a.example/a/x?utm=2"); isHit(status) {
			t.Errorf("a handler that sees no query: %q: %q", body, status)
		}
	})
}

// Differences that DropQuery and SortQuery remove do not count even before an answer declares anything.
func TestNoVarySearchAndDropQuery(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		opt.DropQuery, opt.SortQuery = []string{"fb_*"}, true
		o := searched(`params=("utm")`)
		h := opened(t, opt).Handler(o)
		for _, query := range []string{"?a=1&b=2", "?fb_1=1&b=2&a=1", "?utm=1&fb_2=1&b=2&a=1"} {
			get(t, h, shopPath+query)
			synctest.Wait()
		}
		if n := o.called(); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

// A Report counts which answers a rule would share, and where the handler looks at more than it declares.
func TestReportOfNoVarySearch(t *testing.T) {
	searching(t, func(t *testing.T, opt setup) {
		opt.Report = true
		c := opened(t, opt)
		h := c.Handler(searched(`params=("utm")`))
		for _, query := range []string{"?utm=1", "?utm=2", "?utm=2&a=1"} {
			get(t, h, shopPath+query)
			synctest.Wait()
		}
		if got := fmt.Sprint(c.Report()); got != "[{/shop 3 1 1 http://a.example/shop?utm=2}]" {
			t.Error(got)
		}
	})
	searching(t, func(t *testing.T, opt setup) { // also with Vary, and with groups that are invalidated in between
		opt.Report = true
		c := opened(t, opt)
		h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.Header().Set("Cache-Group-Invalidation", `"shop"`)
				return
			}
			set(w.Header(), []string{"Cache-Control: " + fresh, `No-Vary-Search: params=("utm")`, "Vary: X-Color", `Cache-Groups: "shop"`})
			fmt.Fprint(w, r.Header.Get("X-Color"))
		}))
		for i, x := range []struct{ query, color, report string }{
			{"?utm=1", "red", "[{/shop 1 0 0 }]"},
			{"?utm=2", "red", "[{/shop 2 1 0 }]"},
			{"?utm=3", "blue", "[{/shop 3 1 0 }]"},
			{"?utm=4", "blue", "[{/shop 4 2 0 }]"},
			{"?utm=5&a=1", "blue", "[{/shop 5 2 0 }]"},
			{"", "", ""},
			{"?utm=6", "red", "[{/shop 6 2 0 }]"},
			{"?utm=7", "red", "[{/shop 7 3 0 }]"},
		} {
			if x.report == "" {
				ask(h, "POST", "http://a.example/other")
				continue
			}
			get(t, h, shopPath+x.query, "X-Color: "+x.color)
			synctest.Wait()
			if got := fmt.Sprint(c.Report()); got != x.report {
				t.Errorf("%d: %s, want %s", i, got, x.report)
			}
		}
	})
}

// A change that did not reach Redis is repeated later, and until then nothing of the path is served from the cache.
func TestAChangeOfAnEquivalentQueryThatRedisMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, opt, _ := impatient(t)
		opt.NoVarySearch = true
		version := "1"
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				version = "2"
				return
			}
			set(w.Header(), []string{"Cache-Control: " + fresh, `No-Vary-Search: params=("utm")`})
			fmt.Fprint(w, version)
		}))
		get(t, h, shopPath+"?utm=1")
		srv.Refuse(true)
		ask(h, http.MethodPost, shopPath+"?utm=2")
		srv.Refuse(false)
		for range 20 {
			if body, status := get(t, h, shopPath+"?utm=3"); body != "2" {
				t.Errorf("%s: %s", body, status)
			}
			time.Sleep(time.Second)
		}
		if _, status := get(t, h, shopPath+"?utm=4"); !isHit(status) {
			t.Errorf("when all is well again: %s", status)
		}
	})
}
