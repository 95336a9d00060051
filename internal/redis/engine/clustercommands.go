package engine

import (
	"fmt"
	"math"
	"strings"

	"github.com/mayflycache/mayfly/internal/hashslot"
)

// clusterCommands are the read-only subcommands of CLUSTER, and the commands by which a connection declares its part in a cluster. Only the
// engine's owner changes nodes and slots, never a client.
var clusterCommands = []Command{
	{Name: "cluster", Arity: -2, Sub: []Command{
		{Name: "cluster|countkeysinslot", Arity: 3, Flags: Stale, run: clustered(countkeysinslotCommand)},
		{Name: "cluster|getkeysinslot", Arity: 4, Flags: Stale, run: clustered(getkeysinslotCommand)},
		{Name: "cluster|info", Arity: 2, Flags: Stale, run: clustered(clusterInfoCommand)},
		{Name: "cluster|keyslot", Arity: 3, Flags: Stale, run: clustered(func(c *call) { c.number(hashslot.Of(string(c.args[2]))) })},
		{Name: "cluster|myid", Arity: 2, Flags: Stale, run: clustered(func(c *call) { c.out.BulkString(c.self().id) })},
		{Name: "cluster|myshardid", Arity: 2, Flags: Stale, run: clustered(func(c *call) { c.out.BulkString(c.self().shard) })},
		{Name: "cluster|nodes", Arity: 2, Flags: Stale, run: clustered(clusterNodesCommand)},
		{Name: "cluster|replicas", Arity: 3, Flags: Admin | Stale, run: clustered(clusterReplicasCommand)},
		{Name: "cluster|slaves", Arity: 3, Flags: Admin | Stale, run: clustered(clusterReplicasCommand)},
		{Name: "cluster|shards", Arity: 2, Flags: Loading | Stale, run: clustered(clusterShardsCommand)},
		{Name: "cluster|slots", Arity: 2, Flags: Loading | Stale, run: clustered(clusterSlotsCommand)},
		{Name: "cluster|help", Arity: 2, Flags: Loading | Stale, run: clustered(func(c *call) { c.help(clusterHelp) })},
	}},
	{Name: "asking", Arity: 1, Flags: Fast, Cats: CatConnection, run: clustered((*call).ok)},
	{Name: "readonly", Arity: 1, Flags: Loading | Stale | Fast, Cats: CatConnection, run: clustered((*call).ok)},
	{Name: "readwrite", Arity: 1, Flags: Loading | Stale | Fast, Cats: CatConnection, run: clustered((*call).ok)},
}

const clusterHelp = `
COUNTKEYSINSLOT <slot>
    Return the number of keys in <slot>.
GETKEYSINSLOT <slot> <count>
    Return key names stored by current node in a slot.
INFO
    Return information about the cluster.
KEYSLOT <key>
    Return the hash slot for <key>.
MYID
    Return the node id.
MYSHARDID
    Return the node's shard id.
NODES
    Return cluster configuration seen by node. Output format:
    <id> <ip:port@bus-port[,hostname]> <flags> <master> <pings> <pongs> <epoch> <link> <slot> ...
REPLICAS <node-id>
    Return <node-id> replicas.
SLOTS
    Return information about slots range mappings. Each range is made of:
    start, end, master and replicas IP addresses, ports and ids
SHARDS
    Return information about slot range mappings and the nodes associated with them.
`

// clustered runs a handler only where there is a cluster, or the engine pretends to be one.
func clustered(run func(*call)) func(*call) {
	return func(c *call) {
		if c.e.options.Cluster == nil && c.e.options.Seeming == nil {
			c.fail(errNoCluster)
			return
		}
		run(c)
	}
}

// view is the current state of the cluster.
func (c *call) view() *view {
	if c.e.options.Cluster == nil {
		return c.e.options.Seeming.views.Load()
	}
	return c.e.options.Cluster.Cluster.views.Load()
}

// selfAt is the index of this engine's node.
func (c *call) selfAt() int {
	if c.e.options.Cluster == nil {
		return 0
	}
	return c.e.options.Cluster.Node
}

func (c *call) self() *node { return &c.view().nodes[c.selfAt()] }

// keysInSlot returns up to most keys of a slot, dead ones included. It looks at every key of the engine.
func (c *call) keysInSlot(slot, most int64) (keys []string) {
	c.db.each(func(o *object) {
		if int64(len(keys)) < most && int64(hashslot.Of(o.key)) == slot {
			keys = append(keys, o.key)
		}
	})
	return keys
}

