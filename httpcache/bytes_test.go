package httpcache_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/redistest"
)

// A hit has the same bytes as the miss that stored it, apart from the cache's own fields.
func TestAHitHasTheBytesOfItsMiss(t *testing.T) {
	for name, serve := range map[string]func(h http.Header, write func(string)){
		"trailers that were announced": func(h http.Header, write func(string)) {
			h["Trailer"] = []string{"X-Sum, X-Never", "X-Other"}
			write("some")
			write(" text")
			h.Set("X-Sum", "9")
			h.Add("X-Other", "a")
			h.Add("X-Other", "b")
		},
		"one that was announced, in other letters": func(h http.Header, write func(string)) {
			h.Set("Trailer", "x-sUM")
			write("some text")
			h.Set("X-Sum", "9")
		},
		"none of those that were announced": func(h http.Header, write func(string)) {
			h.Set("Trailer", "X-Sum")
			write("some text")
		},
		"trailers that nobody knew of": func(h http.Header, write func(string)) {
			write(strings.Repeat("some text", 500)) // net/http forgets them for what fits its buffer
			h.Set(http.TrailerPrefix+"X-Sum", "9")
		},
		"both": func(h http.Header, write func(string)) {
			h.Set("Trailer", "X-Sum")
			write("some text")
			h.Set("X-Sum", "9")
			h.Set(http.TrailerPrefix+"X-Late", "1")
		},
		"names in small letters": func(h http.Header, write func(string)) {
			h["x-lower"] = []string{"1", "2"}
			h["X-UPPER"] = []string{"3"}
			h["etag"] = []string{`"5"`}
			write("some text")
		},
		"a name in two spellings": func(h http.Header, write func(string)) {
			h["x-twice"] = []string{"1"}
			h["X-Twice"] = []string{"2"}
			write("some text")
		},
		"a Content-Type in small letters": func(h http.Header, write func(string)) {
			h["content-type"] = []string{"text/csv"}
			write("some text")
		},
		"a Content-Type in two spellings": func(h http.Header, write func(string)) {
			h["content-type"], h["CONTENT-TYPE"] = []string{"text/csv"}, []string{"text/x-upper"}
			write("some text")
		},
		"no Content-Type, in small letters": func(h http.Header, write func(string)) {
			h["content-type"] = nil
			write("some text")
		},
		"a Content-Length in small letters": func(h http.Header, write func(string)) {
			h["content-length"] = []string{"9"}
			write("some text")
		},
		"a Content-Length in capitals that is none": func(h http.Header, write func(string)) {
			h["CONTENT-LENGTH"] = []string{"many"}
			write("some text")
		},
		"two Content-Lengths": func(h http.Header, write func(string)) {
			h["content-length"], h["Content-Length"] = []string{"9"}, []string{"9", "12"}
			write("some text")
		},
		"a Content-Encoding in small letters": func(h http.Header, write func(string)) {
			h["content-encoding"] = []string{"br"}
			write("some text")
		},
		"a Date in small letters": func(h http.Header, write func(string)) {
			h["date"] = []string{time.Now().UTC().Format(http.TimeFormat)}
			write("some text")
		},
		"trailers that were announced in small letters": func(h http.Header, write func(string)) {
			h["trailer"] = []string{"X-Sum"}
			write("some text")
			h.Set("X-Sum", "9")
		},
		"a list in three spellings": func(h http.Header, write func(string)) {
			h["x-list"], h["X-LIST"], h["X-List"] = []string{"1"}, []string{"2"}, []string{"3"}
			write("some text")
		},
		"nothing special": func(h http.Header, write func(string)) { write("some text") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := opened(t, options(t, redistest.Start(t).Client()))
				site := newPipes()
				defer site.close()
				site.serve("site", c.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Cache-Control", fresh)
					serve(w.Header(), func(s string) { io.WriteString(w, s) })
				})))
				raw := func() (lines []string, cut string) {
					near, far := net.Pipe()
					site.doors["site"] <- far
					go fmt.Fprint(near, "GET /page HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")
					all, err := io.ReadAll(near)
					if err != nil {
						t.Error(err)
					}
					for line := range strings.SplitAfterSeq(string(all), "\r\n") {
						if field, _, _ := strings.Cut(line, ":"); field == "Age" || field == "Cache-Status" || field == "Date" {
							cut += line
						} else {
							lines = append(lines, line)
						}
					}
					if end := slices.Index(lines, "\r\n"); end > 0 {
						slices.Sort(lines[1:end]) // the server orders its own fields as it likes
					}
					return lines, cut
				}
				miss, said := raw()
				hit, says := raw()
				if strings.Contains(said, "; hit") || !strings.Contains(says, "; hit") {
					t.Fatalf("%q, then %q", said, says)
				}
				if n := strings.Count(strings.Join(miss, ""), "Content-Length"); n > 1 {
					t.Errorf("%d times a Content-Length", n)
				}
				if a, b := strings.Join(miss, ""), strings.Join(hit, ""); a != b {
					t.Errorf("the miss was\n%s\nthe hit is\n%s", a, b)
				}
			})
		})
	}
}
