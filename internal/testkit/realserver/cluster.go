package realserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// A Cluster is a Redis Cluster. The methods of its nodes break it; the other nodes fail over a node that is killed or paused.
type Cluster struct {
	t     testing.TB
	nodes []*Server
}

const slots = 16384

// StartCluster starts a cluster of masters (at least 3) and replicas, distributed over the masters in turn, and returns when every node
// considers it complete. That takes about 2 s, during which a new master refuses to serve, whatever its peers say.
func StartCluster(t testing.TB, masters, replicas int, o Options) *Cluster {
	t.Helper()
	if masters < 3 || replicas < 0 {
		t.Fatalf("realserver: StartCluster needs at least 3 masters and no negative replicas, got %d and %d", masters, replicas)
	}
	b := need(t, o.Flavour)
	c := &Cluster{t: t}
	for range masters + replicas {
		s := prepare(t, b, append([]string{
			"cluster-enabled yes",
			"cluster-announce-ip 127.0.0.1",
			"cluster-node-timeout 2000",  // how long a node hangs before it is failed over
			"repl-ping-replica-period 1", // clients are told of a replica once it has received something
		}, o.Config...)...)
		s.busPort = anyPort
		c.nodes = append(c.nodes, s)
	}
	startAll(t, c.nodes...)

	must(c.t, c.build(context.Background(), masters))
	must(c.t, until(func(ctx context.Context) error { return c.complete(ctx, replicas) }))
	return c
}

// build distributes the slots to the first nodes, introduces all nodes to each other, and makes the others replicate the first ones in turn.
func (c *Cluster) build(ctx context.Context, masters int) error {
	ids := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		// Every pair is introduced, because gossip would need several rounds. Epochs differ from the start, so that no two masters have to
		// settle which is newer.
		commands := [][]string{{"SET-CONFIG-EPOCH", strconv.Itoa(i + 1)}}
		if i < masters {
			commands = append(commands, []string{"ADDSLOTSRANGE", strconv.Itoa(i * slots / masters), strconv.Itoa((i+1)*slots/masters - 1)})
		}
		for _, peer := range c.nodes[:i] {
			commands = append(commands, []string{"MEET", "127.0.0.1", strconv.Itoa(peer.port), strconv.Itoa(peer.busPort)})
		}
		for _, words := range append(commands, []string{"MYID"}) {
			v, err := s.cluster(ctx, words...)
			if err != nil {
				return fmt.Errorf("introduce node %d: %w", i, err)
			}
			ids[i] = v.Text
		}
	}
	for i, s := range c.nodes[masters:] {
		master := ids[i%masters]
		if err := until(func(ctx context.Context) error {
			_, err := s.cluster(ctx, "REPLICATE", master)
			return err
		}); err != nil {
			return fmt.Errorf("replicate %s: %w", master, err)
		}
	}
	return nil
}

// cluster asks a node with a command of the family CLUSTER.
func (s *Server) cluster(ctx context.Context, words ...string) (resp.Value, error) {
	return s.ask(ctx, append([]string{"CLUSTER"}, words...)...)
}

// complete returns what is still wrong: every node that is up must serve, be in step with its master, and give clients the same view of the
// slots: each range at a master that is up, with at least this many replicas in total.
func (c *Cluster) complete(ctx context.Context, replicas int) error {
	var first string
	for _, s := range c.nodes {
		if !s.up() {
			continue
		}
		info, err := s.cluster(ctx, "INFO")
		if err != nil {
			return err
		}
		if !strings.Contains(info.Text, "cluster_state:ok") {
			return fmt.Errorf("%s does not serve: %s", s.Addr(), info.Text)
		}
		replication, err := s.ask(ctx, "INFO", "replication")
		if err != nil {
			return err
		}
		if strings.Contains(replication.Text, "master_link_status:down") {
			return fmt.Errorf("%s is not in step with its master", s.Addr())
		}
		shards, err := c.shards(ctx, s)
		if err != nil {
			return err
		}
		found := 0
		for _, shard := range shards {
			if !shard.servers[0].up() {
				return fmt.Errorf("%s still has %v", s.Addr(), shard)
			}
			found += len(shard.servers) - 1
		}
		if found < replicas {
			return fmt.Errorf("%s knows %d of %d replicas", s.Addr(), found, replicas)
		}
		if view := fmt.Sprint(shards); first == "" {
			first = view
		} else if view != first {
			return fmt.Errorf("nodes differ: %s, %s", first, view)
		}
	}
	return nil
}

// A shard is a range of slots and the nodes that have it, the master first.
type shard struct {
	start, end int
	servers    []*Server
}

func (s shard) String() string {
	addrs := make([]string, len(s.servers))
	for i, server := range s.servers {
		addrs[i] = server.Addr()
	}
	return fmt.Sprintf("%d-%d at %v", s.start, s.end, addrs)
}

