package rfc9111_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/rfc9111"
	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

// get is a request as a server reads it; nil if it does not.
func get(target, host string) *http.Request {
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n")))
	if err != nil {
		return nil
	}
	return r
}

// RFC 9111, section 2; RFC 3986, section 6.2.2.
func TestKey(t *testing.T) {
	type keys = rfc9111.Keys
	for _, x := range []struct {
		name   string
		keys   keys
		target string
		host   string
		want   string // "": not one
	}{
		{"as it is", keys{}, "/a/b?c=d&e", "example.com", "http://example.com/a/b?c=d&e"},
		{"letter case of the host (3986, 6.2.2.1)", keys{}, "/A", "EXAMPLE.com", "http://example.com/A"},
		{"the scheme's port (9110, 4.2.3)", keys{}, "/", "example.com:80", "http://example.com/"},
		{"another port", keys{}, "/", "example.com:8080", "http://example.com:8080/"},
		{"the other scheme's port", keys{}, "/", "example.com:443", "http://example.com:443/"},
		{"a scheme by option, and its port", keys{Scheme: "HTTPS"}, "/", "example.com:443", "https://example.com/"},
		{"an address", keys{}, "/", "[::1]:80", "http://[::1]/"},
		{"an absolute target", keys{}, "http://other.com/a", "example.com", "http://other.com/a"},
		{"an absolute target of a user", keys{}, "http://a@other.com/a", "example.com", ""},
		{"an absolute target of another scheme", keys{}, "https://other.com/a", "example.com", ""},
		{"of the scheme that the option says", keys{Scheme: "https"}, "https://other.com/a", "example.com", "https://other.com/a"},
		{"no path, which a handler may send to /", keys{}, "http://other.com", "example.com", ""},
		{"no host in an absolute target", keys{}, "http:///a", "example.com", ""},
		{"nor slashes", keys{}, "http:/a", "example.com", ""},
		{"no path and no slashes", keys{}, "http:other", "example.com", ""},
		{"no host", keys{}, "/a", "", "http:///a"},
		{"nor one beside a port", keys{}, "/a", ":80", ""},
		{"two ports, the second of which is the scheme's", keys{}, "/", "example.com:443:80", ""},
		{"a port that is none", keys{}, "/", "example.com:8a", ""},
		{"a colon is not a port", keys{}, "/", "example.com:", "http://example.com:/"},
		{"a dot at the end counts", keys{}, "/", "example.com.", "http://example.com./"},
		{"an address that never closes", keys{}, "/", "[::1", ""},
		{"an address and a name", keys{}, "/", "[::1]a", ""},
		{"an address with a zone", keys{}, "/", "[fe80::1%25eth0]", ""},
		{"any host", keys{AnyHost: true}, "/a", "example.com", "http:///a"},
		{"percent-encoding (3986, 6.2.2.2)", keys{}, "/%61%2d%7e%2f%3f%e2%82%ac", "h", "http://h/a-~%2F%3F%E2%82%AC"},
		{"a slash is not an encoded one", keys{}, "/a/b", "h", "http://h/a/b"},
		{"dots are the handler's", keys{}, "/a/../b/./c", "h", "http://h/a/../b/./c"},
		{"encoded ones stay so", keys{}, "/a/%2e%2e/b/%2E/c%2e", "h", "http://h/a/%2E%2E/b/%2E/c%2E"},
		{"two slashes too", keys{}, "//a//b", "h", "http://h//a//b"},
		{"letter case of the path", keys{}, "/Aa", "h", "http://h/Aa"},
		{"raw bytes", keys{}, "/\xff\"<>", "h", "http://h/%FF%22%3C%3E"},
		{"a raw byte does not decode its neighbours", keys{}, "/|%2F", "h", "http://h/%7C%2F"},
		{"nor a bracket", keys{}, "/[%5B|", "h", "http://h/[%5B%7C"},
		{"an empty query is one", keys{}, "/a?", "h", "http://h/a?"},
		{"a question mark in the query", keys{}, "/a?b?c", "h", "http://h/a?b?c"},
		{"a hash", keys{}, "/a#b", "h", "http://h/a%23b"},

		{"order counts", keys{}, "/?b=1&a=2", "h", "http://h/?b=1&a=2"},
		{"but not sorted", keys{SortQuery: true}, "/?b=1&a=2&a=1&c", "h", "http://h/?a=2&a=1&b=1&c"},
		{"sorted, those of one name keep their order", keys{SortQuery: true}, "/?z&a=9&a=8&a=7&a=6&a=5&a=4&a=3&a=2&a=1&a=0&a=19&a=18&a=17&a=16", "h",
			"http://h/?a=9&a=8&a=7&a=6&a=5&a=4&a=3&a=2&a=1&a=0&a=19&a=18&a=17&a=16&z"},
		{"dropped", keys{DropQuery: []string{"utm_*", "fbclid"}}, "/?utm_source=x&b=1&fbclid=2&fbclid2&a=2&UTM_x=1", "h", "http://h/?b=1&fbclid2&a=2&UTM_x=1"},
		{"dropped, encoded", keys{DropQuery: []string{"utm_*"}}, "/?%75tm_source=x&b", "h", "http://h/?b"},
		{"a semicolon may begin a parameter, too", keys{SortQuery: true, DropQuery: []string{"utm_*"}}, "/?utm_c=1;callback=evil&a=1", "h", "http://h/?utm_c=1;callback=evil&a=1"},
		{"an encoded one does not", keys{DropQuery: []string{"utm_*"}}, "/?utm_c=1%3Bcallback=evil&a=1", "h", "http://h/?a=1"},
		{"nor is a query with a % that begins no escape", keys{DropQuery: []string{"utm_*"}, SortQuery: true}, "/?utm_c=%&b=1&a=1", "h", "http://h/?utm_c=%&b=1&a=1"},
		{"all dropped", keys{DropQuery: []string{"*"}}, "/?a=1&b", "h", "http://h/"},

		{"no path at all", keys{}, "*", "h", ""},
		{"a slash in the host", keys{}, "/b", "h/a", ""},
		{"a user in the host", keys{}, "/", "a@h", ""},
		{"a query in the host", keys{}, "/", "h?a", ""},
		{"a hash in the host", keys{}, "/", "h#", ""},
		{"a space in the host", keys{}, "/", "a b", ""},
		{"bytes in the host", keys{}, "/", "h\xff", ""},
		{"another scheme", keys{Scheme: "gopher"}, "/", "h", ""},
	} {
		r := get(x.target, x.host)
		if r == nil {
			r = &http.Request{Host: x.host, URL: &url.URL{Path: x.target}} // the server would refuse it already
		}
		got, ok := x.keys.Key(r)
		if got != x.want || ok != (x.want != "") {
			t.Errorf("%s: %q of %q is %q %v, want %q", x.name, x.target, x.host, got, ok, x.want)
		}
	}

	r := get("/a", "h:443")
	r.TLS = &tls.ConnectionState{}
	if got, _ := (keys{}).Key(r); got != "https://h/a" {
		t.Errorf("over TLS %q", got)
	}
	if got, _ := (keys{Scheme: "http"}).Key(r); got != "http://h:443/a" {
		t.Errorf("over TLS, and yet by option %q", got)
	}
	u, _ := url.Parse("HTTPS://Example.COM:443/%7ea?b#c")
	if got, _ := (keys{}).Of(u); got != "https://example.com/~a?b" {
		t.Errorf("of a URL %q", got)
	}
	h2 := &http.Request{Host: "h", URL: &url.URL{Path: "/", RawQuery: "a b\x00\x7f"}}
	if got, ok := (keys{}).Key(h2); ok {
		t.Errorf("a query that HTTP/1.1 could not have brought: %q", got)
	}
	moved := get("/a%2Fb", "h")
	moved.RequestURI = "" // it never was a client's
	moved.URL.Path = "/c" // by a handler around the cache, that knows of no RawPath
	if got, _ := (keys{}).Key(moved); got != "http://h/c" {
		t.Errorf("a path that was changed: %q", got)
	}
	for _, long := range []string{"/?" + strings.Repeat("b&", 5<<10), "/" + strings.Repeat("%61", 5<<10)} {
		if got, ok := (keys{SortQuery: true, DropQuery: []string{"*"}}).Key(get(long, "h")); ok {
			t.Errorf("a URL of %d bytes has a key of %d", len(long), len(got))
		}
	}

	r, buf := get("/some/page?q=1", "example.com"), make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { keys{}.AppendKey(buf, r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// The parts of a URL that handlers around the cache have changed are not in the key, but beside it.
func TestInner(t *testing.T) {
	type keys = rfc9111.Keys
	for _, x := range []struct {
		name   string
		keys   keys
		target string
		change func(r *http.Request)
		inner  string
		key    string
	}{
		{"nothing", keys{}, "/a/b?c", func(*http.Request) {}, "", "http://h/a/b?c"},
		{"nothing, escaped", keys{}, "/a%2Fb%20?%63", func(*http.Request) {}, "", "http://h/a%2Fb%20?%63"},
		{"nothing, absolute", keys{}, "http://h/a?b", func(*http.Request) {}, "", "http://h/a?b"},
		{"nothing, and no query", keys{}, "/a?", func(*http.Request) {}, "", "http://h/a?"},
		{"two slashes", keys{}, "//a", func(*http.Request) {}, "", "http://h//a"},
		{"a path that was cut", keys{}, "/a/b?c", func(r *http.Request) { r.URL.Path = "/b" }, "/b?c", "http://h/a/b?c"},
		{"of an absolute target", keys{}, "http://h/a/b?c", func(r *http.Request) { r.URL.Path = "/b" }, "/b?c", "http://h/a/b?c"},
		{"cut to nothing", keys{}, "/a", func(r *http.Request) { r.URL.Path = "" }, " ", "http://h/a"},
		{"cut to a slash", keys{}, "/a", func(r *http.Request) { r.URL.Path = "/" }, "/", "http://h/a"},
		{"escaped", keys{}, "/a%2Fb", func(r *http.Request) { r.URL.Path, r.URL.RawPath = "/b/c", "/b%2Fc" }, "/b%2Fc", "http://h/a%2Fb"},
		{"by who knows of no RawPath", keys{}, "/a%2Fb", func(r *http.Request) { r.URL.Path = "/c" }, "/c", "http://h/a%2Fb"},
		{"a path that looks escaped", keys{}, "/a%20b", func(r *http.Request) { r.URL.Path = "/a%20b" }, "/a%2520b", "http://h/a%20b"},
		{"a question mark in the path", keys{}, "/a?b", func(r *http.Request) { r.URL.Path, r.URL.RawQuery = "/a?b", "" }, "/a%3Fb", "http://h/a?b"},
		{"a query", keys{}, "/a?b", func(r *http.Request) { r.URL.RawQuery = "c" }, "/a?c", "http://h/a?b"},
		{"a query that was taken away", keys{}, "/a?b", func(r *http.Request) { r.URL.RawQuery = "" }, "/a", "http://h/a?b"},
		{"what does not count", keys{SortQuery: true, DropQuery: []string{"x"}}, "/a?x&b&c", func(r *http.Request) { r.URL.RawQuery = "c&b" }, "", "http://h/a?b&c"},
		{"a scheme", keys{}, "/a", func(r *http.Request) { r.URL.Scheme = "https" }, "https: /a", "http://h/a"},
		{"another host", keys{}, "/a", func(r *http.Request) { r.URL.Host = "other" }, "//other /a", "http://h/a"},
		{"the same, in another way", keys{}, "/a", func(r *http.Request) { r.URL.Scheme, r.URL.Host = "http", "H" }, "", "http://h/a"},
		{"a user", keys{}, "/a", func(r *http.Request) { r.URL.User = url.User("u") }, "//u@ /a", "http://h/a"},
		{"a path that was cut, and the query apart", keys{SearchApart: true}, "/a/b?c", func(r *http.Request) { r.URL.Path = "/b" }, "/b ?", "http://h/a/b?c"},
		{"a query apart that was taken away", keys{SearchApart: true}, "/a/b?c", func(r *http.Request) { r.URL.Path, r.URL.RawQuery = "/b", "" }, "/b", "http://h/a/b?c"},
		{"a query that is none", keys{}, "/a", func(r *http.Request) { r.URL.RawQuery = "a b" }, "", ""},
		{"a client's URL that is none", keys{}, "/a", func(r *http.Request) { r.RequestURI = "/%zz" }, "", ""},
		{"one that is long", keys{}, "/a", func(r *http.Request) { r.URL.Path = "/" + strings.Repeat("b", 9<<10) }, "", ""},
	} {
		r := get(x.target, "h")
		x.change(r)
		key, inner, ok := x.keys.AppendKey(nil, r)
		if string(key) != x.key || inner != x.inner || ok != (x.key != "") {
			t.Errorf("%s: %q, %q %v, want %q, %q", x.name, key, inner, ok, x.key, x.inner)
		}
	}
}

// Two requests of one key are for one URL, as a handler sees it.
func FuzzKey(f *testing.F) {
	f.Add("/a?b", "h", "/a", "h")
	f.Add("/%2F", "h:80", "//", "H")
	f.Add("/", "h/a", "/a/", "h")
	f.Add("/", "h:443:80", "/", "h:443")
	f.Add("/|%2F", "h", "/|/", "h")
	f.Add("/a/../b", "h", "/a/%2e%2e/b", "h")
	f.Add("http:a", "h", "/", "h")
	f.Add("http://u@h/a?b", "h", "http://h/a?b", "h")
	f.Fuzz(func(t *testing.T, targetA, hostA, targetB, hostB string) {
		a, b := get(targetA, hostA), get(targetB, hostB)
		if a == nil || b == nil {
			return
		}
		one, ok := rfc9111.Keys{}.Key(a)
		if strings.ContainsAny(one, " \t\r\n") || ok != (one != "") {
			t.Errorf("%q of %q: key %q", targetA, hostA, one)
		}
		other, also := rfc9111.Keys{}.Key(b)
		if !ok || !also || one != other {
			return
		}
		if d := diff.Of(seen(a), seen(b)); d != "" {
			t.Errorf("%q of %q and %q of %q meet in %q:\n%s", targetA, hostA, targetB, hostB, one, d)
		}
	})
}

func spelled(u *url.URL) string {
	if u.RawPath != "" {
		return u.RawPath
	}
	return u.EscapedPath()
}

// seen is what handlers may tell a target by: the segments of its path, as some decode them after cutting, and the rest.
func seen(r *http.Request) (parts []string) {
	host := strings.ToLower(r.Host)
	if _, port, err := net.SplitHostPort(host); err == nil && port == "80" {
		host = strings.TrimSuffix(host, ":80")
	}
	for segment := range strings.SplitSeq(spelled(r.URL), "/") {
		decoded, _ := url.PathUnescape(segment)
		dots := strings.Count(strings.ToLower(segment), "%2e")
		parts = append(parts, fmt.Sprint(decoded, dots))
	}
	return append(parts, host, r.URL.RawQuery, r.URL.Opaque, r.URL.User.String())
}

// RFC 9111, section 4.4.
func TestInvalidated(t *testing.T) {
	for _, x := range []struct {
		name     string
		method   string
		status   int
		response []string
		want     []string
	}{
		{"POST", "POST", 200, nil, []string{"http://h/dir/a?q"}},
		{"PUT", "PUT", 204, nil, []string{"http://h/dir/a?q"}},
		{"DELETE, and a redirect", "DELETE", 303, nil, []string{"http://h/dir/a?q"}},
		{"a method that nobody knows", "M-SEARCH", 200, nil, []string{"http://h/dir/a?q"}},
		{"an error", "POST", 500, nil, nil},
		{"a refusal", "POST", 403, nil, nil},
		{"GET is safe", "GET", 200, []string{"Location: /b"}, nil},
		{"HEAD, OPTIONS, TRACE too", "OPTIONS", 200, nil, nil},
		{"Location and Content-Location", "POST", 201, []string{"Location: b", "Content-Location: /c?d"},
			[]string{"http://h/dir/a?q", "http://h/dir/b", "http://h/c?d"}},
		{"absolute, spelled otherwise", "POST", 201, []string{"Location: HTTP://H:80/b#c"}, []string{"http://h/dir/a?q", "http://h/b"}},
		{"itself, once", "POST", 201, []string{"Content-Location: /dir/a?q"}, []string{"http://h/dir/a?q"}},
		{"another host's is not ours to void", "POST", 201, []string{"Location: http://other/b", "Content-Location: //h.other/c"}, []string{"http://h/dir/a?q"}},
		{"nor another scheme's, nor port's", "POST", 201, []string{"Location: https://h/b", "Content-Location: http://h:81/c"}, []string{"http://h/dir/a?q"}},
		{"what is no URL", "POST", 201, []string{"Location: :/%zz", "Content-Location: mailto:a@b"}, []string{"http://h/dir/a?q"}},
		{"two are none", "POST", 201, []string{"Location: /b", "Location: /c"}, []string{"http://h/dir/a?q"}},
	} {
		r := get("/dir/a?q", "h")
		r.Method = x.method
		if d := diff.Of(x.want, rfc9111.Keys{}.Invalidated(r, x.status, header(x.response...))); d != "" {
			t.Errorf("%s%s", x.name, d)
		}
	}

	r := get("/a?b", "h")
	for location, want := range map[string]bool{"/a?b": true, "": true, "http://h/a?b": true, "?b": true, "/a": false, "http://other/a?b": false} {
		if got := (rfc9111.Keys{}).Self(r, header("Content-Location: "+location)); got != want {
			t.Errorf("Content-Location %q is the request's own URL: %v", location, got)
		}
	}
	if (rfc9111.Keys{}).Self(r, nil) {
		t.Error("no Content-Location is the request's own URL")
	}
}

// A response of one host voids no other's.
func FuzzInvalidated(f *testing.F) {
	f.Add("http://h@other/b", "//other")
	f.Add("/../b", "\\\\other")
	f.Fuzz(func(t *testing.T, location, content string) {
		r := get("/dir/a?q", "h")
		r.Method = "POST"
		for _, key := range (rfc9111.Keys{}).Invalidated(r, 200, http.Header{"Location": {location}, "Content-Location": {content}}) {
			if !strings.HasPrefix(key, "http://h/") {
				t.Errorf("%q %q: %q", location, content, key)
			}
		}
	})
}
