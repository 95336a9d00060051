package httpcache_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// queued requests url from h in the background, and returns a channel for the response.
func queued(t testing.TB, ctx context.Context, h http.Handler, url string, header ...string) <-chan *http.Response {
	got := make(chan *http.Response, 1)
	r := httptest.NewRequest("GET", url, nil).WithContext(ctx)
	set(r.Header, header)
	go func() {
		defer func() { recover() }()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got <- w.Result()
	}()
	synctest.Wait()
	return got
}

// byPath answers /pub for all, after two seconds, and other paths as they say. /free is answered at once.
func byPath(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasPrefix(r.URL.Path, "/pub"):
		time.Sleep(2 * time.Second)
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, "for all")
	case r.URL.Path == "/mine":
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
		time.Sleep(3 * time.Second)
	case r.URL.Path == "/events":
		set(w.Header(), []string{"Content-Type: text/event-stream; charset=utf-8", "Cache-Control: max-age=60"})
		http.NewResponseController(w).Flush()
		time.Sleep(3 * time.Second)
	case r.URL.Path == "/panic":
		panic(http.ErrAbortHandler)
	case r.URL.Path == "/poll":
		time.Sleep(time.Hour)
	}
}

// at checks how many requests run and how many wait.
func at(t testing.TB, c *httpcache.Cache, inFlight, queued int) {
	t.Helper()
	synctest.Wait()
	if s := c.Origin().Stats(); s.InFlight != inFlight || s.Queued != queued {
		t.Errorf("%d run and %d wait, want %d and %d", s.InFlight, s.Queued, inFlight, queued)
	}
}

// oneAtATime is a cache around byPath that admits one request at a time.
func oneAtATime(t *testing.T, rdb *redis.Client) (*httpcache.Cache, http.Handler, *expect.Events) {
	opt, events := options(t, rdb), new(expect.Events)
	opt.LoadLimit, opt.Namespace.Observer = 1, events
	c := opened(t, opt)
	return c, c.Handler(http.HandlerFunc(byPath)), events
}

func TestOnlyWhatMayBeForOthersQueues(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		c, h, _ := oneAtATime(t, rdb)
		first := queued(t, t.Context(), h, "http://a.example/pub/1")
		second := queued(t, t.Context(), h, "http://a.example/pub/2")
		at(t, c, 1, 1)
		begun := time.Now()
		for _, free := range [][]string{
			{"POST"}, {"HEAD"}, {"GET", "Range: bytes=0-1"}, {"GET", "Upgrade: websocket", "Connection: upgrade"}, {"GET", "Accept: text/event-stream"},
			{"GET", "Cache-Control: no-store"}, {"GET", "If-Match: \"a\""},
		} {
			ask(h, free[0], "http://a.example/free", free[1:]...)
			if took := time.Since(begun); took != 0 {
				t.Fatalf("%v waited %v", free, took)
			}
		}
		<-first
		<-second
		if took := time.Since(begun); took != 4*time.Second {
			t.Errorf("both took %v", took)
		}
		at(t, c, 0, 0)
	})
}

func TestATurnEndsWhenTheAnswerProvesToBeForOneClient(t *testing.T) {
	for _, path := range []string{"/mine", "/events"} {
		inBubble(t, func(t *testing.T, rdb *redis.Client) {
			c, h, _ := oneAtATime(t, rdb)
			first := queued(t, t.Context(), h, "http://a.example"+path)
			at(t, c, 0, 0) // while it runs
			<-first
			if path != "/mine" {
				return
			}
			// From now on the path is known, with any query: it does not queue.
			busy := queued(t, t.Context(), h, "http://a.example/pub/1")
			begun := time.Now()
			<-queued(t, t.Context(), h, "http://a.example/mine?since=1")
			if took := time.Since(begun); took != 3*time.Second {
				t.Errorf("it took %v", took)
			}
			<-busy
		})
	}
}

func TestATurnEndsWithItsHandler(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		c, h, _ := oneAtATime(t, rdb)
		queued(t, t.Context(), h, "http://a.example/panic")
		at(t, c, 0, 0)
		ctx, cancel := context.WithCancel(t.Context())
		left := queued(t, ctx, h, "http://a.example/pub/1")
		waits := queued(t, ctx, h, "http://a.example/pub/2")
		at(t, c, 1, 1)
		cancel() // the running request goes on for others, the waiting one leaves
		at(t, c, 1, 0)
		<-waits
		<-left
		at(t, c, 0, 0)
		poll := queued(t, t.Context(), h, "http://a.example/poll")
		at(t, c, 1, 0)
		time.Sleep(2500 * time.Millisecond) // a quarter of LoadTimeout
		at(t, c, 0, 0)
		<-poll
		at(t, c, 0, 0)
	})
}

