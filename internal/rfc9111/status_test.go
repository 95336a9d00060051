package rfc9111_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/mayflycache/mayfly/internal/rfc9111"
)

// RFC 9211, section 2.
func TestCacheStatus(t *testing.T) {
	for _, x := range []struct {
		status rfc9111.CacheStatus
		want   string
	}{
		{rfc9111.CacheStatus{Cache: "mayfly", Hit: true, TTL: 376 * time.Second, HasTTL: true}, "mayfly; hit; ttl=376"},
		{rfc9111.CacheStatus{Cache: "mayfly", Hit: true, TTL: -412 * time.Second, HasTTL: true}, "mayfly; hit; ttl=-412"},
		{rfc9111.CacheStatus{Cache: "mayfly", Hit: true, TTL: -time.Millisecond, HasTTL: true, Detail: "stale-if-error"}, "mayfly; hit; ttl=-1; detail=stale-if-error"},
		{rfc9111.CacheStatus{Cache: "mayfly", Hit: true, HasTTL: true, TTL: 1999 * time.Millisecond}, "mayfly; hit; ttl=1"},
		{rfc9111.CacheStatus{Cache: "mayfly", Fwd: rfc9111.FwdStale, FwdStatus: 304, Stored: true, TTL: time.Minute, HasTTL: true}, "mayfly; fwd=stale; fwd-status=304; ttl=60; stored"},
		{rfc9111.CacheStatus{Cache: "mayfly", Fwd: rfc9111.FwdURIMiss, Collapsed: true, Key: "http://a/b?c"}, `mayfly; fwd=uri-miss; collapsed; key="http://a/b?c"`},
		{rfc9111.CacheStatus{Cache: "a b", Fwd: rfc9111.FwdBypass, Detail: "no such thing"}, `"a b"; fwd=bypass; detail="no such thing"`},
		{rfc9111.CacheStatus{Cache: "1", Fwd: rfc9111.FwdMethod}, `"1"; fwd=method`},
		{rfc9111.CacheStatus{Cache: "m", Hit: true, Key: "a\"b\\c\r\nSet-Cookie: x\xff"}, `m; hit; key="a\"b\\c%0D%0ASet-Cookie: x%FF"`},
	} {
		if got := string(x.status.Append([]byte("up; hit, "))); got != "up; hit, "+x.want {
			t.Errorf("%+v: %s", x.status, got)
		}
	}
	s := rfc9111.CacheStatus{Cache: "mayfly", Hit: true, HasTTL: true, TTL: time.Minute, Key: "http://example.com/a?b=c"}
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { s.Append(buf) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Whatever a key or a detail holds, the field stays one member of a list, of bounded size.
func FuzzCacheStatus(f *testing.F) {
	f.Add("mayfly", "http://a/b", "detail")
	f.Add("a,b", "\"\r\n", "*")
	f.Fuzz(func(t *testing.T, cache, key, detail string) {
		s := rfc9111.CacheStatus{Cache: cache, Fwd: rfc9111.FwdMiss, Key: key, Detail: detail}
		got := string(s.Append(nil))
		list, err := httpsfv.UnmarshalList([]string{got})
		if err != nil || len(list) != 1 || strings.ContainsAny(got, "\r\n") {
			t.Errorf("%q: %d members, %v", got, len(list), err)
		}
		if len(cache) < 100 && len(got) > 100*3+2*3*600 {
			t.Errorf("%d bytes", len(got))
		}
	})
}
