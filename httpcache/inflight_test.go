package httpcache_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// stuck is a client that reads nothing until it is let go.
type stuck struct {
	*httptest.ResponseRecorder
	begun func() // when there is something to read
	goOn  chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.begun()
	<-s.goOn
	return len(b), nil
}

// crowdOfStuck sends requests of n clients that read nothing, and returns when each got the beginning of its answer. end lets them go on.
func crowdOfStuck(n int, h http.Handler, url func(i int) string) (answers []*stuck, end func()) {
	goOn := make(chan struct{})
	var began, ended sync.WaitGroup
	answers = make([]*stuck, n)
	for i := range answers {
		began.Add(1)
		s := &stuck{ResponseRecorder: httptest.NewRecorder(), begun: sync.OnceFunc(began.Done), goOn: goOn}
		answers[i] = s
		ended.Go(func() {
			h.ServeHTTP(s, httptest.NewRequest("GET", url(i), nil))
			s.begun() // at the latest
		})
	}
	began.Wait()
	return answers, func() { close(goOn); ended.Wait() }
}

// held is what the program holds.
func held() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// large is a handler whose body has size bytes, which it does not hold in memory.
func large(size int) *origin {
	part := bytes.Repeat([]byte("x"), 64<<10)
	return &origin{serve: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		for n := 0; n < size; n += len(part) {
			if _, err := w.Write(part[:min(len(part), size-n)]); err != nil {
				return
			}
		}
	}}
}

// Clients that never read hold no more memory than the option says, whether the handler answers them or the cache.
func TestClientsThatNeverRead(t *testing.T) {
	clients, size := effort.Times(60, 1000), effort.Times(512<<10, 8<<20)
	opt := options(t, redistest.Start(t).Client())
	if effort.Long() { // the double would hold what is stored in this same heap
		opt.Namespace.Redis = realredis.Start(t, realredis.Options{}).Client()
	}
	opt.MaxBody, opt.MaxInFlight = int64(size), int64(4*size)
	cache := must(t)(opt.New())
	h := cache.Handler(large(size))
	for name, pages := range map[string]int{"each another page": clients, "all one page": 1, "a few pages": 10} {
		url := func(i int) string { return fmt.Sprintf("http://a.example/%d/%d", pages, i%pages) }
		bounded := func(how string) {
			t.Helper()
			before := held()
			_, end := crowdOfStuck(clients, h, url)
			if how == "misses" {
				expect.OK(t, opt.Namespace.Redis.FlushAll(t.Context()).Err())
			}
			now := held() - before
			end()
			t.Logf("%s, %s: %d clients, bodies of %d KB: %d KB", name, how, clients, size>>10, now>>10)
			if most := opt.MaxInFlight + int64(clients)*(200<<10); now > most {
				t.Errorf("%s, %s: %d KB are held, want %d at most", name, how, now>>10, most>>10)
			}
		}
		bounded("misses")
		for i := range min(pages, 20) {
			h.ServeHTTP(&discard{header: make(http.Header)}, httptest.NewRequest("GET", url(i), nil))
		}
		bounded("hits")
	}
	get(t, h, "http://a.example/1/0")
	if body, status := get(t, h, "http://a.example/1/0"); len(body) != size || !isHit(status) {
		t.Errorf("when all have gone: %d bytes, %s", len(body), status)
	}
}

// An answer for which there is no room streams to its client as it is written, and is not stored. When there is room again, it is stored.
func TestWithoutRoomAnAnswerStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 256 << 10
		events, asked, written := new(expect.Events), 0, make(chan bool)
		var ends []func()
		server := redistest.Start(t)
		opt := options(t, server.Client())
		opt.Namespace.Observer, opt.MaxBody, opt.MaxInFlight = events, size, 2*size
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked++
			w.Header().Set("Cache-Control", fresh)
			large(size).serve(w, r)
			if r.URL.Path == "/slow" {
				close(written)
			}
		}))
		stored := func(path string) bool {
			t.Helper()
			for range 2 {
				body, status := get(t, h, "http://a.example"+path)
				if synctest.Wait(); len(body) != size {
					t.Errorf("%s: %d bytes, %s", path, len(body), status)
				}
				if isHit(status) {
					return true
				}
			}
			return false
		}
		if !stored("/first") {
			t.Fatal("with all the room there is it is not stored")
		}
		for i := range 2 { // one after the other: half of the room each
			_, end := crowdOfStuck(1, h, func(int) string { return fmt.Sprint("http://a.example/", i) })
			synctest.Wait()
			ends = append(ends, end)
		}
		if stored("/second") || events.Count(mayfly.KindFill, mayfly.OutcomeDropped) == 0 {
			t.Error("without room it is stored, or no event reports that it is not")
		}
		before := asked
		server.ClearLog()
		if stored("/first") || asked == before {
			t.Error("without room a stored body was served")
		}
		if log := strings.Join(server.Log(), "\n"); strings.Count(log, "http://a.example/first") != 1 {
			t.Errorf("without room it was read more than once:\n%s", log)
		}
		s := &stuck{ResponseRecorder: httptest.NewRecorder(), begun: func() {}, goOn: make(chan struct{})}
		var all sync.WaitGroup
		all.Go(func() { h.ServeHTTP(s, httptest.NewRequest("GET", "http://a.example/slow", nil)) })
		synctest.Wait()
		select {
		case <-written:
			t.Error("a handler without room has written all, and nobody has read it")
		default:
		}
		close(s.goOn)
		select {
		case <-written:
		case <-time.After(time.Minute):
		}
		all.Wait()
		for _, end := range ends {
			end()
		}
		time.Sleep(2 * time.Second)
		if !stored("/second") || !stored("/first") {
			t.Error("with room again it is not stored")
		}
	})
}

// Small answers are stored and served, whoever holds the room.
func TestSmallAnswersNeedNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opt := options(t, redistest.Start(t).Client())
		opt.MaxBody, opt.MaxInFlight = 256<<10, 512<<10
		big := large(256 << 10)
		h := opened(t, opt).Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, "/big") {
				big.serve(w, r)
				return
			}
			w.Header().Set("Cache-Control", fresh)
			io.WriteString(w, strings.Repeat("x", 60<<10))
		}))
		_, end := crowdOfStuck(4, h, func(i int) string { return fmt.Sprint("http://a.example/big/", i) })
		defer end()
		get(t, h, "http://a.example/small")
		if body, status := get(t, h, "http://a.example/small"); len(body) != 60<<10 || !isHit(status) {
			t.Errorf("%d bytes: %s", len(body), status)
		}
	})
}

// A claim ends with the work that it is for, even if a client is still reading.
func TestNoHeartBeatAfterTheFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := redistest.Start(t)
		h := opened(t, options(t, server.Client())).Handler(says("page", "Cache-Control: "+fresh))
		_, end := crowdOfStuck(1, h, func(int) string { return "http://a.example/" })
		defer end()
		time.Sleep(100 * time.Millisecond)
		server.ClearLog()
		time.Sleep(20 * time.Second)
		if beats := server.Log(); len(beats) > 0 {
			t.Errorf("%d commands after the answer was stored, such as %s", len(beats), beats[0])
		}
	})
}