// A range request for a stale page asks the handler without queueing.
func TestARangeOfAStaleAnswerDoesNotQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.LoadLimit = 1
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: max-age=10", "Etag: \"a\""})
			if r.URL.Path == "/busy" {
				time.Sleep(2 * time.Second)
			}
			io.WriteString(w, "body")
		}))
		ask(h, "GET", "http://a.example/")
		time.Sleep(20 * time.Second)
		busy, begun := queued(t, t.Context(), h, "http://a.example/busy"), time.Now()
		if ask(h, "GET", "http://a.example/", "Range: bytes=0-1"); time.Since(begun) != 0 {
			t.Errorf("it waited %v", time.Since(begun))
		}
		<-busy
	})
}

// hijackable is a client whose connection can be taken.
type hijackable struct{ *httptest.ResponseRecorder }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, other := net.Pipe()
	other.Close()
	return conn, nil, nil
}

func TestAHijackedConnectionHoldsNoTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		c := opened(t, options(t, rdb))
		goOn, done := make(chan struct{}), make(chan struct{})
		h := c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			<-goOn
		}))
		go func() {
			defer close(done)
			h.ServeHTTP(hijackable{httptest.NewRecorder()}, httptest.NewRequest("GET", "http://a.example/", nil))
		}()
		at(t, c, 0, 0)
		if s := c.Origin().Stats(); s.Entered != 1 {
			t.Errorf("%d entered", s.Entered)
		}
		close(goOn)
		<-done
	})
}

// A client that does not read holds up nobody but itself.
func TestASlowClientHoldsNoTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.LoadLimit = 1
		c := opened(t, opt)
		h := c.Handler(says("body", "Cache-Control: max-age=60"))
		w := &unread{ResponseRecorder: httptest.NewRecorder(), read: make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			h.ServeHTTP(w, httptest.NewRequest("GET", "http://a.example/", nil))
		}()
		at(t, c, 0, 0)
		if s := c.Origin().Stats(); s.Entered != 1 {
			t.Errorf("%d entered", s.Entered)
		}
		close(w.read)
		<-done
	})
}

type unread struct {
	*httptest.ResponseRecorder
	read chan struct{}
}

func (s *unread) Write(b []byte) (int, error) {
	<-s.read
	return s.ResponseRecorder.Write(b)
}

func TestARequestWithoutATurnGetsA503OrAStaleAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt, events := options(t, rdb), new(expect.Events)
		opt.LoadLimit, opt.LoadTimeout, opt.Namespace.Observer = 1, time.Second, events
		var slow atomic.Bool
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			if slow.Load() {
				time.Sleep(time.Minute)
			}
			io.WriteString(w, "old")
		}))
		ask(h, "GET", "http://a.example/old")
		time.Sleep(2 * time.Minute)
		for i, want := range []struct {
			url, body, says string
			code            int
		}{
			{"http://a.example/new", "Service Unavailable\n", "mayfly; key=\"http://a.example/new\"; detail=overloaded", 503},
			{"http://a.example/old", "old", "overloaded", 200},
		} {
			slow.Store(false)
			ask(h, "GET", fmt.Sprint("http://a.example/busy?", i)) // a path that is known holds its turn for LoadTimeout; other paths may take its place
			slow.Store(true)
			queued(t, t.Context(), h, fmt.Sprint("http://a.example/busy?", 10+i))
			time.Sleep(500 * time.Millisecond)
			queued(t, t.Context(), h, fmt.Sprint("http://a.example/busy?", 20+i)) // has the turn after that: none is free when the others have waited long enough
			time.Sleep(100 * time.Millisecond)
			begun := time.Now()
			leader, follower := queued(t, t.Context(), h, want.url), queued(t, t.Context(), h, want.url)
			for _, got := range []<-chan *http.Response{leader, follower} {
				res := <-got
				body, _ := io.ReadAll(res.Body)
				if status := res.Header.Get("Cache-Status"); res.StatusCode != want.code || string(body) != want.body || !strings.Contains(status, want.says) {
					t.Errorf("%s: %d %q, %q", want.url, res.StatusCode, body, status)
				}
				if retry := res.Header.Get("Retry-After"); want.code == 503 && retry != "1" {
					t.Errorf("Retry-After is %q", retry)
				}
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("%s: after %v", want.url, took)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// When the handler uses a cache of values with the same origin as the pages, a request takes one place there, not two.
func TestValuesInsideAPageTakeNoSecondTurn(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		db := mayfly.Must(mayfly.NewOrigin(mayfly.OriginOptions{Limit: 1}))
		ns := mayfly.Namespace[string, string]{Name: "v", Redis: rdb, Prefix: "v:", TTL: time.Minute}
		values := mayfly.Must(cacheaside.New(ns, func(context.Context, string) (string, error) { return "value", nil }, cacheaside.Options{Origin: db}))
		defer values.Close(context.Background())
		opt := options(t, rdb)
		opt.Origin = db
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			v, err := values.Get(r.Context(), "1")
			fmt.Fprint(w, v, err)
		}))
		begun := time.Now()
		if body, _ := get(t, h, "http://a.example/"); body != "value<nil>" || time.Since(begun) != 0 {
			t.Errorf("%q after %v", body, time.Since(begun))
		}
		if s := db.Stats(); s.Entered != 1 || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// Requests that stop waiting for another's answer ask the handler themselves, each in its turn.
