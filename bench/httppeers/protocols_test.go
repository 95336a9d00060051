package httppeers

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/gorilla/handlers"
	"github.com/gorilla/websocket"
	"github.com/rs/cors"
)

// around puts a handler behind a cache in the ways that people do: alone, and as middleware of routers that wrap their writers.
var around = map[string]func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler{
	"net/http": func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler { return cached(h) },
	"chi":      func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler { return chiAll(h, cached) },
	"gorilla": func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler {
		return gorillaAll(h, cached)
	},
	"echo": func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler { return echoAll(h, cached) },
	"gin":  func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler { return ginAll(h, cached) },
}

// everywhere runs a test of a handler in each of those ways.
func everywhere(t *testing.T, h http.Handler, test func(t *testing.T, site http.Handler)) {
	for name, put := range around {
		t.Run(name, func(t *testing.T) { test(t, put(h, newCache(t, nil).Handler)) })
	}
}

func serveOn(t *testing.T, site http.Handler) *httptest.Server {
	srv := httptest.NewServer(site)
	t.Cleanup(srv.Close)
	return srv
}

func isHit(res *http.Response) bool {
	return strings.HasPrefix(strings.Join(res.Header["Cache-Status"], ","), "mayfly; hit")
}

func TestWebsockets(t *testing.T) {
	up := websocket.Upgrader{}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer conn.Close()
		for {
			kind, b, err := conn.ReadMessage()
			if err != nil || conn.WriteMessage(kind, append([]byte("echo "), b...)) != nil {
				return
			}
		}
	})
	everywhere(t, h, func(t *testing.T, site http.Handler) {
		srv := serveOn(t, site)
		for range 2 {
			conn, _, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(srv.URL, "http")+"/ws", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.WriteMessage(websocket.TextMessage, []byte("hello"))
			if _, b, err := conn.ReadMessage(); err != nil || string(b) != "echo hello" {
				t.Errorf("%q, %v", b, err)
			}
		}
	})
}

func TestServerSentEvents(t *testing.T) {
	for _, accept := range []string{"text/event-stream", "*/*"} {
		next := make(chan string)
		h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("Cache-Control", "no-cache")
			for text := range next {
				fmt.Fprintf(w, "data: %s\n\n", text)
				http.NewResponseController(w).Flush()
			}
		})
		everywhere(t, h, func(t *testing.T, site http.Handler) {
			srv := serveOn(t, site)
			next = make(chan string)
			r, _ := http.NewRequestWithContext(t.Context(), "GET", srv.URL+"/events", nil)
			r.Header.Set("Accept", accept)
			go func() { next <- "one" }()
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			lines := bufio.NewReader(res.Body)
			for _, text := range []string{"one", "two", "three"} { // each is there before the next is sent
				if text != "one" {
					next <- text
				}
				line, err := lines.ReadString('\n')
				if lines.ReadString('\n'); err != nil || line != "data: "+text+"\n" {
					t.Errorf("%q, %v", line, err)
				}
			}
			close(next)
		})
	}
}

func TestServeContentWithRanges(t *testing.T) {
	text := strings.Repeat("0123456789", 1000)
	made := time.Now().Add(-time.Hour)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		http.ServeContent(w, r, "text.txt", made, strings.NewReader(text))
	})
	everywhere(t, h, func(t *testing.T, site http.Handler) {
		srv := serveOn(t, site)
		for n, want := range []struct {
			ranges string
			body   string
			status int
			hit    bool
		}{{"bytes=5-9", "56789", 206, false}, {"", text, 200, false}, {"", text, 200, true}, {"bytes=5-9", "56789", 206, true}, {"bytes=-3", "789", 206, true}, {"bytes=99999-", "", 416, true}} {
			var header []string
			if want.ranges != "" {
				header = []string{"Range: " + want.ranges}
			}
			body, res := get(t, srv.URL+"/text", header...)
			if res.StatusCode != want.status || want.status != 416 && body != want.body || isHit(res) != want.hit {
				t.Errorf("%d, %q: %d, %d bytes, %v", n, want.ranges, res.StatusCode, len(body), res.Header)
			}
		}
	})
}

