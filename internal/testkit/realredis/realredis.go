// Package realredis gives tests go-redis clients of the servers that realserver starts and breaks. Only tests import it.
//
//	srv := realredis.Start(t, realredis.Options{})
//	rdb := srv.Client()
//	srv.Kill() // what does the code under test do now?
//
// Tests that need no go-redis use realserver itself.
package realredis

import (
	"slices"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/realserver"
	"github.com/redis/go-redis/v9"
)

// What realserver says in its own words.
type (
	Options = realserver.Options
	Flavour = realserver.Flavour
	Version = realserver.Version
)

const (
	Redis8  = realserver.Redis8
	Redis86 = realserver.Redis86
	Redis7  = realserver.Redis7
	Valkey  = realserver.Valkey
)

// Tool returns the path of a program that comes with the flavour's server; see [realserver.Tool].
func Tool(t testing.TB, f Flavour, name string) string {
	t.Helper()
	return realserver.Tool(t, f, name)
}

// A Server is one redis-server on 127.0.0.1.
type Server struct {
	*realserver.Server
	t testing.TB
}

// Start starts a single server.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	return &Server{realserver.Start(t, o), t}
}

// Options returns options for a go-redis client of the server, for the caller to change.
func (s *Server) Options() *redis.Options { return &redis.Options{Addr: s.Addr()} }

// Client returns a new client of the server, which is closed at the end of the test.
func (s *Server) Client() *redis.Client {
	rdb := redis.NewClient(s.Options())
	s.t.Cleanup(func() { rdb.Close() })
	return rdb
}

// nodes are servers that belong together, each with one *Server, so that these can be compared.
type nodes []*Server

func wrap(t testing.TB, servers []*realserver.Server) (all nodes) {
	for _, s := range servers {
		all = append(all, &Server{s, t})
	}
	return all
}

func (n nodes) of(s *realserver.Server) *Server {
	return n[slices.IndexFunc(n, func(one *Server) bool { return one.Server == s })]
}

func (n nodes) addrs() (addrs []string) {
	for _, s := range n {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// A Cluster is a Redis Cluster. The methods of its nodes break it; the other nodes fail over a node that is killed or paused.
type Cluster struct {
	*realserver.Cluster
	t     testing.TB
	nodes nodes
}

// StartCluster starts a cluster; see [realserver.StartCluster].
func StartCluster(t testing.TB, masters, replicas int, o Options) *Cluster {
	t.Helper()
	c := realserver.StartCluster(t, masters, replicas, o)
	return &Cluster{c, t, wrap(t, c.Nodes())}
}

// Options returns options for a go-redis cluster client, for the caller to change.
func (c *Cluster) Options() *redis.ClusterOptions {
	return &redis.ClusterOptions{Addrs: c.nodes.addrs()}
}

// Client returns a new client of the cluster, which is closed at the end of the test.
func (c *Cluster) Client() *redis.ClusterClient {
	rdb := redis.NewClusterClient(c.Options())
	c.t.Cleanup(func() { rdb.Close() })
	return rdb
}

// Nodes returns all nodes, the original masters first.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Owner returns the master that now serves key, according to the first node that is up.
func (c *Cluster) Owner(key string) *Server {
	c.t.Helper()
	return c.nodes.of(c.Cluster.Owner(key))
}

// Failover makes a replica take over from the master that serves key; see [realserver.Cluster.Failover].
func (c *Cluster) Failover(key string) *Server {
	c.t.Helper()
	return c.nodes.of(c.Cluster.Failover(key))
}

// Migrate moves the slot of key to another master while clients use it; see [realserver.Cluster.Migrate].
func (c *Cluster) Migrate(key string) *Server {
	c.t.Helper()
	return c.nodes.of(c.Cluster.Migrate(key))
}

// A Sentinel is a master with its replicas, watched by three sentinels. The methods of its nodes break it; a master that is killed or paused
// is failed over.
type Sentinel struct {
	*realserver.Sentinel
	t                testing.TB
	nodes, sentinels nodes
}

// StartSentinel starts a master with replicas and three sentinels; see [realserver.StartSentinel].
func StartSentinel(t testing.TB, replicas int, o Options) *Sentinel {
	t.Helper()
	s := realserver.StartSentinel(t, replicas, o)
	return &Sentinel{s, t, wrap(t, s.Nodes()), wrap(t, s.Sentinels())}
}

// Options returns options for a go-redis failover client, for the caller to change.
func (s *Sentinel) Options() *redis.FailoverOptions {
	return &redis.FailoverOptions{MasterName: realserver.MasterName, SentinelAddrs: s.sentinels.addrs()}
}

// Client returns a new client of the current master; it is closed at the end of the test.
func (s *Sentinel) Client() *redis.Client {
	rdb := redis.NewFailoverClient(s.Options())
	s.t.Cleanup(func() { rdb.Close() })
	return rdb
}

// Nodes returns the first master and its replicas.
func (s *Sentinel) Nodes() []*Server { return slices.Clone(s.nodes) }

// Sentinels returns the three sentinels.
func (s *Sentinel) Sentinels() []*Server { return slices.Clone(s.sentinels) }

// Master returns the master according to the first sentinel that is up.
func (s *Sentinel) Master() *Server {
	s.t.Helper()
	return s.nodes.of(s.Sentinel.Master())
}

// Failover makes a replica take over from the master; see [realserver.Sentinel.Failover].
func (s *Sentinel) Failover() *Server {
	s.t.Helper()
	return s.nodes.of(s.Sentinel.Failover())
}

// Settle returns the master once the sentinels agree on one that is up; see [realserver.Sentinel.Settle].
func (s *Sentinel) Settle() *Server {
	s.t.Helper()
	return s.nodes.of(s.Sentinel.Settle())
}
