package httpcache_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/httpcache"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// twins are servers of one handler: one with a cache before it, and one without.
type twins struct {
	with, without *doorway
	cache         *httpcache.Cache
	events        *expect.Events
	redis         redis.UniversalClient
}

func serveTwins(t *testing.T, h http.Handler, change ...func(o *setup)) *twins {
	t.Helper()
	w := &twins{events: &expect.Events{}, redis: redistest.Start(t).Client()}
	opt := options(t, w.redis)
	opt.Namespace.Observer = w.events
	for _, f := range change {
		f(&opt)
	}
	w.cache = must(t)(opt.New())
	open := func(h http.Handler) *doorway {
		d := newDoorway()
		s := httptest.Server{Listener: d, Config: &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: 4 << 20}}
		s.Start()
		t.Cleanup(s.Close)
		return d
	}
	w.with, w.without = open(w.cache.Handler(h)), open(h)
	return w
}

// raw sends bytes on a connection of their own, and returns all that comes back.
func raw(t *testing.T, d *doorway, request string) string {
	t.Helper()
	conn, far := newDuplex()
	defer conn.Close()
	d.door <- far
	go io.WriteString(conn, request) // a server that refuses may not read all of it
	b, _ := io.ReadAll(conn)         // nor end well
	return string(b)
}

// added are the fields that a cache adds, or that depend on the time; framed are those that say how the body is framed, which differ for stored
// answers.
var (
	added  = []string{"Date: ", "Age: ", "Cache-Status: "}
	framed = []string{"Content-Length: ", "Transfer-Encoding: "}
)

// without is a head without the lines of some fields.
func without(head string, fields []string) string {
	var left strings.Builder
	for line := range strings.SplitAfterSeq(head, "\n") {
		if !slices.ContainsFunc(fields, func(field string) bool { return strings.HasPrefix(line, field) }) {
			left.WriteString(line)
		}
	}
	return left.String()
}

// plain is an answer without what a cache adds.
func plain(answer string) string {
	head, body, _ := strings.Cut(answer, "\r\n\r\n")
	return without(head+"\r\n", added) + "\r\n" + body
}

// body is the decoded body of an answer, and the rest without what frames it.
func parted(answer string) (head, body string) {
	for strings.HasPrefix(answer, "HTTP/1.1 103 ") { // never stored
		_, answer, _ = strings.Cut(answer, "\r\n\r\n")
	}
	head, _, _ = strings.Cut(answer, "\r\n\r\n")
	head = without(head+"\r\n", added)
	res, err := http.ReadResponse(bufio.NewReader(strings.NewReader(answer)), nil)
	if err != nil {
		return head, err.Error()
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		b = append(b, err.Error()...)
	}
	return without(head, framed), string(b)
}

func short(s string) string {
	if len(s) > 300 {
		return fmt.Sprintf("%q and %d bytes more", s[:300], len(s)-300)
	}
	return fmt.Sprintf("%q", s)
}

// target is a request's target and Host, as they come over the wire.
type target struct{ target, host string }

