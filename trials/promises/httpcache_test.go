package promises

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
)

// site is an origin whose pages all say the same, behind a cache that is behind the proxy, and behind those of other processes.
type site struct {
	world
	says   atomic.Pointer[string]
	url    string
	vary   bool
	tag    string
	behind *httpcache.Cache
}

const page = "http://a.example/page"

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "max-age=600")
	w.Header().Set("Surrogate-Key", s.tag)
	if s.vary {
		w.Header().Set("Vary", "X-Color")
	}
	if r.URL.Query().Has("self") { // what a GET would get
		w.Header().Set("Content-Location", r.URL.String())
	}
	io.WriteString(w, *s.says.Load())
}

func (s *site) commit(says string) { s.says.Store(&says) }

// open returns the cache of another process. It is closed with the test.
func (s *site) open(rdb redis.UniversalClient) *httpcache.Cache {
	s.t.Helper()
	c := mayfly.Must(httpcache.New(mayfly.Namespace[string, []byte]{
		Name: "pages", Redis: rdb, Prefix: s.prefix, TTL: time.Hour,
	}, httpcache.Options{RedisTimeout: s.redisTimeout(rdb)}))
	s.t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// ask sends a request to the site behind a cache.
func (s *site) ask(c *httpcache.Cache, method, url string, header ...string) (says string, err error) {
	r := httptest.NewRequestWithContext(s.ctx, method, url, nil)
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	c.Handler(s).ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return "", fmt.Errorf("answered %d", w.Code)
	}
	return w.Body.String(), nil
}

// get has the cache behind the proxy answer, and waits for what it stores.
func (s *site) get(method, url string, header ...string) error {
	says, err := s.ask(s.behind, method, url, header...)
	if err == nil && says != "old" && says != "newer than old" {
		err = fmt.Errorf("it says %q", says)
	}
	if err != nil {
		return err
	}
	return s.behind.Close(s.ctx)
}

// not returns what is wrong if another process serves from the cache what is out of date.
func (s *site) not(old string) string {
	for _, color := range []string{"red", "blue"} {
		says, err := s.ask(s.open(s.direct), "GET", s.url, "Cache-Control: only-if-cached", "X-Color: "+color)
		if err == nil && says == old {
			return fmt.Sprintf("another process serves %q, %s", says, color)
		}
	}
	return s.longLease()
}

func httpcacheRows() (all []row) {
	add := func(name string, skip int, open func(s *site) call) {
		all = append(all, row{name: "httpcache/" + name, skip: skip, copies: true, claims: strings.Contains(name, "the claim, then Purge"), open: func(w world) call {
			s := &site{world: w, url: page, tag: "product"}
			s.commit("old")
			warm := s.open(w.direct)
			for range 2 { // a purge, and what is stored after it: all scripts
				_, err := s.ask(warm, "GET", page)
				s.must(err)
				s.must(warm.Purge(w.ctx, httpcache.Target{Tag: "warm"}, httpcache.Target{URL: page}))
			}
			s.must(w.direct.Del(w.ctx, w.prefix+"purges").Err()) // as if there had been none
			s.behind = s.open(w.through)
			return open(s)
		}})
	}
	prefix, tag := httpcache.Target{Prefix: "http://a.example/p"}, httpcache.Target{Tag: "product"}
	purged := func(s *site, t httpcache.Target) {
		s.commit("new")
		s.must(s.open(s.direct).Purge(s.ctx, t))
	}
	// What is stored. After another process changed and purged it, nobody serves what was.
	stores := func(name string, writes []string, prepare func(s *site), do func(s *site) error) {
		for skip, write := range writes {
			for kind, target := range map[string]httpcache.Target{"URL": {}, "prefix": prefix, "tag": tag} {
				if kind == "prefix" && name != "a miss" {
					continue // it removes what a purge by URL does, and more
				}
				add(name+", "+write+", then Purge by "+kind, skip, func(s *site) call {
					prepare(s)
					target := target // each row's own
					if kind == "URL" {
						target = httpcache.Target{URL: s.url}
					} else if kind == "tag" && s.tag == "" {
						target = prefix
					}
					return call{about: s.prefix + "http://", do: func() error { return do(s) }, later: func() { purged(s, target) }, promise: func() string { return s.not("old") }}
				})
			}
		}
	}
	get := func(s *site) error { return s.get("GET", s.url, "X-Color: red") }
	stores("a miss", []string{"the claim", "the fill"}, func(*site) {}, get)
	vary := func(s *site) { s.vary = true }
	stores("a miss that varies", []string{"the claim", "the variant", "the index"}, vary, get)
	stores("another variant", []string{"the claim", "the index", "the fill"}, func(s *site) {
		s.vary = true
		_, err := s.ask(s.open(s.direct), "GET", page, "X-Color: blue")
		s.must(err)
	}, get)
	stores("the answer to a POST", []string{"the invalidation", "the claim", "the fill"}, func(s *site) {
		s.url, s.tag = page+"?self", ""
	}, func(s *site) error { return s.get("POST", s.url) })

	// What is purged. What others store after it may go, but not what they purge come back.
	purges := func(name string, skip int, do func(s *site) error) {
		add(name+", then a GET", skip, func(s *site) call {
			_, err := s.ask(s.open(s.direct), "GET", page)
			s.must(err)
			s.commit("new")
			var said string // an error may have purged nothing yet
			return call{do: func() error { return do(s) }, later: func() {
				said, err = s.ask(s.open(s.direct), "GET", page)
				s.must(err)
			}, promise: func() string {
				if says, err := s.ask(s.open(s.direct), "GET", page); says != "new" && says != said || err != nil {
					return fmt.Sprintf("it said %q, and now says %q, %v", said, says, err)
				}
				return ""
			}, done: func() int {
				if s.not("old") == "" {
					return 1
				}
				return 0
			}}
		})
		add(name+", then a GET and Purge by tag", skip, func(s *site) call {
			_, err := s.ask(s.open(s.direct), "GET", page)
			s.must(err)
			s.commit("newer than old")
			return call{do: func() error { return do(s) }, later: func() {
				s.commit("newer than old")
				_, err := s.ask(s.open(s.direct), "GET", page)
				s.must(err)
				purged(s, tag)
			}, promise: func() string { return s.not("newer than old") }}
		})
	}
	purge := func(t httpcache.Target) func(s *site) error {
		return func(s *site) error { return s.behind.Purge(s.ctx, t) }
	}
	purges("Purge by URL", 0, purge(httpcache.Target{URL: page}))
	purges("Purge by prefix", 0, purge(prefix))
	for skip, write := range []string{"the version", "the barrier"} {
		purges("Purge by tag, "+write, skip, purge(tag))
	}
	purges("a POST that invalidates", 0, func(s *site) error { return s.get("POST", page) })
	return all
}
