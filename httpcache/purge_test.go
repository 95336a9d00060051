package httpcache_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
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
	"github.com/mayflycache/mayfly/redistest"
)

// versions is an origin whose answers show which of its versions they are.
type versions struct {
	origin
	version int
}

func newVersions(header ...string) *versions {
	v := &versions{}
	v.serve = func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" {
			v.version++
			return
		}
		set(w.Header(), header)
		fmt.Fprintf(w, "%s v%d %s", r.URL.Path, v.version, r.Header.Get("X-Color"))
	}
	return v
}

func purgeByURLPrefixAndTag(t *testing.T, rdb redis.UniversalClient) {
	v := newVersions("Cache-Control: max-age=600", "Vary: X-Color", "Surrogate-Key: all shop", "Cache-Tag: page,start")
	c := must(t)(options(t, rdb).New())
	h := c.Handler(v)
	everything := []string{"http://a.example/", "http://a.example/blog/1", "http://a.example/blog/2", "http://b.example/"}
	for name, p := range map[string]struct {
		target httpcache.Target
		purged []string
	}{
		"a URL":              {httpcache.Target{URL: "http://a.example/blog/1"}, []string{"http://a.example/blog/1"}},
		"a URL, as https":    {httpcache.Target{URL: "https://a.example/blog/2"}, []string{"http://a.example/blog/2"}},
		"a prefix":           {httpcache.Target{Prefix: "http://a.example/blog/"}, []string{"http://a.example/blog/1", "http://a.example/blog/2"}},
		"a Surrogate-Key":    {httpcache.Target{Tag: "shop"}, everything},
		"a Cache-Tag":        {httpcache.Target{Tag: "start"}, everything},
		"what nobody has":    {httpcache.Target{Tag: "none"}, nil},
		"another prefix":     {httpcache.Target{Prefix: "http://a.example/log/"}, nil},
		"another host":       {httpcache.Target{Prefix: "http://b.example/"}, []string{"http://b.example/"}},
		"a host's beginning": {httpcache.Target{Prefix: "http://a.example/"}, []string{"http://a.example/", "http://a.example/blog/1", "http://a.example/blog/2"}},
	} {
		urls := everything
		colors := []string{"X-Color: red", "X-Color: blue"}
		before := map[string]string{}
		for _, url := range urls {
			for _, color := range colors {
				get(t, h, url, color)
				body, status := get(t, h, url, color)
				if before[url+color] = body; !isHit(status) {
					t.Fatalf("%s: %s is not stored: %s", name, url, status)
				}
			}
		}
		v.version++
		if err := c.Purge(t.Context(), p.target); err != nil {
			t.Fatal(err)
		}
		for _, url := range urls {
			for _, color := range colors {
				body, _ := get(t, h, url, color)
				want := before[url+color]
				for _, purged := range p.purged {
					if purged == url {
						want = strings.Replace(want, before[url+color][strings.Index(before[url+color], " v"):], fmt.Sprintf(" v%d %s", v.version, strings.TrimPrefix(color, "X-Color: ")), 1)
					}
				}
				if body != want {
					t.Errorf("%s: %s %s: %q, want %q", name, url, color, body, want)
				}
			}
		}
	}
}

func unsafeMethodsInvalidate(t *testing.T, rdb redis.UniversalClient) {
	v := newVersions("Cache-Control: max-age=600")
	c := must(t)(options(t, rdb).New())
	h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != "GET" && r.URL.Path == "/new" {
			w.Header().Set("Location", "/made")
			w.Header().Set("Content-Location", "http://evil.example/")
		}
		if r.Method == "LOSE" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		v.ServeHTTP(w, r)
	}))
	for _, x := range []struct {
		method, url string
		voids       []string
	}{
		{"POST", "http://a.example/", []string{"http://a.example/"}},
		{"M-UNKNOWN", "http://a.example/", []string{"http://a.example/"}},
		{"PUT", "http://a.example/new", []string{"http://a.example/new", "http://a.example/made"}},
		{"LOSE", "http://a.example/", nil},
		{"HEAD", "http://a.example/", nil},
	} {
		urls := []string{"http://a.example/", "http://a.example/new", "http://a.example/made", "http://evil.example/"}
		for _, url := range urls {
			get(t, h, url)
		}
		ask(h, x.method, x.url)
		for _, url := range urls {
			_, status := get(t, h, url)
			void := false
			for _, u := range x.voids {
				void = void || u == url
			}
			if isHit(status) == void {
				t.Errorf("%s %s: then %s: %s", x.method, x.url, url, status)
			}
		}
	}
}