// targets are what scanners, broken clients and attackers who would poison a cache send.
func targets() (all []target) {
	many := effort.Times(16<<10, 1<<20) // no rule depends on it
	for _, host := range []string{"a.example", "A.EXAMPLE", "a.example:80", "a.example:443", "a.example:443:80", "a.example:8080", "a.example:080", "a.example:", "a.example:x",
		"a.example.", ".a.example", "", ":80", "[::1]", "[::1]:80", "[::1]:81", "[::1", "::1", "[fe80::1%25eth0]", "[v1.a]", "user@a.example", "user:pass@a.example",
		"a.example/x", "a.example?x", "a.example#x", "a.example\\x", "a.example%2Fx", "a%00b", "a\x00b", "a\x01b", "a\x7fb", "a\tb", "a b", "\xffa", "a,b", "a;b", "xn--e1afmkfd", "é",
		"*", strings.Repeat("a", 300), strings.Repeat("a.", 5<<10), strings.Repeat("b", 1<<20)} {
		all = append(all, target{"/", host})
	}
	for _, path := range []string{"/x", "//x", "///x", "/x//", "/x/", "/X", "/./x", "/x/.", "/../x", "/a/../x", "/a/%2e%2e/x", "/a/%2E./x", "/a/..%2fx", "/%2e", "/.", "/..", "/%2e%2e",
		"/%00", "/x%00", "/%2F", "/%2fx", "/a%2Fx", "/a/x", "/%5c", "/\\", "/|", "/|%2F", "/|/", "/%7C%2F", "/%7c/", "/[", "/%5B", "/[%7C", "/[|", "/%ff", "/\xff", "/%c3%a9", "/\xc3\xa9", "/é%2F", "/%C3%A9/",
		"/%", "/%z", "/%2", "/%zz", "/%25", "/%2541", "/%41", "/A", "/~", "/%7e", "/%7E", "/a b", "/a%20b", "/a+b", "/a\tb", "/a\x01b", "/a\x7fb", "/<>\"", "/;", "/x;y", "/x;y=1", "/%3b", "/x:y", "/:80", "/@", "/x#y", "/x%23y", "/x%3Fy",
		"/x?", "/x?y", "/x?y=", "/x?y=1", "/x?y=1&z=2", "/x?z=2&y=1", "/x?y=1;z=2", "/x?y=%31", "/x??y", "/x?y?", "/x?y#z", "/x?%00", "/x?\x01", "/x?\xff", "/x?%ff", "/x?y=a+b", "/x?y=a%20b", "/x?&", "/x?&&", "/x?=",
		"/x?http://a.example/", "/http://a.example/x", "*", "x", "?x", "#", "", "a.example:80", "a.example/x", "x:y", "http:x", "http:/x", "http:///x", "http://a.example", "http://a.example?y", "http://a.example/x",
		"HTTP://A.example/x", "http://A.EXAMPLE:80/x", "https://a.example/x", "ftp://a.example/x", "http://u@a.example/x", "http://u:p@a.example/x", "http://b.example/x", "http://b.example/x#y", "http://a.example:443:80/x", "http://[::1]/x", "http://[::1", "javascript:alert(1)",
		"/" + strings.Repeat("a", 7<<10), "/" + strings.Repeat("a", 9<<10), "/x?" + strings.Repeat("y&", many/2), "/" + strings.Repeat("../", 1<<10), "/" + strings.Repeat("%2e%2e%2f", 1<<10), "/" + strings.Repeat("%61", many/3)} {
		all = append(all, target{path, "a.example"})
	}
	if effort.Race { // which makes each step expensive, and finds no more in long ones
		all = slices.DeleteFunc(all, func(x target) bool { return len(x.target)+len(x.host) > 16<<10 })
	}
	return all
}