// shards returns what s tells clients, in a fixed order.
func (c *Cluster) shards(ctx context.Context, s *Server) ([]shard, error) {
	ranges, err := s.cluster(ctx, "SLOTS") // as clients do; some nodes that CLUSTER SHARDS names are not in it yet
	if err != nil {
		return nil, err
	}
	var shards []shard
	for _, r := range ranges.List { // start, end, nodes
		one := shard{start: int(r.List[0].Int), end: int(r.List[1].Int)}
		for _, n := range r.List[2:] { // address, port, ...
			port := int(n.List[1].Int)
			i := slices.IndexFunc(c.nodes, func(s *Server) bool { return s.port == port })
			if i < 0 {
				return nil, fmt.Errorf("%s names a stranger: %s:%d", s.Addr(), n.List[0].Text, port)
			}
			one.servers = append(one.servers, c.nodes[i])
		}
		if len(one.servers) == 0 {
			return nil, fmt.Errorf("%s has slots %d-%d nowhere", s.Addr(), one.start, one.end)
		}
		slices.SortFunc(one.servers[1:], func(a, b *Server) int { return a.port - b.port })
		shards = append(shards, one)
	}
	slices.SortFunc(shards, func(a, b shard) int { return a.start - b.start })
	return shards, nil
}

// Nodes returns all nodes, the original masters first.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Owner returns the master that now serves key, according to the first node that is up.
func (c *Cluster) Owner(key string) *Server {
	c.t.Helper()
	servers, err := c.serving(context.Background(), key)
	must(c.t, err)
	return servers[0]
}

// serving returns the master that serves key, then its replicas.
func (c *Cluster) serving(ctx context.Context, key string) ([]*Server, error) {
	i := slices.IndexFunc(c.nodes, (*Server).up)
	if i < 0 {
		return nil, errors.New("no node of the cluster is up")
	}
	slot, err := c.nodes[i].cluster(ctx, "KEYSLOT", key)
	if err != nil {
		return nil, err
	}
	shards, err := c.shards(ctx, c.nodes[i])
	if err != nil {
		return nil, err
	}
	for _, shard := range shards {
		if shard.start <= int(slot.Int) && int(slot.Int) <= shard.end {
			return shard.servers, nil
		}
	}
	return nil, fmt.Errorf("nobody serves slot %d of %q", slot.Int, key)
}

// Failover makes a replica take over from the master that serves key, and returns the new master when all nodes know it. If the old master is
// up, nothing is lost; if it is down, the cluster would do the same by itself a little later.
func (c *Cluster) Failover(key string) *Server {
	c.t.Helper()
	ctx := context.Background()
	servers, err := c.serving(ctx, key)
	must(c.t, err)
	i := slices.IndexFunc(servers[1:], (*Server).up)
	if i < 0 {
		c.t.Fatalf("realserver: no replica of the master of %q is up", key)
	}
	next := servers[1+i]
	command := []string{"CLUSTER", "FAILOVER"}
	if !servers[0].up() {
		command = append(command, "FORCE") // without the old master's consent
	}
	next.Do(command...)
	must(c.t, until(func(ctx context.Context) error {
		now, err := c.serving(ctx, key)
		if err == nil && now[0] != next {
			err = fmt.Errorf("%q is still served by %s", key, now[0].Addr())
		}
		return errors.Join(err, c.complete(ctx, 0))
	}))
	return next
}

// Settle waits until the nodes that are up serve all slots and agree on how: after a master was killed or paused, until one of its replicas
// has taken over; after a restart, until the node has caught up.
func (c *Cluster) Settle() {
	c.t.Helper()
	must(c.t, until(func(ctx context.Context) error { return c.complete(ctx, 0) }))
}

// Migrate moves the slot of key to another master while clients use it, key by key, as an operator would, and returns the new master when all
// nodes know it. Nothing is lost.
func (c *Cluster) Migrate(key string) *Server {
	c.t.Helper()
	ctx := context.Background()
	from := c.Owner(key)
	slot := from.Do("CLUSTER", "KEYSLOT", key)
	shards, err := c.shards(ctx, from)
	must(c.t, err)
	i := slices.IndexFunc(shards, func(s shard) bool { return s.servers[0] != from })
	if i < 0 {
		c.t.Fatalf("realserver: no master but %s", from.Addr())
	}
	to := shards[i].servers[0]
	must(c.t, c.migrate(ctx, fmt.Sprint(slot.Int), from, to))
	must(c.t, until(func(ctx context.Context) error {
		now, err := c.serving(ctx, key)
		if err == nil && now[0] != to {
			err = fmt.Errorf("%q is still served by %s", key, now[0].Addr())
		}
		return errors.Join(err, c.complete(ctx, 0))
	}))
	return to
}

func (c *Cluster) migrate(ctx context.Context, slot string, from, to *Server) error {
	ids := make(map[*Server]string)
	for _, s := range []*Server{from, to} {
		id, err := s.cluster(ctx, "MYID")
		if err != nil {
			return err
		}
		ids[s] = id.Text
	}
	if _, err := to.cluster(ctx, "SETSLOT", slot, "IMPORTING", ids[from]); err != nil {
		return err
	}
	if _, err := from.cluster(ctx, "SETSLOT", slot, "MIGRATING", ids[to]); err != nil {
		return err
	}
	for {
		keys, err := from.cluster(ctx, "GETKEYSINSLOT", slot, "10")
		if err != nil {
			return err
		}
		if len(keys.List) == 0 {
			break
		}
		for _, key := range keys.List {
			if _, err := from.ask(ctx, "MIGRATE", "127.0.0.1", strconv.Itoa(to.port), key.Text, "0", "60000"); err != nil {
				return err
			}
		}
	}
	for _, s := range []*Server{to, from} { // first the node with the keys: a client redirected there finds them
		if _, err := s.cluster(ctx, "SETSLOT", slot, "NODE", ids[to]); err != nil {
			return err
		}
	}
	return nil
}