func targetsThatAreNone(t *testing.T, rdb redis.UniversalClient) {
	c := must(t)(options(t, rdb).New())
	for _, target := range []httpcache.Target{{}, httpcache.Target{URL: "/relative"}, httpcache.Target{URL: "::"}, httpcache.Target{Prefix: ""}, httpcache.Target{Prefix: "http://"}, httpcache.Target{Tag: ""}, httpcache.Target{Tag: "two words"}} {
		if err := c.Purge(t.Context(), target); err == nil {
			t.Errorf("%+v was purged", target)
		}
	}
}

// An answer that the handler began before a purge is not stored after it, and no later request joins it.
func TestAPurgeBeatsALoadInFlight(t *testing.T) {
	for name, target := range map[string]httpcache.Target{
		"URL": httpcache.Target{URL: "http://a.example/"}, "Prefix": httpcache.Target{Prefix: "http://a.example/"}, "Tag": httpcache.Target{Tag: "x"},
	} {
		for _, vary := range []string{"", "X-Color"} {
			t.Run(fmt.Sprint(name, ", Vary: ", vary), func(t *testing.T) {
				inBubble(t, func(t *testing.T, rdb *redis.Client) {
					var changed atomic.Bool
					o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
						set(w.Header(), []string{"Cache-Control: max-age=600", "Cache-Tag: x"})
						if vary != "" {
							w.Header().Set("Vary", vary)
						}
						if changed.Load() {
							io.WriteString(w, "new")
							return
						}
						time.Sleep(5 * time.Second)
						io.WriteString(w, "old")
					}}
					c := opened(t, options(t, rdb))
					h := c.Handler(o)
					loaded := make(chan string)
					go func() {
						body, _ := get(t, h, "http://a.example/")
						loaded <- body
					}()
					time.Sleep(time.Second)
					changed.Store(true)
					if err := c.Purge(t.Context(), target); err != nil {
						t.Fatal(err)
					}
					if body, _ := get(t, h, "http://a.example/"); body != "new" {
						t.Errorf("after the purge: %q", body)
					}
					if body := <-loaded; body != "old" {
						t.Errorf("a request that was waiting: %q", body)
					}
					synctest.Wait()
					for range 2 {
						if body, _ := get(t, h, "http://a.example/"); body != "new" {
							t.Errorf("after both: %q", body)
						}
					}
				})
			})
		}
	}
}

// The same after an answer that was for its client alone: the process remembers that for a while, but Redis, which was purged or emptied, does
// not.
func TestAPurgeBeatsALoadThatNobodyWaitsFor(t *testing.T) {
	const url = "http://a.example/"
	for _, first := range []string{"no-cache", "max-age=0, must-revalidate", "private", "max-age=600"} {
		for _, second := range []string{"no-cache", "max-age=600"} {
			for _, empty := range []bool{false, true} {
				inBubble(t, func(t *testing.T, rdb *redis.Client) {
					data, policy, takes := "old", first, time.Duration(0)
					var mu sync.Mutex
					o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
						mu.Lock()
						now, wait := data, takes
						set(w.Header(), []string{"Cache-Control: " + policy, `Etag: "the same"`})
						mu.Unlock()
						if r.Header.Get("If-None-Match") != "" {
							w.WriteHeader(http.StatusNotModified)
							return
						}
						w.(http.Flusher).Flush()
						time.Sleep(wait)
						io.WriteString(w, now)
					}}
					c := opened(t, options(t, rdb))
					h := c.Handler(o)
					purge := func() {
						if err := c.Purge(t.Context(), httpcache.Target{URL: url}); err != nil {
							t.Fatal(err)
						}
					}
					get(t, h, url)
					synctest.Wait()
					if empty {
						rdb.FlushAll(t.Context())
					} else {
						purge()
					}
					mu.Lock()
					policy, takes = second, 2*time.Second
					mu.Unlock()
					var loads sync.WaitGroup
					loads.Go(func() { get(t, h, url) })
					time.Sleep(time.Second)
					mu.Lock()
					data, takes = "new", 0
					mu.Unlock()
					purge()
					loads.Wait()
					synctest.Wait()
					for range 2 {
						if body, status := get(t, h, url); body != "new" {
							t.Errorf("%s, then %s, emptied %t: %q, %s", first, second, empty, body, status)
						}
					}
				})
			}
		}
	}
}

