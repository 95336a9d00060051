package mayfly

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// TunedOptions returns settings for a client of a Redis that holds a cache: one that waits for an answer no longer
// than the answer is worth. go-redis's own are for a Redis that must answer, and let one call on a server that hangs
// take 20 s, on one that cannot be reached 100 s. Fill in the rest and change what does not fit:
//
//	o := mayfly.TunedOptions()
//	o.Addrs = []string{"redis:6379"}
//	rdb := redis.NewUniversalClient(o) // or redis.NewClient(o.Simple()), for a cluster redis.NewClusterClient(o.Cluster())
//
// A call ends with its context, tries once, and fails after at most 200 ms for a new connection and 100 ms for the answer. If all
// connections are in use it waits for up to a second, since many callers are not a failure of Redis; the calls of a cache wait by their own rules
// (see [ErrCrowded]), and not at all while the cache's breaker is open. [CacheClient] makes such a client in one line, and [DurableClient]
// one for data whose only copy is in Redis.
func TunedOptions() *redis.UniversalOptions {
	return &redis.UniversalOptions{
		ContextTimeoutEnabled: true,
		DialTimeout:           200 * time.Millisecond,
		DialerRetries:         1,
		MaxRetries:            -1, // none
		ReadTimeout:           100 * time.Millisecond,
		WriteTimeout:          100 * time.Millisecond,
		PoolTimeout:           time.Second,
		PipelinePoolSize:      -1, // a pipeline of two needs no connections of its own, nor a second attempt on others
	}
}
