package httpcache_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// site serves a handler behind a cache, on loopback.
type site struct {
	*httptest.Server
	cache  *httpcache.Cache
	events *expect.Events
}

func serve(t *testing.T, serve http.HandlerFunc, change ...func(o *setup)) *site {
	t.Helper()
	s := &site{events: &expect.Events{}}
	opt := options(t, redistest.Start(t).Client())
	opt.Namespace.Observer = s.events
	for _, f := range change {
		f(&opt)
	}
	s.cache = must(t)(opt.New())
	s.Server = httptest.NewUnstartedServer(s.cache.Handler(serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// fetch returns a whole answer.
func (s *site) fetch(t *testing.T, path string) (res *http.Response, body string, err error) {
	t.Helper()
	res, err = s.Client().Get(s.URL + path)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

const fresh = "max-age=60"

func TestTheFirstHalfArrivesBeforeTheSecondIsWritten(t *testing.T) {
	half, arrived := strings.Repeat("x", 5<<10), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		io.WriteString(w, half)
		w.(http.Flusher).Flush()
		<-arrived
		io.WriteString(w, half)
	})
	res, err := s.Client().Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.ReadFull(res.Body, make([]byte, len(half))); err != nil {
		t.Fatal(err)
	}
	close(arrived)
	if rest, err := io.ReadAll(res.Body); err != nil || string(rest) != half {
		t.Fatalf("the second half: %d bytes, %v", len(rest), err)
	}
	if res, body, _ := s.fetch(t, "/"); body != half+half || !isHit(res.Header.Get("Cache-Status")) {
		t.Errorf("again: %d bytes, %s", len(body), res.Header.Get("Cache-Status"))
	}
}

// A client that reads nothing delays neither the handler nor other requests for the same page.
func TestAClientThatStandsStillHoldsUpNobody(t *testing.T) {
	body := strings.Repeat("x", 7<<20) // more than a socket buffers
	var calls atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		w.Header().Set("Cache-Control", fresh)
		for part := range 112 {
			io.WriteString(w, body[part<<16:(part+1)<<16])
		}
	})
	conn, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", s.Listener.Addr())
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, got, err := s.fetch(t, "/"); err != nil || got != body || calls.Load() != 1 {
		t.Errorf("another client: %d bytes, %v; the handler was called %d times", len(got), err, calls.Load())
	}
}

func TestAClientThatLeavesDoesNotEndTheFill(t *testing.T) {
	asked, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		close(asked)
		<-leave
		if r.Context().Err() != nil {
			t.Error("the handler's context ended with the client")
		}
		io.WriteString(w, "second")
	})
	inner, noticed := s.Config.Handler, make(chan struct{})
	notice := sync.OnceFunc(func() { close(noticed) })
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		context.AfterFunc(r.Context(), notice)
		inner.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	cancel()
	res.Body.Close()
	<-noticed
	close(leave)
	expect.Eventually(t, "it is stored", func() bool { return s.cache.Stats().Stored == 1 })
	if res, body, err := s.fetch(t, "/"); err != nil || body != "first second" || !isHit(res.Header.Get("Cache-Status")) {
		t.Errorf("%q, %v", body, err)
	}
}

// A handler whose client has left may return as if it were done: its answer is incomplete, and not stored.
func TestAStoppedHandlersAnswerIsNotStored(t *testing.T) {
	stopped := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		io.WriteString(w, "half")
		w.(http.Flusher).Flush()
		<-w.(interface{ CloseNotify() <-chan bool }).CloseNotify() // as frameworks do
		<-r.Context().Done()
		close(stopped)
	}, func(o *setup) { o.SharedTimeout = 50 * time.Millisecond })
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	if _, err := s.Client().Do(req); err != nil {
		t.Fatal(err)
	}
	cancel()
	<-stopped
	expect.Eventually(t, "an event says so", func() bool { return s.events.Count(mayfly.KindFill, mayfly.OutcomeFailed) == 1 })
	if n := s.cache.Stats().Stored; n != 0 {
		t.Errorf("%d stored", n)
	}
}

// The handler of an answer that is for its client alone learns that the client has left, as without a cache.
func TestAnAnswerForOneEndsWithItsClient(t *testing.T) {
	ended := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "GET", s.URL, nil)
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); line != "data: 1\n" {
		t.Errorf("%q, %v", line, err)
	}
	cancel()
	<-ended
}

func TestAnIncompleteAnswerIsNotStored(t *testing.T) {
	for name, end := range map[string]func(w http.ResponseWriter){
		"shorter than declared": func(w http.ResponseWriter) {},
		"a panic":               func(w http.ResponseWriter) { panic("oh") },
		"an abort":              func(w http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Cache-Control", fresh)
				w.Header().Set("Content-Length", "100")
				io.WriteString(w, "half")
				w.(http.Flusher).Flush()
				end(w)
			})
			for range 2 {
				res, body, err := s.fetch(t, "/")
				if err == nil || body != "half" {
					t.Errorf("%v, %q, %v: the client did not get what it would have got without the cache", res, body, err)
				}
			}
			if n := s.events.Count(mayfly.KindFill, mayfly.OutcomeFailed); n != 2 {
				t.Errorf("%d events say so", n)
			}
			if n := s.cache.Stats().Stored; n != 0 {
				t.Errorf("%d stored", n)
			}
		})
	}
}

