package httpcache_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
)

// oddity is a handler's odd behaviour, and what the cache should do with it.
type oddity struct {
	name   string
	serve  http.HandlerFunc
	stored bool
	says   string // in the error of an Event; "": nothing is wrong
}

// answers is a handler that sends this header and a short body.
func answers(header http.Header) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		io.WriteString(w, "a body")
	}
}

func header(lines ...string) http.Header {
	h := http.Header{}
	set(h, lines)
	return h
}

// with is header, and more.
func with(name string, values []string, more ...string) http.Header {
	h := header(more...)
	h[name] = values
	return h
}

// oddities are the worst answers of handlers and the origins behind them.
func oddities() []oddity {
	const (
		keep    = "Cache-Control: " + fresh
		aborted = "the handler panicked or exited before its answer was whole"
	)
	most := effort.Times(300<<10, 1<<20) // no more is stored of a header
	huge := strings.Repeat("x", most)
	fields := header(keep)
	for i := range effort.Times(2000, 10_000) {
		fields.Set(fmt.Sprint("X-Field-", i), "v")
	}
	begins := func(w http.ResponseWriter, header ...string) {
		set(w.Header(), append(header, keep))
		w.Write([]byte(strings.Repeat("half", 1000))) // which net/http passes on as it is
	}
	return []oddity{
		{"a number that is none", answers(header("Cache-Control: max-age=abc")), false, "expired: Cache-Control has a malformed number"},
		{"a negative number", answers(header("Cache-Control: max-age=-1")), false, "expired: Cache-Control has a malformed number"},
		{"a number beyond all measure", answers(header("Cache-Control: max-age=99999999999999999999")), true, ""},
		{"no directive at all", answers(header("Cache-Control: \x00\xff, =, ;;")), false, "no-freshness: Cache-Control has what is not a directive"},
		{"a quote that never closes", answers(header(`Cache-Control: max-age=60, private="`)), false, ""},
		{"a huge Cache-Control", answers(header("Cache-Control: " + strings.Repeat("a,", most/2) + fresh)), false, "larger than what is stored"},
		{"many lines of Cache-Control", answers(with("Cache-Control", append(strings.Split(strings.Repeat("x ", 1000), " "), fresh))), true, ""},
		{"lines within a line", answers(header("Cache-Control: max-age=60\r\nno-store: x")), false, "expired: Cache-Control has a malformed number"},
		{"Expires is no date", answers(header("Expires: next week")), false, "expired: Expires is not a date"},
		{"several Expires", answers(with("Expires", []string{"Fri, 21 Nov 2036 12:00:00 GMT", "Fri, 21 Nov 2036 12:00:00 GMT"})), false, "expired: Expires has several lines"},
		{"Age is no number", answers(header(keep, "Age: -x")), true, ""},
		{"Age is beyond all measure", answers(header(keep, "Age: 99999999999999999999")), false, "expired: Age is beyond all measure"},
		{"a huge ETag", answers(header(keep, "Etag: \""+huge)), false, "larger than what is stored"},
		{"several ETags", answers(with("Etag", []string{`"a"`, `"b"`})), false, "no-freshness: Etag has several lines"},
		{"Last-Modified is no date", answers(header("Last-Modified: \xff")), false, "no-freshness: Last-Modified is not a date"},
		{"Vary is no name", answers(header(keep, "Vary: a b")), false, "vary: Vary has what is not the name of a field"},
		{"Vary is many", answers(header(keep, "Vary: a"+strings.Repeat(",a", 50)+",b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q")), false, "vary: Vary has more fields than a cache tells apart"},
		{"Vary by letter case that the map does not know", answers(with("vary", []string{"X-Color"}, keep)), true, ""},
		{"names that are none", answers(with("a b:\r\n", []string{"c"}, keep)), true, ""},
		{"thousands of fields", answers(fields), true, ""},
		{"a huge field", answers(header(keep, "X-Long: "+huge)), false, "larger than what is stored"},
		{"twenty thousand tags", answers(header(keep, "Cache-Tag: "+manyTags(20_000))), false, "more tags than are looked up"},
		{"Content-Length is no number", answers(header(keep, "Content-Length: six")), true, ""},
		{"Content-Length is negative", answers(header(keep, "Content-Length: -6")), true, ""},
		{"Content-Length is too short", answers(header(keep, "Content-Length: 3")), false, "the body is longer than its Content-Length"},
		{"Content-Length is too long", answers(header(keep, "Content-Length: 60")), false, "the body is shorter than its Content-Length"},
		{"Content-Length is absurd", answers(header(keep, "Content-Length: 9223372036854775807")), false, "larger than what is stored"},
		{"Content-Length is beyond all measure", answers(header(keep, "Content-Length: 99999999999999999999")), true, ""},
		{"a body over MaxBody", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			for range 300 {
				io.WriteString(w, strings.Repeat("y", 1<<10))
			}
		}, false, "larger than what is stored"},
		{"status 99", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			w.WriteHeader(99)
		}, false, aborted},
		{"status 1000", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			w.WriteHeader(1000)
		}, false, aborted},
		{"status 999", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			w.WriteHeader(999)
		}, true, ""},
		{"a status twice", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			w.WriteHeader(404)
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(200)
			io.WriteString(w, "the first counts")
		}, true, ""},
		{"hints after the answer", func(w http.ResponseWriter, r *http.Request) {
			begins(w)
			w.WriteHeader(103)
			io.WriteString(w, "whole")
		}, true, ""},
		{"hints before it, twice", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(103)
			w.WriteHeader(103)
			begins(w)
		}, true, ""},
		{"a body where none may be", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			w.WriteHeader(204)
			if _, err := io.WriteString(w, "no"); !errors.Is(err, http.ErrBodyNotAllowed) {
				panic(err)
			}
		}, true, ""},
		{"a panic before anything", func(w http.ResponseWriter, r *http.Request) { panic("oh") }, false, aborted},
		{"a panic after half the body", func(w http.ResponseWriter, r *http.Request) { begins(w); panic("oh") }, false, aborted},
		{"a panic after a flushed half", func(w http.ResponseWriter, r *http.Request) { begins(w); w.(http.Flusher).Flush(); panic("oh") }, false, aborted},
		{"a panic after half of what was declared", func(w http.ResponseWriter, r *http.Request) { begins(w, "Content-Length: 8000"); panic("oh") }, false, aborted},
		{"a panic when all was written", func(w http.ResponseWriter, r *http.Request) { begins(w, "Content-Length: 4000"); panic("oh") }, false, aborted},
		{"an abort after half the body", func(w http.ResponseWriter, r *http.Request) { begins(w); panic(http.ErrAbortHandler) }, false, aborted},
		{"a panic with nil", func(w http.ResponseWriter, r *http.Request) { begins(w); panic(nil) }, false, aborted},
		{"an exit after half the body", func(w http.ResponseWriter, r *http.Request) { begins(w); runtime.Goexit() }, false, aborted},
		{"the connection taken after half the body", func(w http.ResponseWriter, r *http.Request) {
			begins(w)
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				panic(err)
			}
			rw.WriteString("raw")
			rw.Flush()
			conn.Close()
		}, false, "the handler took the connection"},
		{"small pieces whose first says little", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			io.WriteString(w, "\n")
			io.WriteString(w, "<html>")
			io.WriteString(w, "<body>page</body></html>")
		}, true, ""},
		{"a flush before the type shows", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			io.WriteString(w, "\n")
			w.(http.Flusher).Flush()
			io.WriteString(w, "<html><body>page</body></html>")
		}, true, ""},
		{"a flush before anything", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			w.(http.Flusher).Flush()
			io.WriteString(w, "<html><body>page</body></html>")
		}, true, ""},
	}
}