func countkeysinslotCommand(c *call) {
	slot := c.int(2)
	if slot < 0 || slot >= hashslot.Count {
		c.fail("ERR Invalid slot")
	}
	if !c.failed {
		c.number(len(c.keysInSlot(slot, math.MaxInt64)))
	}
}

func getkeysinslotCommand(c *call) {
	slot, count := c.int(2), c.int(3)
	if slot < 0 || slot >= hashslot.Count || count < 0 {
		c.fail("ERR Invalid slot or number of keys")
	}
	if !c.failed {
		c.texts(c.keysInSlot(slot, count))
	}
}

// clusterInfoCommand counts no messages: there is no bus.
func clusterInfoCommand(c *call) {
	v := c.view()
	lost, serving := 0, map[uint16]bool{}
	for _, owner := range v.owner {
		serving[owner] = true
		if v.nodes[owner].down {
			lost++
		}
	}
	state := "ok"
	if v.down {
		state = "fail"
	}
	var w strings.Builder
	line(&w, "cluster_state", state)
	line(&w, "cluster_slots_assigned", hashslot.Count)
	line(&w, "cluster_slots_ok", hashslot.Count-lost)
	line(&w, "cluster_slots_pfail", 0)
	line(&w, "cluster_slots_fail", lost)
	line(&w, "cluster_known_nodes", len(v.nodes))
	line(&w, "cluster_size", len(serving))
	line(&w, "cluster_current_epoch", v.epoch)
	line(&w, "cluster_my_epoch", c.self().epoch)
	line(&w, "cluster_stats_messages_sent", 0)
	line(&w, "cluster_stats_messages_received", 0)
	line(&w, "total_cluster_links_buffer_limit_exceeded", 0)
	c.out.Verbatim("txt", w.String())
}

// clusterNodesCommand gives each node a bus port by Redis's rule, ten thousand above its port, although nothing listens there.
func clusterNodesCommand(c *call) {
	v, spans := c.view(), c.view().spans()
	var w strings.Builder
	for i := range v.nodes {
		n := &v.nodes[i]
		flags, heard, link := "master", c.e.ms, "connected"
		if i == c.selfAt() {
			flags, heard = "myself,master", 0
		}
		if n.down {
			flags, link = flags+",fail", "disconnected"
		}
		fmt.Fprintf(&w, "%s %s@%d %s - 0 %d %d %s", n.id, n.addr(), n.port+10000, flags, heard, n.epoch, link)
		for _, s := range spans {
			switch {
			case s.node != i:
			case s.first == s.last:
				fmt.Fprintf(&w, " %d", s.first)
			default:
				fmt.Fprintf(&w, " %d-%d", s.first, s.last)
			}
		}
		w.WriteByte('\n')
	}
	c.out.Verbatim("txt", w.String())
}

func clusterReplicasCommand(c *call) {
	for _, n := range c.view().nodes {
		if n.id == string(c.args[2]) {
			c.out.Array(0)
			return
		}
	}
	c.failf("ERR Unknown node %s", c.args[2])
}

func clusterSlotsCommand(c *call) {
	v := c.view()
	spans := v.spans()
	c.out.Array(len(spans))
	for _, s := range spans {
		n := &v.nodes[s.node]
		c.out.Array(3)
		c.number(s.first)
		c.number(s.last)
		c.out.Array(4)
		c.out.BulkString(n.host)
		c.number(n.port)
		c.out.BulkString(n.id)
		c.out.Map(0)
	}
}

// clusterShardsCommand lists no slots for a node that is down, as Redis does.
func clusterShardsCommand(c *call) {
	v := c.view()
	spans := v.spans()
	c.out.Array(len(v.nodes))
	for i := range v.nodes {
		n := &v.nodes[i]
		health := "online"
		var bounds []int
		for _, s := range spans {
			if s.node == i && !n.down {
				bounds = append(bounds, s.first, s.last)
			}
		}
		if n.down {
			health = "fail"
		}
		c.out.Map(2)
		c.out.BulkString("slots")
		c.out.Array(len(bounds))
		for _, slot := range bounds {
			c.number(slot)
		}
		c.out.BulkString("nodes")
		c.out.Array(1)
		c.out.Map(7)
		c.pair("id", n.id)
		c.out.BulkString("port")
		c.number(n.port)
		c.pair("ip", n.host)
		c.pair("endpoint", n.host)
		c.pair("role", "master")
		c.out.BulkString("replication-offset")
		c.number(0)
		c.pair("health", health)
	}
}