func TestABodyOverMaxBodyStreams(t *testing.T) {
	body := strings.Repeat("0123456789", 1000)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		if r.URL.Path == "/declared" {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		for i := range 100 {
			io.WriteString(w, body[i*100:(i+1)*100])
		}
	}, func(o *setup) { o.MaxBody = 5000 })
	for _, path := range []string{"/", "/declared"} {
		for range 2 {
			if res, got, err := s.fetch(t, path); err != nil || got != body || isHit(res.Header.Get("Cache-Status")) {
				t.Errorf("%s: %d bytes, %v, %s", path, len(got), err, res.Header.Get("Cache-Status"))
			}
		}
	}
	if n := s.cache.Stats().Stored; n != 0 {
		t.Errorf("%d stored", n)
	}
}

func TestInterimAnswersPassAtOnce(t *testing.T) {
	seen := make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</a.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Link")
		<-seen
		w.Header().Set("Cache-Control", fresh)
		io.WriteString(w, "page")
	})
	req, _ := http.NewRequest("GET", s.URL, nil)
	req = req.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
		Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
			if code != http.StatusEarlyHints || h.Get("Link") == "" {
				t.Errorf("%d, %v", code, h)
			}
			close(seen)
			return nil
		},
	}))
	res, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res, body, _ := s.fetch(t, "/"); body != "page" || res.Header.Get("Link") != "" || !isHit(res.Header.Get("Cache-Status")) {
		t.Errorf("%q, %v", body, res.Header)
	}
}

// Early hints of an origin that then failed are not in the stale answer.
func TestAHintDoesNotGetIntoAStaleAnswer(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			w.Header().Set("Link", "</a.css>")
			w.WriteHeader(http.StatusEarlyHints)
			panic("oh")
		}
		set(w.Header(), []string{"Cache-Control: max-age=10", "Age: 20"})
		io.WriteString(w, "page")
	})
	s.fetch(t, "/")
	if res, body, err := s.fetch(t, "/"); err != nil || body != "page" || res.Header.Get("Link") != "" {
		t.Errorf("%q, %v, %v", body, res, err)
	}
}

func TestTrailers(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		w.Header().Set("Trailer", "X-Sum")
		io.WriteString(w, "body")
		w.Header().Set("X-Sum", "4")
		w.Header().Set(http.TrailerPrefix+"X-Late", "yes")
	})
	for _, when := range []string{"a miss", "a hit"} {
		res, body, err := s.fetch(t, "/")
		if err != nil || body != "body" || res.Trailer.Get("X-Sum") != "4" || res.Trailer.Get("X-Late") != "yes" {
			t.Errorf("%s: %q, trailers %v, %v", when, body, res.Trailer, err)
		}
		if hit := isHit(res.Header.Get("Cache-Status")); hit != (when == "a hit") {
			t.Errorf("%s: %v", when, res.Header)
		}
	}
}

func TestUpgradesPassUntouched(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := rw.ReadString('\n')
		rw.WriteString(line)
		rw.Flush()
	})
	for _, header := range []string{"Connection: Upgrade\r\nUpgrade: echo\r\n", ""} { // asked for, or taken
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: a.example\r\n%s\r\nhello\n", header)
		if got, err := io.ReadAll(conn); err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 101")) || !bytes.HasSuffix(got, []byte("\r\nhello\n")) {
			t.Errorf("%q, %v", got, err)
		}
		conn.Close()
	}
}

// A handler's writer behaves as it does without the cache.
func TestTheWriter(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		c := http.NewResponseController(w)
		if err := errors.Join(c.SetWriteDeadline(time.Now().Add(time.Minute)), c.SetReadDeadline(time.Now().Add(time.Minute))); err != nil {
			t.Error(err)
		}
		switch r.URL.Path {
		case "/declared":
			w.Header().Set("Content-Length", "4")
			if _, err := io.WriteString(w, "much"); err != nil {
				t.Error(err)
			}
			if _, err := io.WriteString(w, "more"); err != http.ErrContentLength {
				t.Errorf("more than declared: %v", err)
			}
		case "/none":
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "body"); err != http.ErrBodyNotAllowed {
				t.Errorf("a body of a 204: %v", err)
			}
		case "/readfrom":
			if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("much")); n != 4 || err != nil {
				t.Error(n, err)
			}
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
		case "/empty":
			w.WriteHeader(http.StatusOK)
		case "/nothing": // which may be answered after it
		}
	})
	for path, want := range map[string]string{"/declared": "much", "/none": "", "/readfrom": "much", "/empty": "", "/nothing": ""} {
		_, body, err := s.fetch(t, path)
		if err != nil || body != want {
			t.Errorf("%s: %q, %v", path, body, err)
		}
		res, body, err := s.fetch(t, path)
		if hit := isHit(res.Header.Get("Cache-Status")); err != nil || body != want || hit == (path == "/declared" || path == "/nothing") {
			t.Errorf("%s again: %q, %v, %v", path, body, err, res.Header)
		}
	}
}

// Fields that handlers around the cache set are neither stored nor lost.
func TestHandlersAroundTheCache(t *testing.T) {
	n := 0
	o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Get("X-Request-Id") == "" {
			t.Error("the handler does not see what is set")
		}
		w.Header().Del("X-Powered-By")
		set(w.Header(), []string{"Cache-Control: max-age=60", "X-Own: yes"})
	}}
	inner := must(t)(options(t, redistest.Start(t).Client()).New()).Handler(o)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		set(w.Header(), []string{fmt.Sprint("X-Request-Id: ", n), "X-Powered-By: us"})
		inner.ServeHTTP(w, r)
	})
	for i := 1; i <= 2; i++ {
		res := ask(h, "GET", "http://a.example/")
		if got := res.Header.Values("X-Request-Id"); len(got) != 1 || got[0] != fmt.Sprint(i) || res.Header.Get("X-Own") != "yes" {
			t.Errorf("%d: %v", i, res.Header)
		}
		if i == 1 && res.Header.Get("X-Powered-By") != "" {
			t.Error("what the handler took away is back")
		}
	}
}