func manyTags(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "t%d ", i)
	}
	return b.String()
}

// Whatever a handler does, its client gets what it gets without a cache: the same bytes the first time, apart from the borders of chunks, and
// the same answer later. Nothing is stored that should not be, and an Event says why.
func TestOddHandlers(t *testing.T) {
	for _, x := range oddities() {
		t.Run(x.name, func(t *testing.T) {
			w := serveTwins(t, x.serve, func(o *setup) { o.MaxBody = 256 << 10 })
			request := "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
			wantHead, wantBody := parted(raw(t, w.without, request))
			for i := range 3 {
				answer := raw(t, w.with, request)
				head, body := parted(answer)
				if head != wantHead && sorted(head) != sorted(wantHead) || body != wantBody {
					t.Fatalf("answer %d:\n got %s, body %s\nwant %s, body %s", i, short(head), short(body), short(wantHead), short(wantBody))
				}
				if hit := strings.Contains(answer, "\nCache-Status: mayfly; hit"); hit != (x.stored && i > 0) {
					t.Errorf("answer %d is a hit: %v", i, hit)
				}
			}
			if got := w.cache.Stats().Stored > 0; got != x.stored {
				t.Errorf("stored: %v", got)
			}
			if got := said(w.events); x.says == "" && got != "" || !strings.Contains(got, x.says) {
				t.Errorf("the events say %q, want %q", got, x.says)
			}
		})
	}
}

