package httpcache_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// inBubble runs what is about time in a synctest bubble: hours cost nothing there.
func inBubble(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	synctest.Test(t, func(t *testing.T) { test(t, redistest.Start(t).Client()) })
}

// closed is must for bubbles, in which every goroutine has to end.
func opened(t *testing.T, o setup) *httpcache.Cache {
	t.Helper()
	return must(t)(o.New())
}

func TestAStaleAnswerIsRevalidated(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		version := `"1"`
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=10", "Etag: " + version, "X-Time: " + time.Now().Format(time.TimeOnly)})
			if r.Header.Get("If-None-Match") == version {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			io.WriteString(w, "body of "+version)
		}}
		h := opened(t, options(t, rdb)).Handler(o)
		get(t, h, "http://a.example/")
		time.Sleep(11 * time.Second)
		res := ask(h, "GET", "http://a.example/")
		if b, _ := io.ReadAll(res.Body); res.StatusCode != 200 || string(b) != `body of "1"` || res.Header.Get("Content-Length") != "11" {
			t.Errorf("after a 304: %d, %q, %v", res.StatusCode, b, res.Header)
		}
		if got := res.Header.Get("Cache-Status"); !strings.Contains(got, "fwd=stale; fwd-status=304; ttl=10; stored") {
			t.Errorf("Cache-Status %q", got)
		}
		if got := res.Header.Get("X-Time"); got != time.Now().Format(time.TimeOnly) {
			t.Errorf("the 304's header did not replace the stored one: %s", got)
		}
		if _, status := get(t, h, "http://a.example/"); !isHit(status) {
			t.Errorf("after the revalidation: %s", status)
		}
		version = `"2"`
		time.Sleep(11 * time.Second)
		if body, _ := get(t, h, "http://a.example/"); body != `body of "2"` {
			t.Errorf("the new version: %q", body)
		}
		if body, status := get(t, h, "http://a.example/"); body != `body of "2"` || !isHit(status) {
			t.Errorf("the new version again: %q, %s", body, status)
		}
	})
}

func TestAClientGets304OnlyForItsOwnCondition(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=10", `Etag: "1"`})
			if r.Header.Get("If-None-Match") == `"1"` {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			io.WriteString(w, "body")
		}}
		h := opened(t, options(t, rdb)).Handler(o)
		for _, when := range []string{"a miss", "a hit", "stale"} {
			if when == "stale" {
				time.Sleep(11 * time.Second)
			}
			res := ask(h, "GET", "http://a.example/", `If-None-Match: "0", W/"1"`)
			b, _ := io.ReadAll(res.Body)
			if res.StatusCode != http.StatusNotModified || len(b) > 0 || res.Header.Get("Etag") != `"1"` || res.Header.Get("Cache-Control") == "" || res.Header.Get("Content-Type") != "" {
				t.Errorf("%s, with a condition: %d, %q, %v", when, res.StatusCode, b, res.Header)
			}
			if when == "stale" {
				time.Sleep(11 * time.Second)
			}
			if body, _ := get(t, h, "http://a.example/"); body != "body" {
				t.Errorf("%s, without one: %q", when, body)
			}
		}
		if o.called() != 3 {
			t.Errorf("the handler was called %d times, want 3", o.called())
		}
	})
}

func TestStaleWhileRevalidate(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		var events expect.Events
		opt := options(t, rdb)
		opt.Namespace.Observer = &events
		opt.RenewBackground = true
		o := &origin{}
		o.serve = func(w http.ResponseWriter, r *http.Request) {
			if o.called() > 1 {
				time.Sleep(3 * time.Second)
			}
			set(w.Header(), []string{"Cache-Control: max-age=10, stale-while-revalidate=60"})
			io.WriteString(w, time.Now().Format(time.TimeOnly))
		}
		cache := opened(t, opt)
		h := cache.Handler(o)
		first, _ := get(t, h, "http://a.example/")
		time.Sleep(20 * time.Second)
		begun := time.Now()
		for range 100 {
			if body, status := get(t, h, "http://a.example/"); body != first || !strings.HasPrefix(status, "mayfly; hit; ttl=-1") {
				t.Fatalf("stale: %q, %s", body, status)
			}
		}
		if waited := time.Since(begun); waited > time.Second {
			t.Errorf("clients waited %v for the renewal", waited)
		}
		synctest.Wait()
		time.Sleep(4 * time.Second)
		body, status := get(t, h, "http://a.example/")
		if body == first || !isHit(status) || o.called() != 2 {
			t.Errorf("renewed: %q, %s, the handler was called %d times", body, status, o.called())
		}
		if n := events.Count(mayfly.KindRefresh, mayfly.OutcomeOK); n != 1 {
			t.Errorf("%d renewals were told of", n)
		}
	})
}

