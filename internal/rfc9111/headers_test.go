package rfc9111_test

import (
	"net/http"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/diff"
)

// RFC 9111, section 3.1.
func TestStored(t *testing.T) {
	response := header("Date: d", "Test-Header: t", "X-Test-Header: x", "Content-Foo: f", "Content-Length: 5", "Content-Range: r", "Clear-Site-Data: cache",
		"Strict-Transport-Security: s", "WWW-Authenticate: w", "Cache-Status: up; hit", "CDN-Cache-Control: foo", "Cache-Control: max-age=60",
		"Connection: close, A", "Connection: b", "A: 1", "B: 2", "Keep-Alive: k", "Proxy-Authenticate: p", "Proxy-Authentication-Info: p", "Proxy-Authorization: p",
		"Proxy-Connection: p", "TE: t", "Trailer: t", "Transfer-Encoding: chunked", "Upgrade: u", "Age: 5")
	response["x-raw"], response[http.TrailerPrefix+"T"] = []string{"1"}, []string{"t"}
	before := response.Clone()
	want := header("Date: d", "Test-Header: t", "X-Test-Header: x", "Content-Foo: f", "Content-Length: 5", "Content-Range: r", "Clear-Site-Data: cache",
		"Strict-Transport-Security: s", "WWW-Authenticate: w", "Cache-Status: up; hit", "CDN-Cache-Control: foo", "Cache-Control: max-age=60")
	want["x-raw"] = []string{"1"}
	if d := diff.Of(want, rules.Stored(response, now)); d != "" {
		t.Errorf("%s", d)
	}
	if d := diff.Of(before, response); d != "" {
		t.Errorf("the response changed: %s", d)
	}

	for _, x := range []struct {
		name string
		got  []string
		want []string
	}{
		{"a Date of its own if there is none (9110, 6.6.1)", []string{"A: 1"}, []string{"A: 1", "Date: " + at(0)}},
		{"a Date that is none stays", []string{"Date: foo"}, []string{"Date: foo"}},
		{"what no-cache lists (5.2.2.4)", []string{"Date: d", `Cache-Control: max-age=60, no-cache="a, B"`, "A: 1", "B: 2", "C: 3"},
			[]string{"Date: d", `Cache-Control: max-age=60, no-cache="a, B"`, "C: 3"}},
		{"what private lists (5.2.2.7)", []string{"Date: d", `Cache-Control: private="set-cookie"`, "Set-Cookie: a=b"}, []string{"Date: d", `Cache-Control: private="set-cookie"`}},
		{"what a targeted field lists", []string{"Date: d", `CDN-Cache-Control: private="a"`, "A: 1", "B: 1", `Cache-Control: private="b"`},
			[]string{"Date: d", `CDN-Cache-Control: private="a"`, "B: 1", `Cache-Control: private="b"`}},
	} {
		if d := diff.Of(header(x.want...), rules.Stored(header(x.got...), now)); d != "" {
			t.Errorf("%s%s", x.name, d)
		}
	}
}
