package engine

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mayflycache/mayfly/internal/hashslot"
)

// Cluster is what the nodes of one cluster share: who they are, and which slots each one serves. All nodes see a change at once, whereas
// Redis's nodes learn of it by and by. Its methods are safe for concurrent use.
type Cluster struct {
	mu    sync.Mutex // held to make the next view
	views atomic.Pointer[view]
}

// view is the state of a Cluster at one time. It does not change.
type view struct {
	nodes []node
	owner [hashslot.Count]uint16 // the node that serves each slot, an index of nodes
	epoch int
	down  bool // a node that serves slots is down, so no node serves anything
}

type node struct {
	id, shard string // 40 hexadecimal digits
	host      string
	port      int
	epoch     int
	down      bool
}

// NewCluster returns a cluster of the given number of nodes, with the slots distributed evenly and in order. The seed determines the nodes'
// names; 0 makes them random.
func NewCluster(nodes int, seed uint64) *Cluster {
	if seed == 0 {
		seed = rand.Uint64()
	}
	draw := rand.NewPCG(seed, 1)
	v := &view{nodes: make([]node, nodes), epoch: nodes}
	for i := range v.nodes {
		v.nodes[i] = node{id: hexID(draw), shard: hexID(draw), epoch: i + 1}
	}
	for slot := range v.owner {
		v.owner[slot] = uint16(((slot+1)*nodes - 1) / hashslot.Count)
	}
	c := new(Cluster)
	c.views.Store(v)
	return c
}

func hexID(draw *rand.PCG) string {
	b := make([]byte, 0, 64)
	for len(b) < 40 {
		b = strconv.AppendUint(b, draw.Uint64()|1<<63, 16)
	}
	return string(b[:40])
}

func (c *Cluster) change(f func(v *view)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.views.Load()
	next.nodes = slices.Clone(next.nodes)
	f(&next)
	next.down = slices.ContainsFunc(next.owner[:], func(owner uint16) bool { return next.nodes[owner].down })
	c.views.Store(&next)
}

// Announce sets the address that clients are given for a node. An empty host stands for the one at which the client reached the node it asks.
func (c *Cluster) Announce(node int, host string, port int) {
	c.change(func(v *view) { v.nodes[node].host, v.nodes[node].port = host, port })
}

// SetDown says that a node is down, or up again. While a node that serves slots is down, the others refuse commands, as Redis does by
// default: it requires that all slots are covered.
func (c *Cluster) SetDown(node int, down bool) {
	c.change(func(v *view) { v.nodes[node].down = down })
}

// Owner returns the node that serves a slot.
func (c *Cluster) Owner(slot int) int { return int(c.views.Load().owner[slot]) }

// serves reports whether a node serves any of the slots from first to last.
func (c *Cluster) serves(node, first, last int) bool {
	return slices.Contains(c.views.Load().owner[first:last+1], uint16(node))
}

// give moves the slots from first to last that node from serves to node to.
func (c *Cluster) give(first, last, from, to int) {
	c.change(func(v *view) {
		v.epoch++
		v.nodes[to].epoch = v.epoch
		for slot := first; slot <= last; slot++ {
			if int(v.owner[slot]) == from {
				v.owner[slot] = uint16(to)
			}
		}
	})
}

// addr is the node's address as MOVED and CLUSTER NODES write it.
func (n *node) addr() string { return n.host + ":" + strconv.Itoa(n.port) }

// span is a run of consecutive slots that one node serves.
type span struct{ first, last, node int }

// spans covers all slots, in order.
func (v *view) spans() (all []span) {
	for slot, owner := range v.owner {
		if n := len(all); n > 0 && all[n-1].node == int(owner) {
			all[n-1].last = slot
		} else {
			all = append(all, span{slot, slot, int(owner)})
		}
	}
	return all
}

// ClusterOptions make the engine a node of a cluster.
type ClusterOptions struct {
	Cluster *Cluster
	Node    int // the index of this node
}

// place says whether the keys of a command are on this node.
type place uint8

const (
	here place = iota
	twoSlots
	covered // on this node, but the cluster is down
	elsewhere
)

