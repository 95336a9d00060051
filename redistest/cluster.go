package redistest

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/hashslot"
	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// Cluster is a Redis Cluster of masters that is as strict as Redis: a key is served by the node that has its slot, commands and transactions
// keep to one slot, scripts to their node's, and violations are answered with MOVED or CROSSSLOT.
//
//	cluster := redistest.StartCluster(t, 3)
//	rdb := cluster.Client() // an in-memory *redis.ClusterClient; closed with the test
//
// A node is a Server, with its own clock, faults and log. When one hangs or refuses connections, as behind a broken network, the others do
// not notice. A node that was closed is down for them at once, and a cluster with unserved slots answers CLUSTERDOWN until that node is
// restarted or its slots are moved.
type Cluster struct {
	shared *engine.Cluster
	nodes  []*Server

	moving sync.Mutex // held to move slots

	mu     sync.Mutex // guards what follows
	client *redis.ClusterClient
}

// StartCluster starts a cluster of the given number of masters, at least one, with the slots divided evenly and in order. It stops when the
// test ends.
func StartCluster(tb testing.TB, masters int, o ...Options) *Cluster {
	tb.Helper()
	c, err := newCluster(tb, masters, o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// RunCluster returns a cluster outside of any test. The caller has to Close it.
func RunCluster(masters int, o ...Options) (*Cluster, error) { return newCluster(nil, masters, o) }

func newCluster(tb Tester, masters int, o []Options) (*Cluster, error) {
	if masters < 1 || masters > hashslot.Count || len(o) > 1 {
		return nil, fmt.Errorf("redistest: a cluster takes at least 1 master and one Options at most, got %d and %d", masters, len(o))
	}
	options := append(o, Options{})[0]
	c := &Cluster{shared: engine.NewCluster(masters, options.Seed)}
	for i := range masters {
		s := newServer(tb, options)
		s.cluster, s.node = c, i
		c.nodes = append(c.nodes, s)
		c.announce(i, memoryAddr(i))
		if err := s.open(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// announce tells clients the address of a node.
func (c *Cluster) announce(node int, addr string) {
	at := netip.MustParseAddrPort(addr) // the address of a listener, or memoryAddr's
	c.shared.Announce(node, at.Addr().String(), int(at.Port()))
}

// Client returns an in-memory client, the same at every call. It works in the synctest bubble in which the cluster was started, and is closed
// when the test ends. Make others with redis.NewClusterClient(cluster.Options()).
func (c *Cluster) Client() *redis.ClusterClient {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client == nil {
		rdb := redis.NewClusterClient(c.Options())
		c.client = rdb
		if tb := c.nodes[0].tb; tb != nil {
			tb.Cleanup(func() {
				rdb.Close()
				letReloadEnd()
			})
		}
	}
	return c.client
}

// letReloadEnd waits, in a synctest bubble, for a client that was told MOVED and then closed: it reloads its map in a goroutine that lingers
// for 200 ms, and a bubble must not end before that. Only in a bubble does the clock stand still between two readings.
func letReloadEnd() {
	began := time.Now()
	for range 100 {
		if time.Since(began) > 0 {
			return
		}
	}
	time.Sleep(time.Second)
}

// Options returns options for an in-memory client of your own, like Server.Options.
func (c *Cluster) Options() *redis.ClusterOptions {
	var addrs []string
	for i := range c.nodes {
		addrs = append(addrs, memoryAddr(i))
	}
	return c.nodes[0].clientOptions(c.Dial, addrs...).Cluster()
}

// Dial returns the client's end of a new in-memory connection to the node with this address, as the cluster announces it. The network is
// ignored.
func (c *Cluster) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	for i, s := range c.nodes {
		if addr == memoryAddr(i) || addr == s.port() {
			return s.Dial(ctx, network, addr)
		}
	}
	return nil, fmt.Errorf("redistest: no node of the cluster is at %s", addr)
}

// port returns the server's TCP address, empty if it has none.
func (s *Server) port() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addr
}

// Addrs returns "127.0.0.1:port" of every node, for clients that need TCP. The first call opens the ports, and from then on the cluster
// announces these addresses; in-memory clients find the nodes by them too. Not for synctest bubbles.
func (c *Cluster) Addrs() []string {
	var all []string
	for i, s := range c.nodes {
		addr := s.mustListen()
		if addr != "" { // a closed node has none yet
			c.announce(i, addr)
		}
		all = append(all, addr)
	}
	return all
}

// Nodes returns the nodes, in the order of their original slots.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int { return hashslot.Of(key) }

// Owner returns the node that serves a key.
func (c *Cluster) Owner(key string) *Server { return c.nodes[c.shared.Owner(hashslot.Of(key))] }

// MoveSlots makes a node serve the slots from first to last, with their keys, like a finished resharding that clients have not noticed yet.
// Clients with an old map of the cluster are told MOVED, and so are clients blocked on one of the keys; subscribers of shard channels are
// unsubscribed and told so. The move is instantaneous: no client is ever told ASK. The slots of a closed node can be moved too.
func (c *Cluster) MoveSlots(first, last int, to *Server) {
	if first < 0 || last >= hashslot.Count || first > last || to.cluster != c {
		c.nodes[0].fatal(fmt.Errorf("redistest: MoveSlots takes slots from 0 to %d and a node of the cluster, got %d to %d", hashslot.Count-1, first, last))
		return
	}
	c.moving.Lock()
	defer c.moving.Unlock()
	target := to.current()
	for _, from := range c.nodes {
		if from == to {
			continue
		}
		from.current().Do(func(now int64, e *engine.Engine) {
			target.Do(func(theirs int64, other *engine.Engine) { e.HandOver(now, first, last, other, theirs) })
		})
	}
}

// Advance moves the clocks of all nodes forward: see Server.Advance.
func (c *Cluster) Advance(d time.Duration) {
	for _, s := range c.nodes {
		s.Advance(d)
	}
}

// Close stops all nodes: see Server.Close. A test closes its cluster automatically.
func (c *Cluster) Close() {
	for _, s := range c.nodes {
		s.Close()
	}
}

// broadcast passes a message published at one node to the others.
func (c *Cluster) broadcast(from *Server, m engine.Message) {
	for _, s := range c.nodes {
		if s != from {
			s.current().Receive(m)
		}
	}
}
