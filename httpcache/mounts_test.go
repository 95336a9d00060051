package httpcache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// A resource is what the client asked for. Handlers around the cache may change the URL that the inner handler sees.

// names is a handler that answers with its own name and the URL that it sees.
func names(who string) *origin {
	return &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			set(w.Header(), []string{"Cache-Control: " + fresh})
		}
		fmt.Fprint(w, who, " ", r.URL)
	}}
}

// localOrNot runs a test with and without a local tier.
func localOrNot(t *testing.T, test func(t *testing.T, opt setup)) {
	for _, local := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			rdb := redistest.Start(t).Client()
			opt := options(t, rdb)
			if local {
				l := mayfly.Must(mayfly.OpenLocal(t.Context(), mayfly.LocalOptions{Redis: rdb, Prefixes: []string{opt.Namespace.Prefix}, MaxBytes: 1 << 20}))
				t.Cleanup(func() { l.Close(context.Background()) })
				opt.Namespace.Local = l
			}
			test(t, opt)
		})
	}
}

func TestMountsDoNotMerge(t *testing.T) {
	localOrNot(t, func(t *testing.T, opt setup) {
		c := opened(t, opt)
		admin, blog := names("admin"), names("blog")
		site := http.NewServeMux()
		site.Handle("/admin/", http.StripPrefix("/admin", c.Handler(admin)))
		site.Handle("/blog/", http.StripPrefix("/blog", c.Handler(blog)))
		for n := range 3 {
			for _, who := range []string{"admin", "blog"} {
				url := "http://a.example/" + who + "/list?q"
				body, status := get(t, site, url)
				if want := who + " http://a.example/list?q"; body != want || isHit(status) != (n > 0) || !strings.Contains(status, `key="`+url+`"`) {
					t.Errorf("round %d, %s: got %q: %s", n, url, body, status)
				}
				synctest.Wait()
			}
		}
		called := admin.called()
		for _, who := range []string{"admin", "blog"} {
			if found, err := c.PurgeFound(t.Context(), httpcache.Target{URL: "https://a.example/" + who + "/list?q"}); found != 1 || err != nil {
				t.Errorf("the purge of %s found %d, %v", who, found, err)
			}
			if _, status := get(t, site, "http://a.example/"+who+"/list?q"); isHit(status) {
				t.Errorf("%s is there after its purge: %s", who, status)
			}
		}
		if admin.called() != called+1 {
			t.Errorf("the handler was asked %d times more", admin.called()-called)
		}
		ask(site, "POST", "http://a.example/admin/list?q")
		if _, status := get(t, site, "http://a.example/admin/list?q"); isHit(status) {
			t.Errorf("a POST has not voided its URL: %s", status)
		}
	})
}

// Many tenants share one URL, and a middleware distinguishes them by something that no Vary names.
func TestTenantsDoNotMerge(t *testing.T) {
	for name, rewrite := range map[string]func(r *http.Request, tenant string){
		"path":   func(r *http.Request, tenant string) { r.URL.Path = "/of-" + tenant + r.URL.Path },
		"query":  func(r *http.Request, tenant string) { r.URL.RawQuery = "of=" + tenant },
		"host":   func(r *http.Request, tenant string) { r.Host = tenant + ".example" },
		"target": func(r *http.Request, tenant string) { r.URL.Host = tenant + ".example" },
		"scheme": func(r *http.Request, tenant string) {
			r.URL.Scheme = map[string]string{"a": "https", "b": "http", "c": "ws"}[tenant]
		},
	} {
		t.Run(name, func(t *testing.T) {
			localOrNot(t, func(t *testing.T, opt setup) {
				c := opened(t, opt)
				inner := c.Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
					set(w.Header(), []string{"Cache-Control: " + fresh})
					fmt.Fprintf(w, "page of %s at %s of %s", r.Header.Get("Cookie"), r.URL, r.Host)
				}})
				site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tenant := r.Header.Get("Cookie"); tenant != "nobody" {
						rewrite(r, tenant)
					}
					inner.ServeHTTP(w, r)
				})
				for n := range 3 {
					for _, tenant := range []string{"nobody", "a", "b", "c"} {
						body, status := get(t, site, "/page", "Cookie: "+tenant)
						if !strings.HasPrefix(body, "page of "+tenant+" at") || n == 2 && !isHit(status) {
							t.Errorf("round %d: %s got %q: %s", n, tenant, body, status)
						}
						synctest.Wait()
					}
				}
				if name == "host" { // nothing tells the original
					return
				}
				expectPurged(t, c, httpcache.Target{URL: "http://example.com/page"}, 1)
				for _, tenant := range []string{"nobody", "a", "b", "c"} {
					if _, status := get(t, site, "/page", "Cookie: "+tenant); isHit(status) {
						t.Errorf("after the purge of its URL %s has a hit: %s", tenant, status)
					}
				}
			})
		})
	}
}

