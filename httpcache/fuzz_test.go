package httpcache_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/redistest"
)

// Whatever hosts, paths, queries and selecting fields are sent, nobody gets an answer made for another request, and nothing panics. The
// handler answers with the request it got; this may differ from the client's own only in what a cache may treat as the same.
func FuzzNobodyGetsAnothers(f *testing.F) {
	f.Add("/a?b", "/a%3Fb", "h", "h:80", "Foo, Bar", "1", "1, 2")
	f.Add("/%2F", "//", "h", "H", "foo", "a  b", "ab")
	f.Add("/a b", "/a", "h/x", "h", "*", "", "-")
	f.Add("http://h/a", "/a", "h", "other", "Accept-Language", "en, de", "de;q=1,en")
	f.Add("/|%2F", "/|/", "h:443", "h:443:80", "Foo", "\"", "\"\\\"")
	f.Add("http:/a", "/a", "h", "u@h", "Foo", "a\xff", "a")
	f.Add("/%2e%2e/a", "/../a", "[::1]", "[::1]:80", "foo", ",a", "a,")
	rdb := redistest.Start(f).Client()
	n := 0
	f.Fuzz(func(t *testing.T, one, other, host, elsewhere, vary, value, another string) {
		if len(one)+len(other)+len(host)+len(elsewhere)+len(value)+len(another) > 4<<10 {
			return
		}
		n++
		cache, err := httpcache.New(mayfly.Namespace[string, []byte]{Name: "fuzz", Redis: rdb, Prefix: fmt.Sprintf("fuzz:%d:", n), TTL: time.Minute}, httpcache.Options{RedisTimeout: patient})
		if err != nil {
			t.Fatal(err)
		}
		defer cache.Close(context.Background())
		h := cache.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Cache-Control"], w.Header()["Vary"] = []string{"max-age=60"}, []string{vary}
			fmt.Fprint(w, question(r, vary))
		}))
		for range 2 {
			for _, x := range []struct{ target, host, foo, bar string }{
				{one, host, value, another}, {other, host, value, another}, {one, elsewhere, value, another}, {one, host, another, value}, {other, elsewhere, another, another},
			} {
				r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + x.target + " HTTP/1.1\r\nHost: " + x.host + "\r\n\r\n")))
				if err != nil {
					continue
				}
				r.Header["Foo"], r.Header["Accept-Language"] = []string{x.foo}, []string{x.foo, x.bar}
				if x.bar != "" {
					r.Header["Bar"] = []string{x.bar}
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if got, want := w.Body.String(), question(r, vary); got != want || w.Code != 200 {
					t.Errorf("%d %q, want %q\nVary: %q, %q", w.Code, got, want, vary, w.Header())
				}
			}
		}
	})
}

// question is what a request asks for, without the parts that make no difference.
func question(r *http.Request, vary string) string {
	squeeze := strings.NewReplacer(" ", "", "\t", "")
	q := fmt.Sprintf("%q", identity(r))
	for name := range strings.SplitSeq(vary, ",") {
		name = http.CanonicalHeaderKey(strings.TrimSpace(name))
		values, present := r.Header[name]
		if name != "Accept-Language" { // whose order does not count, nor its case: see rfc9111.FuzzVariant
			q += fmt.Sprintf(" %q %v %q", name, present, squeeze.Replace(strings.Join(values, ",")))
		}
	}
	return q
}
