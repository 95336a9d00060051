package httpcache_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// A handler that bypasses http.Header's methods is judged by the fields that clients read: letter case hides nothing.
func TestNoFieldIsOverlookedForItsSpelling(t *testing.T) {
	type header map[string]string
	for name, x := range map[string]struct {
		says     header
		asks     string // of the second request, as "Name: value"
		override bool   // a Cache-Control of its own for the route
		stored   bool   // and served to the second request
		status   int    // of the second answer; 0: 200
	}{
		"private":                          {says: header{"cache-control": "private, max-age=60"}},
		"no-store beside what is fresh":    {says: header{"CACHE-CONTROL": "no-store", "Cache-Control": "max-age=60"}},
		"a cookie":                         {says: header{"Cache-Control": fresh, "set-cookie": "user=1"}},
		"a Vary":                           {says: header{"Cache-Control": fresh, "vary": "X-User"}, asks: "X-User: b"},
		"any Vary":                         {says: header{"Cache-Control": fresh, "VARY": "*"}},
		"an Expires of the past":           {says: header{"expires": "0"}},
		"an Age beyond its life":           {says: header{"Cache-Control": fresh, "age": "100000"}},
		"an Override for what says itself": {says: header{"cache-control": "max-age=0"}, override: true},
		"an Override for what Expires":     {says: header{"EXPIRES": "0"}, override: true},
		"an Override":                      {override: true, stored: true},
		"a tag, on its miss":               {says: header{"Cache-Control": "private", "ETag": `"1"`}, asks: `If-None-Match: "1"`, status: 304},
		"a tag, that is validated":         {says: header{"Cache-Control": fresh, "ETag": `"1"`}, asks: `If-None-Match: "1"`, stored: true, status: 304},
		"a coding of its own":              {says: header{"Cache-Control": fresh, "transfer-encoding": "gzip"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, rdb *redis.Client) {
				opt := options(t, rdb)
				if x.override {
					opt.Override = map[string]string{"/": fresh}
				}
				o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
					for name, value := range x.says {
						w.Header()[name] = []string{value}
					}
					io.WriteString(w, "page")
				}}
				h := opened(t, opt).Handler(o)
				get(t, h, "http://a.example/", "X-User: a")
				res := ask(h, "GET", "http://a.example/", x.asks)
				if hit := isHit(res.Header.Get("Cache-Status")); hit != x.stored || o.called() == 1 != x.stored {
					t.Errorf("%s, %d calls, want a hit: %v", res.Header.Get("Cache-Status"), o.called(), x.stored)
				}
				if x.status != 0 && res.StatusCode != x.status {
					t.Errorf("status %d, want %d", res.StatusCode, x.status)
				}
			})
		})
	}
}

// A condition matches a tag in any spelling, even one that the handler does not see, and the tag of a HEAD's answer or a 304 is respected.
func TestATagInAnySpelling(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		version := "1"
		h := opened(t, options(t, rdb)).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["ETag"] = []string{`"` + version + `"`}
			w.Header()["cache-control"] = []string{"max-age=5"}
			if asked := r.Header.Get("If-None-Match"); asked != "" && version == "3" { // the current version
				w.WriteHeader(http.StatusNotModified)
				return
			}
			io.WriteString(w, "version "+version)
		}))
		if res := ask(h, "GET", "http://a.example/", `If-None-Match: "1"`); res.StatusCode != http.StatusNotModified {
			t.Errorf("a miss whose client has it already: %d", res.StatusCode)
		}
		synctest.Wait()
		version = "2"
		ask(h, http.MethodHead, "http://a.example/", "Cache-Control: no-cache") // there is another now
		synctest.Wait()
		if body, status := get(t, h, "http://a.example/"); body != "version 2" {
			t.Errorf("after a HEAD of another version: %q, %s", body, status)
		}
		version = "3"
		time.Sleep(6 * time.Second)
		if body, status := get(t, h, "http://a.example/"); body == "version 2" {
			t.Errorf("a 304 about another version: %q, %s", body, status)
		}
	})
}

// When the handler sets a Transfer-Encoding, net/http adds no Content-Type, so a hit has none either.
func TestNoContentTypeIsMadeUpForAHit(t *testing.T) {
	s := serveTwins(t, says("<html>page", "Cache-Control: "+fresh, "Transfer-Encoding: chunked"))
	for range 2 {
		answer := raw(t, s.with, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
		if strings.Contains(answer, "Content-Type") {
			t.Errorf("%q", answer)
		}
	}
	if n := s.cache.Stats().Redis; n != 1 {
		t.Errorf("%d hits", n)
	}
}

// Fields of handlers around the cache stay theirs in any spelling.
func TestHeadersSetAroundTheCacheInAnySpelling(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		inner := opened(t, options(t, rdb)).Handler(says("page", "Cache-Control: "+fresh))
		session := 0
		site := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			session++
			w.Header()["content-session"] = []string{fmt.Sprint(session)}
			w.Header()["x-session"] = []string{fmt.Sprint(session)}
			inner.ServeHTTP(w, r)
		})
		for range 3 {
			res := ask(site, "GET", "http://a.example/")
			if got := fmt.Sprint(allOf(res.Header, "content-session"), allOf(res.Header, "x-session")); got != fmt.Sprintf("[%d] [%d]", session, session) {
				t.Errorf("request %d got the sessions %s: %s", session, got, res.Header.Get("Cache-Status"))
			}
		}
	})
}

// allOf returns what a client reads in a field.
func allOf(h http.Header, field string) (values []string) {
	for name, lines := range h {
		if strings.EqualFold(name, field) {
			values = append(values, lines...)
		}
	}
	return values
}
