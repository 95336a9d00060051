package httpcache_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

func TestAnOverrideIsForSuccessesOfItsPath(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.Override = map[string]string{"/assets/": "public, max-age=31536000, immutable"}
		h := opened(t, opt).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
			if status, err := strconv.Atoi(r.URL.Query().Get("status")); err == nil {
				w.WriteHeader(status)
			}
			fmt.Fprint(w, "x")
		}})
		for _, x := range []struct {
			url, header string
			want        bool
		}{
			{"/assets/a", "X: y", true}, {"/assets/", "X: y", true},
			{"/assets/a?status=302", "X: y", false}, {"/assets/a?status=301", "X: y", false}, {"/assets/a?status=404", "X: y", false},
			{"/assets/a?status=500", "X: y", false}, {"/assets/a?status=503", "X: y", false},
			{"/assets/b", "Authorization: Bearer a", false}, {"//assets/x", "X: y", false}, {"/account/../assets/x", "X: y", false}, {"/assets/../x", "X: y", false},
		} {
			get(t, h, "http://a.example"+x.url, x.header)
			res := ask(h, "GET", "http://a.example"+x.url, x.header)
			if got := isHit(res.Header.Get("Cache-Status")); got != x.want {
				t.Errorf("%s, %s: a hit is %v", x.url, x.header, got)
			}
			if got := res.Header.Get("Cache-Control") != ""; got && !x.want {
				t.Errorf("%s, %s: %q", x.url, x.header, res.Header.Get("Cache-Control"))
			}
		}
	})
}

// Of other statuses, the override applies to those that the option names.
func TestAnOverrideOfOtherStatuses(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.Override, opt.OverrideOn = map[string]string{"/": "public, max-age=60"}, []int{301, 404}
		h := opened(t, opt).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
			status, _ := strconv.Atoi(r.URL.Path[1:])
			w.WriteHeader(status)
		}})
		for status, want := range map[int]string{200: "public, max-age=60", 301: "public, max-age=60", 404: "public, max-age=60", 308: "", 410: "", 302: "", 400: "", 500: "", 503: ""} {
			url := fmt.Sprint("http://a.example/", status)
			get(t, h, url)
			res := ask(h, "GET", url)
			if got := res.Header.Get("Cache-Control"); got != want || isHit(res.Header.Get("Cache-Status")) != (want != "") {
				t.Errorf("%d: %q, %s", status, got, res.Header.Get("Cache-Status"))
			}
		}
	})
	for want, change := range map[string]func(o *setup){
		"OverrideOn must hold any of 301, 308, 404 and 410, got 302": func(o *setup) { o.OverrideOn = []int{404, 302} },
		"Override names no routes":                                   func(o *setup) { o.Override, o.OverrideOn = nil, []int{404} },
	} {
		opt := options(t, redistest.Start(t).Client())
		opt.Override = map[string]string{"/": "max-age=60"}
		change(&opt)
		if _, err := opt.New(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestAnOverrideSaysSomething(t *testing.T) {
	for value, want := range map[string]string{
		"banana": `"banana" is no directive`, "s-maxage=60s": `"s-maxage=60s" must be a number of seconds`, "max-age": "must be a number",
		"public=1": "takes no value", "max-age=60, pubic": `"pubic" is no directive`, "no-cache": "", `private="X-User", max-age=5`: "",
	} {
		opt := options(t, nil)
		opt.Namespace.Redis = redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
		opt.Override = map[string]string{"/a": value}
		c, err := opt.New()
		if (err != nil) != (want != "") || err != nil && (!strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `Options.Override: pattern "/a"`)) {
			t.Errorf("%q: %v", value, err)
		}
		if c != nil {
			c.Close(t.Context())
		}
		opt.Namespace.Redis.Close()
	}
}

// Only a strong tag in a HEAD's answer proves that the stored response is current. Its other fields are often the same for two versions of a page.
func TestAHeadWithoutAStrongTagFreshensNothing(t *testing.T) {
	for _, has := range []string{"", "Date: now", "Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT", "Content-Length: 9"} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			version := 0
			h := opened(t, options(t, rdb)).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
				set(w.Header(), []string{"Cache-Control: max-age=1"})
				if name, value, ok := strings.Cut(has, ": "); ok {
					w.Header().Set(name, strings.ReplaceAll(value, "now", time.Now().UTC().Format(http.TimeFormat)))
				}
				if r.Method == http.MethodGet {
					version++
					fmt.Fprint(w, "version ", version)
				}
				w.WriteHeader(http.StatusOK)
			}})
			get(t, h, "http://a.example/")
			for range 6 {
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				ask(h, "HEAD", "http://a.example/", "Cache-Control: no-cache")
			}
			if body, status := get(t, h, "http://a.example/"); body != "version 2" {
				t.Errorf("%q: after three seconds of HEADs: %q: %s", has, body, status)
			}
		})
	}
}

// An answer that is for its client alone, because it must be validated, stays so whatever a HEAD of another client says.
func TestAHeadGivesNobodyAnothersPage(t *testing.T) {
	for _, tag := range []string{"", `"deploy-7"`} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			h := opened(t, options(t, rdb)).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
				set(w.Header(), []string{"Last-Modified: Sat, 21 Nov 2026 09:00:00 GMT", "Cache-Control: max-age=60"})
				if tag != "" {
					w.Header().Set("Etag", tag)
				}
				user := r.Header.Get("Cookie")
				if user != "" {
					w.Header().Set("Cache-Control", "no-cache")
				}
				fmt.Fprint(w, "hello ", user)
			}})
			get(t, h, "http://a.example/", "Cookie: alice")
			ask(h, "HEAD", "http://a.example/")
			if body, status := get(t, h, "http://a.example/", "Cookie: bob"); body != "hello bob" {
				t.Errorf("tag %s: bob gets %q: %s", tag, body, status)
			}
		})
	}
}

// Fields that are forbidden in the header are forbidden in a trailer too.
func TestTrailersAreStoredAsHeadersAre(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		h := opened(t, options(t, rdb)).Handler(&origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{`Cache-Control: max-age=60, private="X-User"`, "Trailer: X-User, X-Sum"})
			fmt.Fprint(w, "page")
			w.Header().Set("X-User", "ada")
			w.Header().Set("X-Sum", "7")
			w.Header().Set(http.TrailerPrefix+"Set-Cookie", "session=ada")
			w.Header().Set(http.TrailerPrefix+"X-User", "ada")
		}})
		get(t, h, "http://a.example/")
		res := ask(h, "GET", "http://a.example/")
		if !isHit(res.Header.Get("Cache-Status")) {
			t.Fatalf("it was not stored: %v", res.Header)
		}
		all := fmt.Sprint(res.Header, res.Trailer)
		if strings.Contains(all, "ada") || !strings.Contains(all, "X-Sum:[7]") {
			t.Errorf("a second client got %s", all)
		}
	})
}