// sorted is a head without regard to the order and the letter case of its fields, which mean nothing.
func sorted(head string) string {
	m := map[string]bool{}
	for _, line := range strings.Split(head, "\r\n") {
		name, value, _ := strings.Cut(line, ":")
		m[strings.ToLower(name)+":"+value] = true
	}
	return fmt.Sprint(m)
}

// said is what the errors of the events say.
func said(events *expect.Events) (all string) {
	for _, e := range events.All() {
		if e.Err != nil {
			all += fmt.Sprint(e.Kind, " ", e.Outcome, ": ", e.Err, "\n")
		}
	}
	return all
}

// Whatever a client sends in its header, it gets what it gets without a cache, or an answer that says the same. A well-behaved client gets the
// page afterwards.
func TestOddRequests(t *testing.T) {
	page := func(w http.ResponseWriter, r *http.Request) {
		set(w.Header(), []string{"Cache-Control: " + fresh, "Vary: Accept-Language, Accept-Encoding, X-Color", `Etag: "1"`, "Content-Type: text/plain", "Content-Length: 8"})
		io.WriteString(w, "the page")
	}
	w := serveTwins(t, http.HandlerFunc(page))
	large := effort.Times(1<<12, 1<<17)
	for _, name := range []string{"Cache-Control", "Pragma", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since", "If-Range", "Range", "Accept-Language", "Accept-Encoding",
		"X-Color", "Connection", "Upgrade", "Authorization", "Cookie", "Date", "Age", "Accept"} {
		for _, value := range []string{"", "\x01", "\x00", "\xff", ",", `"`, `"\`, "=", "max-age=\xff", "bytes=", "bytes=-", "bytes=9-1", "bytes=99999999999999999999-", "bytes=-0", "W/", "Sun, 32 Foo 0000 99:99:99 GMT", "é",
			strings.Repeat("a,", large), `"` + strings.Repeat(`\"`, large), strings.Repeat("9", 2*large), "x\r\n" + name + ": y\r\n" + name + ": z"} {
			request := "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n" + name + ": " + value + "\r\n\r\n"
			want, got := plain(raw(t, w.without, request)), plain(raw(t, w.with, request))
			if want == got {
				continue
			}
			// A cache does more than the handler, which ignores these fields: it answers with a range of the page, or with a 304.
			status, _, _ := strings.Cut(got, "\r\n")
			_, body, _ := strings.Cut(got, "\r\n\r\n")
			if !(strings.Contains(status, "416") || strings.Contains(status, "206") || strings.Contains(status, "304")) || body != "" && !strings.Contains("the page", body) {
				t.Errorf("%s: %s:\n got %s\nwant %s", name, short(value), short(got), short(want))
			}
		}
	}
	many := "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n" + strings.Repeat("X-Color: a\r\n", 10_000) + "\r\n"
	ordinary := "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
	for _, request := range []string{many, ordinary, many, ordinary} {
		if want, got := plain(raw(t, w.without, request)), plain(raw(t, w.with, request)); want != got {
			t.Errorf("got %s\nwant %s", short(got), short(want))
		}
	}
}

