package httpcache_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/mayflycache/mayfly/redistest"
)

// town is a bubble with a cache, for tests of the handlers around it.
type town struct {
	*testing.T
	net     *pipes
	visitor *http.Transport
	cached  func(http.Handler) http.Handler
}

// visit runs test in a town.
func visit(t *testing.T, test func(t town)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)))
		net := newPipes()
		cache := must(t)(options(t, redistest.Start(t).Client()).New())
		test(town{t, net, net.client(), cache.Handler})
		net.close()
		synctest.Wait()
	})
}

// get asks for a path of a server; header are "Name: value" lines.
func (t town) get(server, path string, header ...string) (res *http.Response, body string) {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+server+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	set(r.Header, header)
	if res, err = t.visitor.RoundTrip(r); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	synctest.Wait()
	return res, string(b)
}

// wants checks an answer: its status, the beginning of its Cache-Status, and its body.
func (t town) wants(res *http.Response, body string, status int, how, text string) {
	t.Helper()
	if res.StatusCode != status || !strings.HasPrefix(res.Header.Get("Cache-Status"), "mayfly; "+how) || body != text {
		t.Errorf("%d %.100q, want %d %s %q; header: %.300v", res.StatusCode, body, status, how, text, res.Header)
	}
}

// A FileServer sends Last-Modified and no lifetime: its answers are fresh for a tenth of the file's age, and then validated.
func TestFileServer(t *testing.T) {
	dir := t.TempDir()
	write := func(text string, age time.Duration) {
		path := filepath.Join(dir, "a.txt")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC).Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("0123456789", 100*time.Second)
	visit(t, func(t town) {
		at := t.net.serve("files", t.cached(http.FileServer(http.Dir(dir))))
		ask := func(status int, how, text string, header ...string) *http.Response {
			t.Helper()
			res, body := t.get(at, "/a.txt", header...)
			t.wants(res, body, status, how, text)
			return res
		}
		ask(200, "fwd=uri-miss; ttl=10; stored", "0123456789")
		modified := ask(200, "hit", "0123456789").Header.Get("Last-Modified")
		ask(206, "hit", "345", "Range: bytes=3-5")
		ask(416, "hit", "", "Range: bytes=10-")
		ask(304, "hit", "", "If-Modified-Since: "+modified)
		write("a new text", 50*time.Second)
		ask(200, "hit", "0123456789") // for a tenth of the file's age
		time.Sleep(10 * time.Second)
		ask(200, "fwd=stale; ttl=6; stored", "a new text")
		time.Sleep(10 * time.Second)
		ask(200, "fwd=stale; fwd-status=304", "a new text")
		ask(200, "hit", "a new text")

		for range 2 { // neither answer declares a lifetime
			res, _ := t.get(at, "/none.txt")
			if how := res.Header.Get("Cache-Status"); res.StatusCode != 404 || isHit(how) || strings.Contains(how, "stored") {
				t.Errorf("no such file: %d %s", res.StatusCode, how)
			}
			if res, _ = t.get(at, "/index.html"); res.StatusCode != 301 || isHit(res.Header.Get("Cache-Status")) {
				t.Errorf("a redirect: %d %s", res.StatusCode, res.Header)
			}
		}
	})
}

// A handler that compresses says Vary: Accept-Encoding, on whichever side of the cache it stands: each coding is a variant.
func TestGzipHandler(t *testing.T) {
	text := strings.Repeat("mayfly ", 1000)
	for _, x := range []struct {
		name  string
		stage func(t town, h http.Handler) http.Handler
	}{
		{"behind the cache", func(t town, h http.Handler) http.Handler { return t.cached(gzhttp.GzipHandler(h)) }},
		{"before the cache", func(t town, h http.Handler) http.Handler { return gzhttp.GzipHandler(t.cached(h)) }},
		{"on both sides", func(t town, h http.Handler) http.Handler {
			return gzhttp.GzipHandler(t.cached(gzhttp.GzipHandler(h)))
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			visit(t, func(t town) {
				site := says(text, "Cache-Control: max-age=60", "Content-Type: text/plain", `ETag: "a"`)
				at := t.net.serve("site", x.stage(t, site))
				for range 3 {
					res, body := t.get(at, "/", "Accept-Encoding: gzip")
					if res.Header.Get("Content-Encoding") != "gzip" {
						t.Fatalf("not compressed: %v", res.Header)
					}
					r, err := gzip.NewReader(strings.NewReader(body))
					if err != nil {
						t.Fatal(err)
					}
					if plain, err := io.ReadAll(r); err != nil || string(plain) != text {
						t.Errorf("unpacked: %d bytes, %v", len(plain), err)
					}
					if res, body = t.get(at, "/"); res.Header.Get("Content-Encoding") != "" || body != text {
						t.Errorf("plain: %d bytes, %v", len(body), res.Header)
					}
				}
				if n := site.called(); n != 2 {
					t.Errorf("the handler ran %d times for two codings", n)
				}
			})
		})
	}
}