func TestARequestThatWaitedLongEnoughQueuesToo(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt := options(t, rdb)
		opt.LoadLimit, opt.SharedWait = 1, time.Second
		o := &origin{serve: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			time.Sleep(2 * time.Second)
			io.WriteString(w, "body")
		}}
		c := opened(t, opt)
		h := c.Handler(o)
		var all []<-chan *http.Response
		for range 3 {
			all = append(all, queued(t, t.Context(), h, "http://a.example/"))
		}
		at(t, c, 1, 0)
		time.Sleep(1500 * time.Millisecond)
		at(t, c, 1, 2)
		for _, got := range all {
			if res := <-got; res.StatusCode != 200 {
				t.Error(res.Status)
			}
		}
		at(t, c, 0, 0)
	})
}

// A renewal that gets no turn leaves nothing behind that prevents the next one.
func TestARenewalDoesNotQueue(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		opt, events := options(t, rdb), new(expect.Events)
		opt.LoadLimit, opt.RenewBackground, opt.Namespace.Observer = 1, true, events
		var renewed int
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=10, stale-while-revalidate=600")
			if renewed++; r.URL.Path == "/busy" {
				time.Sleep(2 * time.Second)
			}
			io.WriteString(w, "body")
		}))
		ask(h, "GET", "http://a.example/")
		time.Sleep(20 * time.Second)
		busy := queued(t, t.Context(), h, "http://a.example/busy")
		ask(h, "GET", "http://a.example/")
		if synctest.Wait(); renewed != 2 || events.Count(mayfly.KindRefresh, mayfly.OutcomeDropped) != 1 {
			t.Errorf("%d calls, %v", renewed, events.All())
		}
		<-busy
		ask(h, "GET", "http://a.example/")
		if synctest.Wait(); renewed != 3 {
			t.Errorf("%d calls when the handler is free again", renewed)
		}
	})
}

func TestCloseReleasesWaitersForATurn(t *testing.T) {
	inBubble(t, func(t *testing.T, rdb *redis.Client) {
		c, h, _ := oneAtATime(t, rdb)
		first, second := queued(t, t.Context(), h, "http://a.example/pub/1"), queued(t, t.Context(), h, "http://a.example/pub/2")
		begun := time.Now()
		c.Close(context.Background())
		<-first
		if res := <-second; res.StatusCode != 200 || time.Since(begun) != 2*time.Second {
			t.Errorf("%s after %v", res.Status, time.Since(begun))
		}
		at(t, c, 0, 0)
	})
}

func TestALimitOfPagesIsValid(t *testing.T) {
	db := mayfly.Must(mayfly.NewOrigin(mayfly.OriginOptions{}))
	for want, l := range map[string]httpcache.Options{
		"Options.LoadLimit must be at most": {LoadLimit: 2_000_000},
		"Options.LoadLimit is 3":            {LoadLimit: 3, Origin: db},
		"Options.Origin was not made":       {Origin: new(mayfly.Origin)},
		"Options.LoadTimeout":               {LoadTimeout: -time.Second},
	} {
		opt := options(t, redis.NewClient(&redis.Options{}))
		opt.LoadLimit, opt.LoadTimeout, opt.Origin = l.LoadLimit, l.LoadTimeout, l.Origin
		if _, err := opt.New(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