func TestTheOriginFails(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{
		"502":     func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(502); io.WriteString(w, "sorry") },
		"a panic": func(http.ResponseWriter, *http.Request) { panic("oh") },
		"aborts":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			for header, stands := range map[string]bool{
				"max-age=10":                     true, // by StaleIfError
				"max-age=10, stale-if-error=100": true,
				"max-age=10, must-revalidate":    false,
				"max-age=10, proxy-revalidate":   false,
				"s-maxage=10":                    false,
				"no-cache, max-age=10":           false,
			} {
				inBubble(t, func(t *testing.T, rdb *redis.Client) {
					broken := false
					o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
						if broken {
							fail(w, r)
							return
						}
						set(w.Header(), []string{"Cache-Control: " + header, `Etag: "1"`})
						io.WriteString(w, "good")
					}}
					h := opened(t, options(t, rdb)).Handler(o)
					get(t, h, "http://a.example/")
					time.Sleep(20 * time.Second)
					broken = true
					var body string
					panicked := func() (p any) {
						defer func() { p = recover() }()
						body, _ = get(t, h, "http://a.example/")
						return nil
					}()
					if calls := o.called(); stands {
						if get(t, h, "http://a.example/"); o.called() != calls {
							t.Errorf("%s: the handler is asked again at once", header)
						}
					}
					if good := body == "good"; good != stands || stands && panicked != nil {
						t.Errorf("%s: %q, panic %v, want a stale answer: %v", header, body, panicked, stands)
					}
					broken = false
					time.Sleep(2 * time.Second)
					if body, _ := get(t, h, "http://a.example/"); body != "good" {
						t.Errorf("%s: when it works again: %q", header, body)
					}
				})
			}
		})
	}
}

// A request that waits for another process's renewal does not wait long if that fails.
func TestARenewalThatFailsElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{}
		o.serve = func(w http.ResponseWriter, r *http.Request) {
			if o.called() > 1 {
				time.Sleep(500 * time.Millisecond)
				panic("oh")
			}
			w.Header().Set("Cache-Control", "max-age=10")
			io.WriteString(w, "good")
		}
		one, other := opened(t, options(t, rdb)).Handler(o), opened(t, options(t, rdb)).Handler(o)
		get(t, one, "http://a.example/")
		time.Sleep(20 * time.Second)
		done := make(chan bool)
		go func() { get(t, one, "http://a.example/"); close(done) }()
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		if body, _ := get(t, other, "http://a.example/"); body != "good" || time.Since(begun) > 2*time.Second || o.called() != 2 {
			t.Errorf("%q after %v, the handler was called %d times", body, time.Since(begun), o.called())
		}
		<-done
	})
}

func TestAnIndexOutlivesItsVariants(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := says("body", "Cache-Control: max-age=60", "Vary: X-Color")
		opt := options(t, rdb)
		opt.Namespace.TTL = 100 * time.Second
		opt.StaleIfError, opt.StaleKeep = -1, -1
		h := opened(t, opt).Handler(o)
		get(t, h, "http://a.example/", "X-Color: red")
		time.Sleep(55 * time.Second)
		get(t, h, "http://a.example/", "X-Color: blue")
		if _, status := get(t, h, "http://a.example/", "X-Color: red"); !isHit(status) {
			t.Errorf("the first: %s", status)
		}
		time.Sleep(55 * time.Second)
		if _, status := get(t, h, "http://a.example/", "X-Color: blue"); !isHit(status) {
			t.Errorf("the second: %s", status)
		}
		time.Sleep(20 * time.Second)
		get(t, h, "http://a.example/", "X-Color: blue") // which the index knows already
		time.Sleep(55 * time.Second)
		if _, status := get(t, h, "http://a.example/", "X-Color: blue"); !isHit(status) {
			t.Errorf("the second, stored anew: %s", status)
		}
	})
}

func TestEveryKeyHasAnEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=31536000", "Vary: X-Color", "Cache-Tag: a"})
			if r.URL.Path == "/private" {
				w.Header().Set("Cache-Control", "private")
			}
			io.WriteString(w, "body")
		}}
		opt := options(t, rdb)
		opt.Namespace.TTL = time.Hour
		cache := opened(t, opt)
		h := cache.Handler(o)
		for _, color := range []string{"red", "blue"} {
			get(t, h, "http://a.example/", "X-Color: "+color)
		}
		get(t, h, "http://a.example/private")
		if err := cache.Purge(t.Context(), httpcache.Target{Tag: "b"}); err != nil {
			t.Fatal(err)
		}
		cache.Close(context.Background())
		keys := rdb.Keys(t.Context(), "*").Val()
		if len(keys) != 6 { // an index, two variants, a pass, the purges, a barrier
			t.Errorf("keys: %q", keys)
		}
		for _, key := range keys {
			if ttl := rdb.TTL(t.Context(), key).Val(); ttl <= 0 || ttl > (opt.Namespace.TTL+time.Minute)*5/4 {
				t.Errorf("%q lives for %v", key, ttl)
			}
		}
	})
}