// identity is everything by which a handler may distinguish requests, without what RFC 3986 and RFC 9110 treat as the same: the letter case and
// the default port of a host, the letter case of escapes, needless escapes except of dots, and an absolute form that repeats what the
// connection says anyway. It was written without looking at how keys are made.
func identity(r *http.Request) string {
	host := strings.ToLower(r.Host)
	if name, port, err := net.SplitHostPort(host); err == nil && port == "80" && name != "" {
		host = strings.TrimSuffix(host, ":80")
	}
	path := r.RequestURI
	if rest, ok := cutFold(path, "http://"+r.Host); ok {
		path = rest
	}
	path, query, asked := strings.Cut(path, "?")
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		var c byte
		if path[i] == '%' && i+2 < len(path) {
			n, _ := strconv.ParseUint(path[i+1:i+3], 16, 8)
			c = byte(n)
			i += 2
			if strings.IndexByte(letters+"-_~", c) < 0 {
				fmt.Fprintf(&b, "%%%02X", c)
				continue
			}
		} else if c = path[i]; strings.IndexByte(letters+"-_~.!$&'()*+,;=:@/[]", c) < 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return fmt.Sprintf("%s|%s|%s|%v", host, b.String(), query, asked)
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func cutFold(s, prefix string) (rest string, ok bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

// Whatever host and target a request has, its client gets byte for byte the answer that it gets without a cache, the first time and later, and
// never the answer for another target.
func TestHostileTargets(t *testing.T) {
	w := serveTwins(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		w.Header().Set("Content-Type", "text/plain")
		id := base64.StdEncoding.EncodeToString([]byte(identity(r)))
		w.Header().Set("Content-Length", fmt.Sprint(len(id))) // as a stored answer has it
		io.WriteString(w, id)
	}))
	hits, refused := 0, 0
	for round := range 2 {
		for _, x := range targets() {
			for _, version := range []string{"1.1", "1.0"} {
				request := "GET " + x.target + " HTTP/" + version + "\r\nHost: " + x.host + "\r\nConnection: close\r\n\r\n"
				want, got := raw(t, w.without, request), raw(t, w.with, request)
				if plain(want) != plain(got) {
					t.Errorf("round %d: %s of host %s over %s:\n got %s\nwant %s", round, short(x.target), short(x.host), version, short(plain(got)), short(plain(want)))
				}
				if strings.Contains(got, "Cache-Status: mayfly; hit") {
					hits++
				}
				if strings.Contains(got, " 400 ") {
					refused++
				}
			}
		}
	}
	if sent := 4 * len(targets()); hits < sent/4 || refused == 0 {
		t.Errorf("of %d requests %d were hits, %d refused: nothing was tried", sent, hits, refused)
	}
	// An event reports each request without a key: with a malformed host or path, or with one that is too long.
	bypassed := 0
	for _, e := range w.events.All() {
		if e.Kind == mayfly.KindRead && e.Outcome == mayfly.OutcomeBypass {
			if bypassed++; e.Err == nil || !strings.HasPrefix(e.Err.Error(), "no URL to be cached") || len(e.Err.Error()) > 1000 {
				t.Errorf("event %.300v", e)
			}
		}
	}
	if bypassed < 50 {
		t.Errorf("%d events tell of requests without a key", bypassed)
	}
	// No key contains anything that could be mistaken for the end of a URL.
	for _, key := range keysOf(t, w.redis) {
		if strings.ContainsAny(strings.TrimPrefix(key, "TestHostileTargets:"), " \t\r\n\x00\x7f\"\\") {
			t.Errorf("key %.200q", key)
		}
		if len(key) > 9<<10 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
}

// Methods and forms of requests that no cache handles pass unchanged.
func TestHostileMethods(t *testing.T) {
	w := serveTwins(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		w.Header().Set("Content-Type", "text/plain")
		body := fmt.Sprintf("%q %q %q", r.Method, r.RequestURI, r.Host)
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(w, body)
	}))
	for range 2 {
		for _, line := range []string{"CONNECT a.example:443", "CONNECT /x", "OPTIONS *", "TRACE /", "PURGE /", "get /", "G\x01T /", "GET\t/", "", "GET", "PRI *", "M-SEARCH *", "DELETE /", "HEAD *", "HEAD /x", strings.Repeat("G", 1<<16) + " /"} {
			for _, rest := range []string{"", "Content-Length: 3\r\n", "Content-Length: -1\r\n", "Content-Length: 99999999999999999999\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n",
				"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "Expect: 100-continue\r\nContent-Length: 3\r\n", "Host: b.example\r\n", "Upgrade: \xff\r\nConnection: upgrade\r\n"} {
				request := line + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n" + rest + "\r\n"
				if strings.Contains(rest, ": 3") || strings.Contains(rest, "chunked") {
					request += "3\r\nabc\r\n0\r\n\r\n"
				}
				if strings.HasPrefix(line, "GET") && line != "GET" {
					continue
				}
				if want, got := plain(raw(t, w.without, request)), plain(raw(t, w.with, request)); want != got {
					t.Errorf("%s %q:\n got %s\nwant %s", short(line), rest, short(got), short(want))
				}
			}
		}
	}
}

// Only the options that declare requests equivalent make them so.
func TestHostileQueriesSorted(t *testing.T) {
	w := serveTwins(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", fresh)
		body := fmt.Sprintf("%q %q %q", r.URL.Query().Encode(), r.Host, r.URL.Path)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		io.WriteString(w, body)
	}), func(o *setup) { o.SortQuery = true })
	for range 2 {
		for _, query := range []string{"a=1&b=2", "b=2&a=1", "a=2&b=1", "a=1&a=2", "a=2&a=1", "%61=1&b=2", "a=1;b=2", "b=2;a=1", "a=%26b&c", "c&a=%26b", "a&&b", "&", strings.Repeat("b&a&", 1<<18)} {
			request := "GET /?" + query + " HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
			if want, got := raw(t, w.without, request), raw(t, w.with, request); plain(want) != plain(got) {
				t.Errorf("%s:\n got %s\nwant %s", short(query), short(got), short(want))
			}
		}
	}
}