func expectPurged(t *testing.T, c *httpcache.Cache, target httpcache.Target, want int) {
	t.Helper()
	if found, err := c.PurgeFound(t.Context(), target); found != want || err != nil {
		t.Errorf("the purge of %v found %d (%v), want %d", target, found, err, want)
	}
}

// Concurrent requests of several tenants do not wait for each other's pages.
func TestTenantsAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		inner := opened(t, options(t, rdb)).Handler(mine("Cache-Control: " + fresh))
		site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path = "/" + r.Header.Get("Cookie")
			inner.ServeHTTP(w, r)
		})
		for range 3 {
			cookie := func(i int) string { return fmt.Sprint("u=", i%5) }
			for i, body := range crowd(t, 50, site, "/page", func(i int) []string { return []string{"Cookie: " + cookie(i)} }) {
				if body != "page of "+cookie(i) {
					t.Errorf("%d got %q", i, body)
				}
			}
		}
	})
}

// Query parameters that the options drop do not count below a mount either.
func TestDroppedParametersBelowAMount(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.SortQuery, opt.DropQuery = true, []string{"utm_*"}
		h := http.StripPrefix("/blog", opened(t, opt).Handler(names("blog")))
		get(t, h, "/blog/list?b=1&a=2")
		for _, url := range []string{"/blog/list?a=2&b=1&utm_x=1", "http://example.com/blog/list?utm_y&a=2&b=1", "/blog/l%69st?b=1&a=2"} {
			if body, status := get(t, h, url); !isHit(status) {
				t.Errorf("%s: %q %s", url, body, status)
			}
		}
	})
}

// With the option that all hosts are one, a handler that declares that it looks at the host still gets each by itself.
func TestVaryHost(t *testing.T) {
	localOrNot(t, func(t *testing.T, opt setup) {
		opt.AnyHost = true
		h := opened(t, opt).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: " + fresh, "Vary: Host"})
			fmt.Fprint(w, "page of ", strings.ToLower(r.Host))
		}})
		for n := range 3 {
			for _, host := range []string{"a.example", "b.example", "A.example"} {
				body, status := get(t, h, "http://"+host+"/")
				if body != "page of "+strings.ToLower(host) || n > 0 && !isHit(status) {
					t.Errorf("%s got %q: %s", host, body, status)
				}
				synctest.Wait()
			}
		}
	})
}

// A purge reports whether it removed anything.
func TestAPurgeTellsWhatItFound(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		c := opened(t, options(t, rdb))
		h := c.Handler(says("page", "Cache-Control: "+fresh, "Cache-Tag: all"))
		for i := range 3 {
			get(t, h, fmt.Sprint("http://a.example/", i))
		}
		expectPurged(t, c, httpcache.Target{URL: "http://a.example/0"}, 1)
		expectPurged(t, c, httpcache.Target{URL: "http://a.example/0"}, 0)
		expectPurged(t, c, httpcache.Target{URL: "http://b.example/1"}, 0)
		expectPurged(t, c, httpcache.Target{Prefix: "http://a.example/"}, 2)
		expectPurged(t, c, httpcache.Target{Prefix: "http://a.example/"}, 0)
		expectPurged(t, c, httpcache.Target{Tag: "all"}, 0)
	})
}

// A scheme's default port makes no difference, however the purge or the client spells it, and whichever scheme the cache assumes.
func TestAPurgeKnowsDefaultPorts(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		for _, scheme := range []string{"http", "https"} {
			opt := options(t, rdb)
			opt.Scheme = scheme
			c := opened(t, opt)
			h := c.Handler(says("page", "Cache-Control: "+fresh, `Cache-Groups: "g"`))
			for _, host := range []string{"a.example", "a.example:80", "a.example:443"} {
				for _, at := range []string{"http://a.example", "https://a.example", "http://a.example:80", "https://a.example:443"} {
					for name, target := range map[string]httpcache.Target{"URL": httpcache.Target{URL: at + "/x"}, "prefix": httpcache.Target{Prefix: at + "/"}, "group": httpcache.Target{URL: at, Group: "g"}} {
						ask := func() string {
							r := httptest.NewRequest("GET", "/x", nil)
							r.Host = host
							w := httptest.NewRecorder()
							h.ServeHTTP(w, r)
							return w.Header().Get("Cache-Status")
						}
						ask()
						if hit := ask(); !strings.Contains(hit, "; hit") {
							t.Fatalf("no hit: %s", hit)
						}
						expect.OK(t, c.Purge(t.Context(), target))
						if left := ask(); strings.Contains(left, "; hit") {
							t.Errorf("%s of %s left the page that %s host %s has", name, at, scheme, host)
						}
					}
				}
			}
		}
	})
}

func TestMalformedTargets(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		c := opened(t, options(t, rdb))
		for target, says := range map[string]string{"ftp://a.example/x": "its scheme is ftp", "/x": "not an absolute URL"} {
			if err := c.Purge(t.Context(), httpcache.Target{URL: target}); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", target, err)
			}
		}
	})
}
