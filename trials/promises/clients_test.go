package promises

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

// client is a way to set up go-redis, and how it gives up on a request.
type client struct {
	name string
	tune func(*redis.UniversalOptions)
	cut  bool // it is cut; else its own timeout ends

	tuned bool // by mayfly.CacheClient

	long bool // for the long form, or a real server
}

var clients = []client{
	{name: "defaults, cut", tune: func(*redis.UniversalOptions) {}, cut: true},
	{name: "short timeouts", tune: func(o *redis.UniversalOptions) { o.ReadTimeout = short }},
	{name: "contexts, cut", tune: func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true }, cut: true},
	{name: "no retries, cut", tune: func(o *redis.UniversalOptions) { o.MaxRetries = -1 }, cut: true},
	{name: "contexts, short timeouts", long: true, tune: func(o *redis.UniversalOptions) {
		o.ContextTimeoutEnabled, o.ReadTimeout = true, short
	}},
	{name: "no retries, short timeouts", long: true, tune: func(o *redis.UniversalOptions) {
		o.MaxRetries, o.ReadTimeout = -1, short
	}},
	{name: "tuned", long: true, tuned: true},
}

// short is a timeout that ends what is held back, and nothing else: a machine that is busy, and the race detector, take their time.
var short = 50 * time.Millisecond

func init() {
	if effort.Race {
		short = 500 * time.Millisecond
	}
}

// server is where the rows are tried.
type server struct {
	name  string
	start func(t *testing.T) (addrs []string, direct redis.UniversalClient)
	long  bool // all clients
	most  int  // else so many of them, the first
}

var servers = []server{
	{name: "double", long: effort.Long(), most: 4, start: func(t *testing.T) ([]string, redis.UniversalClient) {
		srv := redistest.Start(t)
		return []string{srv.Addr()}, srv.Client()
	}},
	{name: "redis 8", long: effort.Long(), most: 2, start: func(t *testing.T) ([]string, redis.UniversalClient) {
		srv := realredis.Start(t, realredis.Options{})
		return []string{srv.Addr()}, srv.Client()
	}},
	{name: "cluster", long: effort.Long(), most: 1, start: func(t *testing.T) ([]string, redis.UniversalClient) {
		cluster := realredis.StartCluster(t, 3, 0, realredis.Options{})
		return cluster.Options().Addrs, cluster.Client()
	}},
}

// each tries every row with the clients of every server, each in a world of its own. late is that it is about late copies after nil,
// which a plain run tries with more clients than the rest.
func each(t *testing.T, late bool, rows []row, try func(t *testing.T, c client, r row, w world, p *proxy.Proxy)) {
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			addrs, direct := s.start(t)
			for n, c := range clients {
				if (c.long || n >= s.most) && !s.long {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					for _, r := range rows {
						if !s.long && (!late && (r.slow || !c.cut) || !c.cut && r.copies) {
							continue
						}
						t.Run(r.name, func(t *testing.T) {
							t.Parallel()
							p := proxy.Start(t)
							ctx, cancel := context.WithTimeout(context.Background(), patience)
							defer cancel()
							w := world{t: t, ctx: ctx, prefix: prefix(), through: c.open(t, p, addrs), direct: direct, cut: c.cut}
							defer w.remove()
							try(t, c, r, w, p)
						})
					}
				})
			}
		})
	}
}

// open returns a client that goes by the proxy.
func (c client) open(t *testing.T, p *proxy.Proxy, addrs []string) redis.UniversalClient {
	o := &redis.UniversalOptions{Addrs: addrs, Dialer: p.Dial, MinRetryBackoff: time.Millisecond, MaxRetryBackoff: 2 * time.Millisecond,
		ReadBufferSize: 4096, WriteBufferSize: 4096, DisableIdentity: true}
	var rdb redis.UniversalClient
	if c.tuned {
		rdb = mayfly.Must(mayfly.CacheClient(&redis.UniversalOptions{Addrs: addrs, Dialer: p.Dial}))
	} else {
		c.tune(o)
		rdb = redis.NewUniversalClient(o)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// lose has the reply to a request be lost: the client is cut, or waits for it.
func (c client) lose(p *proxy.Proxy, command, mentions string) *proxy.Fault {
	if c.cut {
		return p.CutAfter(command, mentions)
	}
	return p.DropReply(command, mentions)
}