func TestTimeoutHandler(t *testing.T) {
	for name, put := range map[string]func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler{
		"outside": func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler {
			return http.TimeoutHandler(cached(h), 50*time.Millisecond, "late")
		},
		"inside": func(h http.Handler, cached func(http.Handler) http.Handler) http.Handler {
			return cached(http.TimeoutHandler(h, 50*time.Millisecond, "late"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			slow := make(chan bool)
			h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				if r.URL.Path == "/slow" {
					<-slow
				}
				io.WriteString(w, "page")
			})
			srv := serveOn(t, put(h, newCache(t, nil).Handler))
			for n := range 3 {
				if body, res := get(t, srv.URL+"/fast"); body != "page" && body != "late" || n == 2 && body == "page" && !isHit(res) {
					t.Errorf("%q %v", body, res.Header)
				}
			}
			if body, res := get(t, srv.URL+"/slow"); body != "late" || res.StatusCode != 503 {
				t.Errorf("%d %q", res.StatusCode, body)
			}
			close(slow)
			for end := time.Now().Add(20 * time.Second); ; {
				body, res := get(t, srv.URL+"/slow")
				if body == "page" && isHit(res) {
					break
				}
				if body != "page" && body != "late" || time.Now().After(end) {
					t.Fatalf("%q %v", body, res.Header)
				}
			}
		})
	}
}

// CORS around the cache answers each origin for itself; inside, it says Vary: Origin.
func TestCORS(t *testing.T) {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, "page")
	})
	rule := cors.New(cors.Options{AllowedOrigins: []string{"http://a.example", "http://b.example"}, AllowCredentials: true})
	cached := newCache(t, nil).Handler
	for name, site := range map[string]http.Handler{"outside": rule.Handler(cached(h)), "inside": newCache(t, nil).Handler(rule.Handler(h))} {
		t.Run(name, func(t *testing.T) {
			srv := serveOn(t, site)
			for n := range 3 {
				for _, origin := range []string{"http://a.example", "http://b.example", "http://evil.example", ""} {
					var header []string
					if origin != "" {
						header = []string{"Origin: " + origin}
					}
					body, res := get(t, srv.URL+"/", header...)
					want := origin
					if origin == "http://evil.example" {
						want = ""
					}
					if got := res.Header.Get("Access-Control-Allow-Origin"); body != "page" || got != want || n == 2 && !isHit(res) {
						t.Errorf("round %d, %q: %q, allowed %q: %v", n, origin, body, got, res.Header)
					}
				}
			}
		})
	}
}

func TestCompression(t *testing.T) {
	text := strings.Repeat("some text ", 1000)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Type", "text/plain")
		io.WriteString(w, text)
	})
	cached := newCache(t, nil).Handler
	for name, site := range map[string]http.Handler{"outside": handlers.CompressHandler(cached(h)), "inside": newCache(t, nil).Handler(handlers.CompressHandler(h))} {
		t.Run(name, func(t *testing.T) {
			srv := serveOn(t, site)
			for n := range 3 {
				for _, coding := range []string{"gzip", "identity"} {
					body, res := get(t, srv.URL+"/", "Accept-Encoding: "+coding)
					if coding == "gzip" {
						z, err := gzip.NewReader(strings.NewReader(body))
						if err != nil {
							t.Fatalf("%v: %v", err, res.Header)
						}
						b, _ := io.ReadAll(z)
						body = string(b)
					}
					if body != text || (res.Header.Get("Content-Encoding") == "gzip") != (coding == "gzip") || n == 2 && !isHit(res) {
						t.Errorf("round %d, %s: %d bytes, %v", n, coding, len(body), res.Header)
					}
				}
			}
		})
	}
}

