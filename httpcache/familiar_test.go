package httpcache_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// sized serves pages that repeat their path, with as many bytes as the query asks for.
func sized(w http.ResponseWriter, r *http.Request) {
	n := 0
	fmt.Sscan(r.URL.RawQuery, &n)
	w.Header().Set("Cache-Control", "max-age=3600")
	io.WriteString(w, filled(r.URL.Path, n))
}

func filled(path string, n int) string { return strings.Repeat(path+" ", n/len(path)+1)[:n] }

// A page from Redis is written from a buffer that the next page may reuse. Many users of many pages each get their own.
func TestPagesFromLentMemory(t *testing.T) {
	h := must(t)(options(t, redistest.Start(t).Client()).New()).Handler(http.HandlerFunc(sized))
	var users sync.WaitGroup
	for u := range 8 {
		users.Go(func() {
			for i := range effort.Times(60, 2000) {
				path, n := fmt.Sprint("/page", (u*7+i)%5), 3000+1500*((u+i)%3)
				w := &slowly{ResponseRecorder: httptest.NewRecorder()}
				h.ServeHTTP(w, httptest.NewRequest("GET", fmt.Sprint("http://a.example", path, "?", n), nil))
				if got := w.Body.String(); got != filled(path, n) {
					t.Errorf("%s of %d bytes: %d bytes, %.20q ... %.20q", path, n, len(got), got, got[len(got)/2:])
				}
			}
		})
	}
	users.Wait()
}

// slowly is a writer that lets others run in the middle of a page.
type slowly struct{ *httptest.ResponseRecorder }

func (s *slowly) Write(b []byte) (int, error) {
	half := len(b) / 2
	s.ResponseRecorder.Write(b[:half])
	for range 10 {
		runtime.Gosched()
	}
	s.ResponseRecorder.Write(b[half:])
	return len(b), nil
}

// failing is a writer that returns an error, and still sends what was written.
type failing struct {
	*httptest.ResponseRecorder
	still []byte
}

func (f *failing) Write(b []byte) (int, error) {
	f.still = b
	return 0, errors.New("the client has left")
}

// A writer that failed may still send what was written, as HTTP/2 does when the client resets the stream.
func TestAWriterThatFailedKeepsItsPage(t *testing.T) {
	h := must(t)(options(t, redistest.Start(t).Client()).New()).Handler(http.HandlerFunc(sized))
	for range 3 { // stored, read, and read as the known page
		get(t, h, "http://a.example/a?5000")
		get(t, h, "http://a.example/b?5000")
	}
	left := &failing{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(left, httptest.NewRequest("GET", "http://a.example/a?5000", nil))
	for range 5 {
		get(t, h, "http://a.example/b?5000")
	}
	if got := string(left.still); got != filled("/a", 5000) {
		t.Errorf("it sends %.20q", got)
	}
}

// What a page looked like when it was last read says nothing about the page: another process may have stored another.
func TestFamiliarPagesThatChange(t *testing.T) {
	rdb := redistest.Start(t).Client()
	version := 0
	origin := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Version", fmt.Sprint(version))
		io.WriteString(w, filled(fmt.Sprint("/version", version), 2000<<(version%7)))
	})
	here, there := must(t)(options(t, rdb).New()), must(t)(options(t, rdb).New())
	h, elsewhere := here.Handler(origin), there.Handler(origin)
	for version = range 20 {
		if err := there.Purge(context.Background(), httpcache.Target{URL: "http://a.example/"}); err != nil {
			t.Fatal(err)
		}
		get(t, elsewhere, "http://a.example/")
		for range 3 {
			res := ask(h, "GET", "http://a.example/")
			body, _ := io.ReadAll(res.Body)
			if got := res.Header.Get("Version"); got != fmt.Sprint(version) || string(body) != filled(fmt.Sprint("/version", version), 2000<<(version%7)) {
				t.Fatalf("version %d: header of %s, %d bytes, %.20q", version, got, len(body), body)
			}
			if status := res.Header.Get("Cache-Status"); !isHit(status) {
				t.Fatalf("version %d: %s", version, status)
			}
		}
	}
}
