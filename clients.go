package mayfly

import (
	"cmp"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// CacheClient returns a client for what Redis holds copies of: cacheaside, httpcache, [OpenLocal]. It connects as o says, and what o
// leaves at zero of timeouts and retries is as in [TunedOptions]. It does no I/O; close it when you are done.
//
//	o := &redis.UniversalOptions{Addrs: []string{"redis:6379"}, Password: os.Getenv("REDIS_PASSWORD")}
//	caches, err := mayfly.CacheClient(o)
//	sessions, err := mayfly.DurableClient(o) // connections of its own: a crowd of one does not hold up the other
func CacheClient(o *redis.UniversalOptions) (redis.UniversalClient, error) {
	return client("CacheClient", o, TunedOptions())
}

// DurableClient is [CacheClient] for what Redis has the only copy of: sliding, navsession, fieldttl. It is more patient. A call ends with
// its context. Without a deadline it waits up to a second each for a connection and for the answer; reads, and whatever may be
// repeated, are tried three times more, as go-redis does by default. (sliding, navsession and fieldttl give a question a RedisTimeout of their own, whatever the client.)
func DurableClient(o *redis.UniversalOptions) (redis.UniversalClient, error) {
	return client("DurableClient", o, &redis.UniversalOptions{
		DialTimeout:      time.Second,
		DialerRetries:    2,
		ReadTimeout:      time.Second,
		WriteTimeout:     time.Second,
		PoolTimeout:      time.Second,
		PipelinePoolSize: -1, // as in TunedOptions
	})
}

func client(name string, o, defaults *redis.UniversalOptions) (redis.UniversalClient, error) {
	if o == nil {
		return nil, errors.New("mayfly: " + name + ": the options are nil: give it &redis.UniversalOptions{Addrs: []string{\"host:6379\"}}")
	}
	c := check.In("mayfly: " + name + ": ")
	c.Refuse(len(o.Addrs) == 0, "Addrs is empty: name the server, the nodes of the cluster, or, with MasterName, the sentinels")
	c.Refuse(o.PoolSize < 0, "PoolSize must not be negative, got %d; zero is go-redis's default", o.PoolSize)
	c.Refuse(o.DB < 0, "DB must not be negative, got %d", o.DB)
	c.Refuse(o.ReadTimeout < 0 || o.WriteTimeout < 0, "ReadTimeout %v and WriteTimeout %v must not be negative: that turns deadlines off, also those of contexts; leave them at zero", o.ReadTimeout, o.WriteTimeout)
	if err := c.Err(); err != nil {
		return nil, err
	}
	of := *o // the caller may go on to use its own
	of.ContextTimeoutEnabled = true
	of.DialTimeout = cmp.Or(o.DialTimeout, defaults.DialTimeout)
	of.DialerRetries = cmp.Or(o.DialerRetries, defaults.DialerRetries)
	of.MaxRetries = cmp.Or(o.MaxRetries, defaults.MaxRetries)
	of.ReadTimeout = cmp.Or(o.ReadTimeout, defaults.ReadTimeout)
	of.WriteTimeout = cmp.Or(o.WriteTimeout, defaults.WriteTimeout)
	of.PoolTimeout = cmp.Or(o.PoolTimeout, defaults.PoolTimeout)
	of.PipelinePoolSize = cmp.Or(o.PipelinePoolSize, defaults.PipelinePoolSize)
	return redis.NewUniversalClient(&of), nil
}