// A session around the cache, or inside: nobody gets another's page or cookie.
func TestSessions(t *testing.T) {
	m := scs.New()
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/login":
			m.Put(r.Context(), "user", r.URL.RawQuery)
		case "/public":
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "for all")
		default:
			w.Header().Set("Cache-Control", "private")
			io.WriteString(w, "page of "+m.GetString(r.Context(), "user"))
		}
	})
	cached := newCache(t, nil).Handler
	for name, site := range map[string]http.Handler{"outside": m.LoadAndSave(cached(h)), "inside": newCache(t, nil).Handler(m.LoadAndSave(h))} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					user := fmt.Sprint("user", i)
					b := &browser{site: site}
					b.get("/login?" + user)
					for range 5 {
						if got := b.get("/mine"); got != "page of "+user {
							t.Errorf("%s got %q", user, got)
						}
						if got := b.get("/public"); got != "for all" {
							t.Errorf("%s got %q", user, got)
						}
					}
				})
			}
			all.Wait()
		})
	}
}

func TestReverseProxyAndProtocols(t *testing.T) {
	made := 0
	backend := serveOn(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		made++
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Trailer", "X-Sum")
		fmt.Fprintf(w, "page %d", made)
		w.Header().Set("X-Sum", "7")
	}))
	to, _ := url.Parse(backend.URL)
	for name, protocol := range map[string]func(p *http.Protocols){
		"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"h2":       func(p *http.Protocols) { p.SetHTTP2(true) },
		"h2c":      func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(newCache(t, nil).Handler(httputil.NewSingleHostReverseProxy(to)))
			srv.Config.Protocols = new(http.Protocols)
			way := &http.Transport{Protocols: new(http.Protocols), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
			protocol(srv.Config.Protocols)
			protocol(way.Protocols)
			defer way.CloseIdleConnections()
			if name == "h2" {
				srv.EnableHTTP2 = true
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			first := ""
			for n := range 3 {
				res, err := (&http.Client{Transport: way}).Get(srv.URL + "/page")
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if n == 0 {
					first = string(b)
				}
				if err != nil || string(b) != first || isHit(res) != (n > 0) || res.Trailer.Get("X-Sum") != "7" || (res.ProtoMajor == 2) != (name != "HTTP/1.1") {
					t.Errorf("%d: %q %v %s %v %v", n, b, err, res.Proto, res.Header, res.Trailer)
				}
			}
		})
	}
}

// Users who ask at once through routers that use their contexts again get their own pages, and all public ones whole.
func TestRoutersAtOnce(t *testing.T) {
	for name, mount := range mounts {
		t.Run(name, func(t *testing.T) {
			srv := serveOn(t, mount(func(w http.ResponseWriter, id string) {
				w.Header().Set("Cache-Control", "max-age=0, stale-while-revalidate=60")
				if strings.HasPrefix(id, "private") {
					w.Header().Set("Cache-Control", "private")
				}
				time.Sleep(time.Millisecond)
				io.WriteString(w, "page of "+id)
			}, newCache(t, nil).Handler))
			var all sync.WaitGroup
			for i := range 20 {
				all.Go(func() {
					for n := range 10 {
						id := fmt.Sprint([]string{"private", "public"}[n%2], i/2+n)
						ctx, cancel := context.WithCancel(t.Context())
						if n%5 == 4 { // some leave
							time.AfterFunc(time.Millisecond, cancel)
						}
						r, _ := http.NewRequestWithContext(ctx, "GET", srv.URL+"/users/"+id, nil)
						res, err := http.DefaultClient.Do(r)
						if err == nil {
							var b []byte
							b, err = io.ReadAll(res.Body)
							res.Body.Close()
							if err == nil && string(b) != "page of "+id {
								t.Errorf("%s: got %q %v", id, b, res.Header)
							}
						}
						var failed net.Error
						if err != nil && ctx.Err() == nil && !errors.As(err, &failed) {
							t.Error(err)
						}
						cancel()
					}
				})
			}
			all.Wait()
		})
	}
}
