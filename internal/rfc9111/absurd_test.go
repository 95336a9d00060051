package rfc9111_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/rfc9111"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

// absurd are lines of half a megabyte, in a plain run of a quarter of that, that nobody in his right mind sends.
func absurd() map[string]string {
	n := effort.Times(1<<17, 1<<19)
	return map[string]string{
		"digits":          strings.Repeat("9", n),
		"commas":          strings.Repeat(",", n),
		"equals":          strings.Repeat("=", n),
		"quotes":          strings.Repeat(`"`, n-1),
		"escaped quotes":  `"` + strings.Repeat(`\"`, n/2),
		"quotes that end": strings.Repeat(`a="\"",`, n/7),
		"bytes":           strings.Repeat("\xff\x00", n/2),
		"spaces":          strings.Repeat("a  ", n/3),
		"directives":      strings.Repeat("max-age=1,", n/10),
		"fields":          `private="` + strings.Repeat("a,", n/2) + `"`,
		"preferences":     strings.Repeat("a;q=0.1,", n/8),
		"tags":            strings.Repeat(`W/"a",`, n/6),
		"ranges":          "bytes=" + strings.Repeat("0-1,", n/4),
		"a dictionary":    "max-age=1" + strings.Repeat(", a", n/3),
	}
}

// Reading a header takes time in proportion to its length: nobody can keep a processor busy with one. Ten seconds are a
// thousand times what it takes, and a fraction of what reading each line once for each of its bytes would.
func TestAbsurdHeaders(t *testing.T) {
	for name, line := range absurd() {
		began := time.Now()
		h, now := make(http.Header), time.Unix(1700000000, 0)
		for _, field := range []string{"Accept-Encoding", "Accept-Language", "Age", "Cache-Control", "CDN-Cache-Control", "Connection", "Content-Length",
			"Content-Location", "Date", "Etag", "Expires", "Foo", "If-Modified-Since", "If-None-Match", "If-Range", "Last-Modified", "Location", "Range", "Vary"} {
			h[http.CanonicalHeaderKey(field)] = []string{line}
		}
		r := get("/", "h")
		for _, field := range []string{"Accept-Encoding", "Accept-Language", "Cache-Control", "Foo", "If-Modified-Since", "If-None-Match", "If-Range", "Range"} {
			r.Header[field] = []string{line}
		}
		rules, keys := rfc9111.Rules{Targeted: []string{"CDN-Cache-Control"}}, rfc9111.Keys{}
		q := rfc9111.ParseCacheControl(r.Header)
		policy, _ := rules.Judge(rfc9111.Exchange{Request: r, Status: 200, Header: h, Sent: now, Received: now})
		policy.Decide(q, now)
		policy.OnError(q, now)
		if fields, ok := rfc9111.ParseVary(h); ok && len(fields) > 16 {
			t.Errorf("%s: %d fields", name, len(fields))
		}
		if got := rfc9111.Variant([]string{"Accept-Encoding", "Accept-Language", "Foo"}, rfc9111.Selectors{Header: r.Header}); len(got) > 200 {
			t.Errorf("%s: a variant's name of %d bytes", name, len(got))
		}
		rfc9111.NotModified(r.Header, h, now)
		rfc9111.Range(r.Header, h, 100, now)
		rfc9111.Update(h, h)
		rfc9111.Selects(h, h)
		rules.Stored(h, now)
		r.Method = http.MethodPost
		keys.Invalidated(r, 200, h)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: %v", name, took)
		}
	}
}
