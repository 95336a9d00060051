package httpcache_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// A missing handler is noticed when it is mounted, not at the first request.
func TestMountNil(t *testing.T) {
	opt := options(t, redistest.Start(t).Client())
	for _, next := range []http.Handler{nil, http.HandlerFunc(nil)} {
		expect.Panic(t, "httpcache: Handler got a nil handler", func() { must(t)(opt.New()).Handler(next) })
	}
}

// TTL bounds the lifetimes that responses declare, so a second bound would mean the same.
func TestNoMaxTTL(t *testing.T) {
	opt := options(t, redistest.Start(t).Client())
	opt.Namespace.MaxTTL = 2 * opt.Namespace.TTL
	if _, err := opt.New(); err == nil || !strings.Contains(err.Error(), "Namespace.MaxTTL is 48h0m0s, and Namespace.TTL is what bounds") {
		t.Error(err)
	}
}