// A 304 does not make the stored body younger: a purge of its tag that came before the handler's 304 still removes it.
func TestAPurgeBeatsAnAnswerThatNothingChanged(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		client := redis.NewClient(rdb.Options())
		defer client.Close()
		first, second := opened(t, opt), opened(t, options(t, client))
		body := "old"
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=10", "Cache-Tag: x", "Last-Modified: Sat, 01 Jan 2000 00:00:00 GMT"})
			if r.Header.Get("If-Modified-Since") != "" { // the page changed within the same second
				w.WriteHeader(http.StatusNotModified)
				return
			}
			io.WriteString(w, body)
		}}
		h := second.Handler(o)
		get(t, h, "http://a.example/")
		time.Sleep(20 * time.Second)
		// The request finds the old page before it is purged. The purge comes next, and then the request reads the version of the purges.
		var purged bool
		client.AddHook(reading{opt.Namespace.Prefix + "purges", func() {
			if !purged {
				purged, body = true, "new"
				expect.OK(t, first.Purge(t.Context(), httpcache.Target{Tag: "x"}))
			}
		}})
		get(t, h, "http://a.example/")
		synctest.Wait()
		if got, status := get(t, h, "http://a.example/"); got != "new" || !purged {
			t.Errorf("purged %t: %q, %s", purged, got, status)
		}
	})
}

// reading does something before each read of a key.
type reading struct {
	key string
	do  func()
}

func (r reading) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r reading) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		r.before(cmd)
		return next(ctx, cmd)
	}
}

func (r reading) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			r.before(cmd)
		}
		return next(ctx, cmds)
	}
}

func (r reading) before(cmd redis.Cmder) {
	if cmd.Name() == "get" && slices.Contains(cmd.Args(), any(r.key)) {
		r.do()
	}
}

func TestAFailedInvalidationIsDoneLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, opt, events := impatient(t)
		v := newVersions("Cache-Control: max-age=600")
		c := opened(t, opt)
		h := c.Handler(v)
		get(t, h, "http://a.example/")
		srv.Refuse(true)
		srv.KillConnections()
		ask(h, "POST", "http://a.example/")
		if events.Count(mayfly.KindRemoval, mayfly.OutcomeFailed) != 1 {
			t.Error("no event says that the removal failed")
		}
		srv.Refuse(false)
		if body, _ := get(t, h, "http://a.example/"); body != "/ v1 " {
			t.Errorf("while it is in doubt: %q", body)
		}
		time.Sleep(5 * time.Second)
		for range 2 {
			if body, status := get(t, h, "http://a.example/"); body != "/ v1 " {
				t.Errorf("later: %q, %s", body, status)
			}
		}
		c.Close(context.Background())
	})
}

// A Target that names nothing, or several things, is an error that says so, and nothing is purged.
func TestTargets(t *testing.T) {
	c := must(t)(options(t, redistest.Start(t).Client()).New())
	for want, target := range map[string]httpcache.Target{
		"the Target is empty":                     {},
		`the group "g" has no URL`:                {Group: "g"},
		"is several targets":                      {URL: "http://a.example/", Tag: "x"},
		"{URL: Prefix:p Tag:t Group:} is several": {Prefix: "p", Tag: "t"},
		"Group:g} is several targets":             {Prefix: "http://a.example/", Group: "g"},
		`the tag "a b" has a space`:               {Tag: "a b"},
		`purge "/relative"`:                       {URL: "/relative"},
		`purge "http://a.example?x"`:              {Prefix: "http://a.example?x"},
	} {
		if found, err := c.PurgeFound(t.Context(), target); err == nil || found != 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %d, %v; want %q", target, found, err, want)
		}
	}
}

// SortQuery takes parameters out of the order in which a prefix names them. So it refuses a prefix that names one, and purges all queries of a path.
func TestAPrefixWithAQueryThatIsSorted(t *testing.T) {
	opt := options(t, redistest.Start(t).Client())
	opt.SortQuery = true
	c := opened(t, opt)
	h := c.Handler(newVersions("Cache-Control: max-age=600"))
	get(t, h, "http://a.example/a?b=2&a=1")
	found, err := c.PurgeFound(t.Context(), httpcache.Target{Tag: "shop"}, httpcache.Target{Prefix: "http://a.example/a?b"})
	if err == nil || !strings.Contains(err.Error(), "SortQuery") || !strings.Contains(err.Error(), "nothing was purged") || found != 0 {
		t.Errorf("a prefix that names a parameter: %d, %v", found, err)
	}
	if _, status := get(t, h, "http://a.example/a?a=1&b=2"); !isHit(status) {
		t.Errorf("the refused purge voided it: %s", status)
	}
	if found, err := c.PurgeFound(t.Context(), httpcache.Target{Prefix: "http://a.example/a?"}); err != nil || found != 1 {
		t.Errorf("all queries of a path: %d, %v", found, err)
	}
}
