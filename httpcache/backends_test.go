package httpcache_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/backends"
)

// behaviours hold on every backend. Each uses keys of its own, and no clock.
var behaviours = []struct {
	name string
	test func(t *testing.T, rdb redis.UniversalClient)
}{
	{"a fresh answer is served from the cache", aFreshAnswerIsServedFromTheCache},
	{"what is not for others is not stored", whatIsNotForOthersIsNotStored},
	{"variants are told apart", variantsAreToldApart},
	{"Purge by URL, prefix and tag", purgeByURLPrefixAndTag},
	{"unsafe methods invalidate", unsafeMethodsInvalidate},
	{"targets that are none", targetsThatAreNone},
	{"distinct Vary values are bounded", distinctValuesAreBounded},
}

func TestBackends(t *testing.T) {
	for _, b := range backends.All {
		t.Run(b.Name, func(t *testing.T) {
			rdb := b.Open(t)
			for _, x := range behaviours {
				t.Run(x.name, func(t *testing.T) { x.test(t, rdb) })
			}
		})
	}
}