// A TimeoutHandler answers 503 when its handler is late. The 503 is not stored, whether the cache stands inside or outside.
func TestTimeoutHandler(t *testing.T) {
	for _, x := range []struct {
		name  string
		stage func(t town, h http.Handler) http.Handler
		how   string // of the late answer: the TimeoutHandler's own knows no cache
	}{
		{"behind the cache", func(t town, h http.Handler) http.Handler {
			return t.cached(http.TimeoutHandler(h, time.Second, "late"))
		}, "mayfly; fwd=uri-miss"},
		{"before the cache", func(t town, h http.Handler) http.Handler {
			return http.TimeoutHandler(t.cached(h), time.Second, "late")
		}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			visit(t, func(t town) {
				delay := 2 * time.Second
				at := t.net.serve("site", x.stage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					select {
					case <-time.After(delay):
					case <-r.Context().Done():
						return
					}
					w.Header().Set("Cache-Control", "max-age=60")
					io.WriteString(w, "in time")
				})))
				res, body := t.get(at, "/a")
				if how := res.Header.Get("Cache-Status"); res.StatusCode != 503 || body != "late" || !strings.HasPrefix(how, x.how) {
					t.Errorf("%d %q %q", res.StatusCode, body, how)
				}
				time.Sleep(10 * time.Second)
				delay = 0
				res, body = t.get(at, "/b")
				t.wants(res, body, 200, "fwd=uri-miss", "in time")
				res, body = t.get(at, "/b")
				t.wants(res, body, 200, "hit", "in time")
			})
		})
	}
}

// Server-sent events reach the client one by one while it listens, and end when it leaves.
func TestServerSentEvents(t *testing.T) {
	for _, header := range [][]string{{}, {"Cache-Control: no-cache"}, {"Cache-Control: no-store"}, {"Cache-Control: max-age=60"}} {
		for _, accept := range []string{"text/event-stream", "*/*"} {
			t.Run(fmt.Sprint(header, accept), func(t *testing.T) {
				visit(t, func(t town) {
					next, over := make(chan int), make(chan error)
					at := t.net.serve("site", t.cached(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						set(w.Header(), header)
						w.Header().Set("Content-Type", "text/event-stream")
						flush := http.NewResponseController(w)
						for {
							select {
							case i := <-next:
								fmt.Fprintf(w, "data: %d\n\n", i)
								if err := flush.Flush(); err != nil {
									t.Error(err)
								}
							case <-r.Context().Done():
								over <- r.Context().Err()
								return
							}
						}
					})))
					ctx, leave := context.WithCancel(t.Context())
					r, _ := http.NewRequestWithContext(ctx, "GET", "http://"+at+"/", nil)
					r.Header.Set("Accept", accept)
					first := make(chan struct{})
					go func() { next <- 0; close(first) }()
					res, err := t.visitor.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					<-first
					events := bufio.NewScanner(res.Body)
					for i := range 10 {
						if i > 0 {
							next <- i
						}
						if !events.Scan() || events.Text() != fmt.Sprintf("data: %d", i) {
							t.Fatalf("event %d is %q, %v", i, events.Text(), events.Err())
						}
						events.Scan()
						time.Sleep(time.Minute)
					}
					leave()
					begun := time.Now()
					<-over
					if waited := time.Since(begun); waited > 0 && len(header) == 0 {
						t.Errorf("the handler went on for %v when its client had left", waited)
					}
					res.Body.Close()
				})
			})
		}
	}
}

// A WebSocket passes untouched and without delay, both when the handler takes the connection and through a proxy.
func TestWebSocket(t *testing.T) {
	for _, proxied := range []bool{false, true} {
		t.Run(fmt.Sprint("through a proxy: ", proxied), func(t *testing.T) {
			visit(t, func(t town) {
				var site http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					conn, rw, err := http.NewResponseController(w).Hijack()
					if err != nil {
						t.Error(err)
						return
					}
					defer conn.Close()
					io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX: "+r.Header.Get("Sec-WebSocket-Key")+"\r\n\r\n")
					io.Copy(conn, rw)
				})
				if proxied {
					site = t.net.proxy(t.net.serve("behind", site))
				}
				at := t.net.serve("site", t.cached(site))
				conn, err := t.visitor.DialContext(t.Context(), "tcp", at+":80")
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go io.WriteString(conn, "GET / HTTP/1.1\r\nHost: site\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: k\r\n\r\n")
				in := bufio.NewReader(conn)
				res, err := http.ReadResponse(in, nil)
				if err != nil || res.StatusCode != 101 || res.Header.Get("X") != "k" || res.Header.Get("Cache-Status") != "" {
					t.Fatalf("%v %v", res, err)
				}
				for _, frame := range []string{"ping", "pong"} {
					go io.WriteString(conn, frame)
					got := make([]byte, len(frame))
					if _, err := io.ReadFull(in, got); err != nil || string(got) != frame {
						t.Errorf("echo %q, %v", got, err)
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}

// Caches in a row each say what they did, and the age counts through all of them.
func TestCacheBehindCache(t *testing.T) {
	visit(t, func(t town) {
		site := says("text", "Cache-Control: max-age=60")
		o := options(t, redistest.Start(t).Client())
		o.Server, o.AnyHost = "inner", true
		inner := t.net.serve("inner", must(t)(o.New()).Handler(site))
		outer := t.net.serve("outer", t.cached(t.net.proxy(inner)))
		t.get(inner, "/")
		time.Sleep(10 * time.Second)
		for _, want := range []string{`mayfly; fwd=uri-miss`, "mayfly; hit; ttl=50"} {
			res, body := t.get(outer, "/")
			how := strings.Join(res.Header["Cache-Status"], ", ")
			first, last, _ := strings.Cut(how, ", ")
			if body != "text" || !strings.HasPrefix(first, "inner; hit; ttl=50") || !strings.HasPrefix(last, want) || res.Header.Get("Age") != "10" {
				t.Errorf("%q %v, want %s", body, res.Header, want)
			}
		}
		if n := site.called(); n != 1 {
			t.Errorf("the handler ran %d times", n)
		}
	})
}
