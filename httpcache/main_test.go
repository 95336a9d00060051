package httpcache_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/redistest"
)

// patient is the RedisTimeout of tests that are not about time: the machine may be busy.
var patient = 5 * time.Second

// setup is what a cache is made from.
type setup struct {
	Namespace mayfly.Namespace[string, []byte]
	httpcache.Options
}

func (s setup) New() (*httpcache.Cache, error) { return httpcache.New(s.Namespace, s.Options) }

// options are those of a cache that does not disturb other tests.
func options(t testing.TB, rdb redis.UniversalClient) setup {
	return setup{
		Namespace: mayfly.Namespace[string, []byte]{Name: "pages", Redis: rdb, Prefix: strings.ReplaceAll(t.Name(), "/", "_") + ":", TTL: 24 * time.Hour},
		Options:   httpcache.Options{RedisTimeout: patient},
	}
}

// must unwraps a constructor's result; the cache is closed at the end of the test.
func must(t testing.TB) func(c *httpcache.Cache, err error) *httpcache.Cache {
	return func(c *httpcache.Cache, err error) *httpcache.Cache {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close(context.Background()) })
		return c
	}
}

// impatient starts a server, and returns options for it with a short RedisTimeout and the events.
func impatient(t testing.TB) (*redistest.Server, setup, *expect.Events) {
	srv, events := redistest.Start(t), new(expect.Events)
	opt := options(t, srv.Client())
	opt.RedisTimeout = 100 * time.Millisecond
	opt.Namespace.Observer = events
	return srv, opt, events
}

// origin is a handler that counts its calls and answers by its function.
type origin struct {
	mu    sync.Mutex
	calls int
	serve http.HandlerFunc
}

func (o *origin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.calls++
	o.mu.Unlock()
	o.serve(w, r)
}

func (o *origin) called() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls
}

// says is an origin that sends a header, given as "Name: value" lines, and a body.
func says(body string, header ...string) *origin {
	return &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		set(w.Header(), header)
		io.WriteString(w, body)
	}}
}

func set(h http.Header, lines []string) {
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
}

// ask sends one request to a handler; header are "Name: value" lines.
func ask(h http.Handler, method, url string, header ...string) *http.Response {
	r := httptest.NewRequest(method, url, nil)
	set(r.Header, header)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// get asks for url and returns the body and the Cache-Status.
func get(t testing.TB, h http.Handler, url string, header ...string) (body, status string) {
	t.Helper()
	res := ask(h, "GET", url, header...)
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b), res.Header.Get("Cache-Status")
}

func isHit(status string) bool { return strings.HasPrefix(status, "mayfly; hit") }

// TestMain runs the tests, or one of the processes that they start from this same program, and looks for goroutines of the cache that
// outlived it.
func TestMain(m *testing.M) {
	os.Exit(processes.Main(m, "mayfly/httpcache.(*"))
}