// locate returns the slot of a command's keys, -1 if it has none, and whether the command may run on this node. For EXEC it covers all queued
// commands.
func (e *Engine) locate(s *Session, cmd *Command, args [][]byte) (slot int, at place) {
	slot, one := -1, true
	if cmd.Name != "exec" {
		slot, one = cmd.slot(args, slot)
	} else if s.queue != nil {
		for _, q := range s.queue.commands {
			if slot, one = q.cmd.slot(q.args, slot); !one {
				break
			}
		}
	}
	v := e.options.Cluster.Cluster.views.Load()
	switch {
	case !one:
		return slot, twoSlots
	case slot < 0:
		return slot, here
	case v.down && cmd.Flags&PubSub == 0: // cluster-allow-pubsubshard-when-down
		return slot, covered
	case int(v.owner[slot]) != e.options.Cluster.Node:
		return slot, elsewhere
	}
	return slot, here
}

// slot returns the slot of the command's keys, which must be the given one unless that is -1.
func (c *Command) slot(args [][]byte, slot int) (_ int, one bool) {
	for _, i := range c.positions(args) {
		switch of := hashslot.Of(string(args[i])); slot {
		case -1:
			slot = of
		case of:
		default:
			return slot, false
		}
	}
	return slot, true
}

const (
	errCrossSlot   = "CROSSSLOT Keys in request don't hash to the same slot"
	errClusterDown = "CLUSTERDOWN The cluster is down"
	errNoCluster   = "ERR This instance has cluster support disabled"
)

// wrongNode returns the error for a command whose keys are on another node of the cluster, or in several slots; empty if there is none.
func (e *Engine) wrongNode(s *Session, cmd *Command, args [][]byte) string {
	if e.options.Cluster == nil || s.opened.Trusted {
		return ""
	}
	switch slot, at := e.locate(s, cmd, args); at {
	case twoSlots:
		return errCrossSlot
	case covered:
		return errClusterDown
	case elsewhere:
		return e.moved(slot)
	}
	return ""
}

// moved is the error that redirects a client to the node that serves slot.
func (e *Engine) moved(slot int) string {
	v := e.options.Cluster.Cluster.views.Load()
	return "MOVED " + strconv.Itoa(slot) + " " + v.nodes[v.owner[slot]].addr()
}

// wrongNodeInScript is wrongNode for a command of the running script. A script with a #! line must keep to one slot unless that line allows
// otherwise.
func (e *Engine) wrongNodeInScript(cmd *Command, args [][]byte) string {
	if e.options.Cluster == nil {
		return ""
	}
	slot, at := e.locate(e.scripts.session, cmd, args)
	switch at {
	case twoSlots:
		return "ERR Command '" + cmd.Name + "' in script attempted to access keys that don't hash to the same slot"
	case covered:
		return "ERR Script attempted to execute a command while the cluster is down"
	case elsewhere:
		return "ERR Script attempted to access a non local key in a cluster node"
	}
	r := e.scripts.running
	switch {
	case slot < 0 || !r.oneSlot:
	case r.slot < 0:
		r.slot = slot
	case r.slot != slot:
		return "ERR Script attempted to access keys that do not hash to the same slot"
	}
	return ""
}

// strays reports whether keys made from a pattern of SORT may be in another slot than the sorted key. They cannot stray if a hash tag comes
// before the first wildcard and is in that slot.
func (c *call) strays(pattern []byte) bool {
	if c.e.options.Cluster == nil {
		return false
	}
	return patternSlot(string(pattern)) != hashslot.Of(string(c.args[1]))
}

// patternSlot returns the slot of all keys that a pattern can match, or -1.
func patternSlot(pattern string) int {
	open := -1
	for i := range len(pattern) {
		switch pattern[i] {
		case '*', '?', '[', '\\':
			return -1
		case '{':
			if open < 0 {
				open = i
			}
		case '}':
			if open >= 0 && i > open+1 {
				return hashslot.Of(pattern[:i+1])
			}
		}
	}
	return hashslot.Of(pattern)
}