// A handler that writes after it has returned changes neither the answer nor the stored one, and nobody waits for it.
func TestAHandlerThatWritesAfterItsReturn(t *testing.T) {
	for name, path := range map[string]string{"stored": "/", "passed": "/private"} {
		t.Run(name, func(t *testing.T) {
			late, done := make(chan struct{}), make(chan string, 1)
			calls := 0
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if calls++; calls > 1 {
					io.WriteString(w, "again")
					return
				}
				set(w.Header(), []string{"Cache-Control: " + fresh})
				if path == "/private" {
					w.Header().Set("Cache-Control", "private")
				}
				io.WriteString(w, "all of it")
				go func() {
					<-late
					w.Header().Set("X-Late", "yes")
					w.WriteHeader(500)
					n, err := io.WriteString(w, ", and more")
					w.(http.Flusher).Flush()
					_, _, hijack := http.NewResponseController(w).Hijack()
					done <- fmt.Sprint(n, err != nil, hijack != nil)
				}()
			})
			res, body, err := s.fetch(t, path)
			if err != nil || body != "all of it" || res.Header.Get("X-Late") != "" {
				t.Fatalf("%q, %v", body, err)
			}
			close(late)
			if got := <-done; got != "0 true true" {
				t.Errorf("what it was told: %s", got)
			}
			want := "all of it"
			if path == "/private" {
				want = "again"
			}
			if res, body, err := s.fetch(t, path); err != nil || body != want || res.Header.Get("X-Late") != "" || res.StatusCode != 200 {
				t.Errorf("the next client: %d %q, %v", res.StatusCode, body, err)
			}
		})
	}
}

// A background renewal that panics keeps the stored answer, and an event says so.
func TestARenewalThatPanics(t *testing.T) {
	for name, fail := range map[string]http.HandlerFunc{
		"before anything": func(http.ResponseWriter, *http.Request) { panic("oh") },
		"after half the body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			io.WriteString(w, "ha")
			panic("oh")
		},
		"by an abort": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"by an exit": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			io.WriteString(w, "ha")
			runtime.Goexit()
		},
		"with a status that is none": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", fresh)
			w.WriteHeader(1000)
		},
		"by lying about its length": func(w http.ResponseWriter, r *http.Request) {
			set(w.Header(), []string{"Cache-Control: " + fresh, "Content-Length: 7"})
			io.WriteString(w, "ha")
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := &origin{}
			o.serve = func(w http.ResponseWriter, r *http.Request) {
				if o.called() > 1 {
					fail(w, r)
					return
				}
				set(w.Header(), []string{"Cache-Control: max-age=10, stale-while-revalidate=1000", "Age: 20"})
				io.WriteString(w, "good")
			}
			s := serve(t, o.ServeHTTP, func(opt *setup) { opt.RenewThrottle = time.Minute })
			for i := range 3 {
				if _, body, err := s.fetch(t, "/"); err != nil || body != "good" {
					t.Errorf("answer %d: %q, %v", i, body, err)
				}
				if i > 0 {
					expect.Eventually(t, "the renewal has failed", func() bool {
						return s.events.Count(mayfly.KindRefresh, mayfly.OutcomeFailed) > 0
					})
				}
			}
			if n := s.cache.Stats().Stored; n != 1 {
				t.Errorf("%d stored", n)
			}
		})
	}
}

// A handler that bypasses http.Header's methods and spells a field's name in its own way is still understood.
func TestFieldsInAnyLetterCase(t *testing.T) {
	w := serveTwins(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["cache-control"], w.Header()["vary"], w.Header()["cache-tag"] = []string{fresh}, []string{"X-Color"}, []string{"a"}
		io.WriteString(w, "in "+r.Header.Get("X-Color"))
	}))
	ask := func(color string) (body string, hit bool) {
		answer := raw(t, w.with, "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\nX-Color: "+color+"\r\n\r\n")
		_, body = parted(answer)
		return body, strings.Contains(answer, "\nCache-Status: mayfly; hit")
	}
	for i := range 2 {
		for _, color := range []string{"red", "blue"} {
			if body, hit := ask(color); body != "in "+color || hit != (i > 0) {
				t.Errorf("%s: %q, a hit: %v", color, body, hit)
			}
		}
	}
	if err := w.cache.Purge(t.Context(), httpcache.Target{Tag: "a"}); err != nil {
		t.Fatal(err)
	}
	if _, hit := ask("red"); hit {
		t.Error("it was served after its tag was purged")
	}
}
