package nodes

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// What a client's settings do to its calls is said when a cache is made.
func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		rdb    redis.UniversalClient
		budget time.Duration
		says   string
	}{
		"go-redis's defaults":   {redis.NewClient(&redis.Options{}), 2 * time.Second, ""},
		"no deadlines":          {redis.NewClient(&redis.Options{ReadTimeout: -2}), Timeout, "turns deadlines off"},
		"a cluster without":     {redis.NewClusterClient(&redis.ClusterOptions{WriteTimeout: -2}), Timeout, "turns deadlines off"},
		"shorter by default":    {redis.NewClient(&redis.Options{ContextTimeoutEnabled: true, ReadTimeout: time.Millisecond}), Timeout, ""},
		"shorter":               {redis.NewClient(&redis.Options{ContextTimeoutEnabled: true, ReadTimeout: 100 * time.Millisecond}), 2 * time.Second, "RedisTimeout is 2s, but the client gives up after 100ms"},
		"a shorter cluster":     {redis.NewClusterClient(&redis.ClusterOptions{ContextTimeoutEnabled: true, WriteTimeout: time.Second}), 2 * time.Second, "gives up after 1s"},
		"it is asked otherwise": {redis.NewClient(&redis.Options{ReadTimeout: 100 * time.Millisecond}), 2 * time.Second, ""},
		"a ring":                {redis.NewRing(&redis.RingOptions{}), Timeout, "neither a redis.Client nor"},
	} {
		defer c.rdb.Close()
		if got := strings.Join(Warnings(c.rdb, c.budget), "; "); got == "" != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The error of a call that was too slow says how long it has waited.
func TestTooSlowForTheClient(t *testing.T) {
	for respects, says := range map[bool]string{true: "(127.0.0.1:1, 100ms)", false: "(127.0.0.1:1, 2s)"} {
		rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: respects, ReadTimeout: 100 * time.Millisecond})
		defer rdb.Close()
		n := New(Options{Redis: rdb, Timeout: 2 * time.Second}).only
		if got := n.slow(nil).Error(); !strings.HasSuffix(got, says) {
			t.Errorf("ContextTimeoutEnabled %v: %q", respects, got)
		}
	}
}
