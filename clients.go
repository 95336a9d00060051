package mayfly

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// CacheClient returns a client for packages that keep copies in Redis: cacheaside, httpcache, [OpenLocal]. It connects as o says, and takes
// timeouts and retries that are zero in o so that a call waits no longer than a copy is worth. It does no I/O; close it when you are done.
//
//	o := &redis.UniversalOptions{Addrs: []string{"redis:6379"}, Password: os.Getenv("REDIS_PASSWORD")}
//	caches, err := mayfly.CacheClient(o)
//	sessions, err := mayfly.DurableClient(o) // connections of its own: a crowd of one does not hold up the other
//
// A call ends with its context, tries once, and fails after at most 200 ms for a new connection (DialTimeout, DialerRetries 1) and 100 ms for the
// answer (ReadTimeout, WriteTimeout, MaxRetries -1). go-redis's own settings are for a Redis that must answer, and let one call on a server
// that hangs take 20 s, on one that cannot be reached 100 s. If all connections are in use a call waits for up to a second (PoolTimeout), since
// many callers are not a failure of Redis; the calls of a cache wait by their own rules (see [ErrCrowded]), and not at all while the cache's
// breaker is open. Set in o what does not fit. Where go-redis takes options of another type, the client's Options method has all of them.
func CacheClient(o *redis.UniversalOptions) (redis.UniversalClient, error) {
	return client("CacheClient", o, &redis.UniversalOptions{
		DialTimeout:      200 * time.Millisecond,
		DialerRetries:    1,
		MaxRetries:       -1, // none
		ReadTimeout:      100 * time.Millisecond,
		WriteTimeout:     100 * time.Millisecond,
		PoolTimeout:      time.Second,
		PipelinePoolSize: -1, // a pipeline of two needs no connections of its own, nor a second attempt on others
	})
}

// DurableClient is [CacheClient] for packages whose only copy is in Redis: sliding, navsession, fieldttl. It is more patient. A call ends with
// its context. Without a deadline it waits up to a second for a connection and another for the answer; reads and repeatable
// commands are retried three times, as go-redis does by default. (sliding, navsession and fieldttl bound each call by their own RedisTimeout, whatever the client.)
func DurableClient(o *redis.UniversalOptions) (redis.UniversalClient, error) {
	return client("DurableClient", o, &redis.UniversalOptions{
		DialTimeout:      time.Second,
		DialerRetries:    2,
		ReadTimeout:      time.Second,
		WriteTimeout:     time.Second,
		PoolTimeout:      time.Second,
		PipelinePoolSize: -1, // as in CacheClient
	})
}

func client(name string, o, defaults *redis.UniversalOptions) (redis.UniversalClient, error) {
	if o == nil {
		return nil, errors.New("mayfly: " + name + ": the options are nil: give it &redis.UniversalOptions{Addrs: []string{\"host:6379\"}}")
	}
	c := check.In("mayfly: " + name + ": ")
	c.Refuse(len(o.Addrs) == 0, "Addrs is empty: name the server, the nodes of the cluster, or, with MasterName, the sentinels")
	for i, addr := range o.Addrs {
		checkAddr(c, fmt.Sprintf("Addrs[%d]", i), addr)
	}
	cluster := o.MasterName == "" && (len(o.Addrs) > 1 || o.IsClusterMode) || o.MasterName != "" && (o.RouteByLatency || o.RouteRandomly || o.IsClusterMode)
	c.Refuse(o.DB < 0, "DB must not be negative, got %d; zero is the first", o.DB)
	c.Refuse(cluster && o.DB > 0, "DB is %d, and a cluster has database 0 alone: leave it at zero. (Several Addrs without MasterName, IsClusterMode, and routing of reads make a cluster's client)", o.DB)
	c.Refuse(o.Protocol != 0 && o.Protocol != 2 && o.Protocol != 3, "Protocol must be 2 or 3, got %d; zero is 3", o.Protocol)
	for _, n := range []struct {
		field string
		is    int
	}{
		{"PoolSize", o.PoolSize}, {"MinIdleConns", o.MinIdleConns}, {"MaxIdleConns", o.MaxIdleConns},
		{"MaxActiveConns", o.MaxActiveConns}, {"MaxConcurrentDials", o.MaxConcurrentDials}, {"DialerRetries", o.DialerRetries},
	} {
		c.Refuse(n.is < 0, "%s must not be negative, got %d; zero is the default", n.field, n.is)
	}
	for _, d := range []struct {
		field string
		is    time.Duration
	}{{"DialTimeout", o.DialTimeout}, {"PoolTimeout", o.PoolTimeout}} {
		c.Refuse(d.is < 0, "%s must not be negative, got %v; zero is the default", d.field, d.is)
	}
	c.Refuse(o.MaxActiveConns > 0 && o.MinIdleConns > o.MaxActiveConns, "MinIdleConns is %d, more than the MaxActiveConns of %d: no pool can have that", o.MinIdleConns, o.MaxActiveConns)
	c.Refuse(o.ReadTimeout < 0 || o.WriteTimeout < 0, "ReadTimeout %v and WriteTimeout %v must not be negative: that turns deadlines off, also those of contexts; leave them at zero", o.ReadTimeout, o.WriteTimeout)
	if err := c.Err(); err != nil {
		return nil, err
	}
	of := *o // the caller may go on using its options
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

// checkAddr rejects anything but a host and a port, or the path of a socket. It does not show text before an @, which may be a password.
func checkAddr(c *check.List, field, addr string) {
	shown := addr
	if at := strings.LastIndexByte(shown, '@'); at >= 0 {
		shown = "..." + shown[at:]
	}
	switch host, port, err := net.SplitHostPort(addr); {
	case addr == "":
		c.Refuse(true, "%s is empty: it takes a host and a port, as in %q", field, "redis:6379")
	case strings.HasPrefix(addr, "/"): // go-redis takes it for a socket
	case strings.Contains(addr, "://"):
		c.Refuse(true, "%s is a URL, %q: it takes a host and a port, as in %q; redis.ParseURL reads URLs", field, shown, "redis:6379")
	case err != nil || port == "":
		c.Refuse(true, "%s is %q: it takes a host and a port, as in %q", field, shown, "redis:6379")
	default:
		_, err := net.LookupPort("tcp", port)
		c.Refuse(err != nil || strings.ContainsAny(host, " /@"), "%s is %q: it takes a host and a port, as in %q", field, shown, "redis:6379")
	}
}
