package engine

import (
	"slices"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/hashslot"
)

// nodes are engines that form a cluster.
type nodes struct {
	*Cluster
	stages []*stage
}

func newNodes(n int) *nodes {
	c := &nodes{Cluster: NewCluster(n, 1)}
	for i := range n {
		c.Announce(i, "127.0.0.1", 57000+i)
		c.stages = append(c.stages, newStage(Options{Cluster: &ClusterOptions{Cluster: c.Cluster, Node: i}}))
	}
	return c
}

// handOver moves slots from one node to another.
func (c *nodes) handOver(first, last, from, to int) {
	a, b := c.stages[from], c.stages[to]
	a.HandOver(a.now, first, last, b.Engine, b.now)
}

// HandOver moves what a resharding would move, and notifies sessions that are blocked on or subscribed to something that moved.
func TestSlotsMoveWithTheirKeys(t *testing.T) {
	c := newNodes(2)
	a, b := c.stages[0], c.stages[1]
	run := func(s *stage, script string) {
		t.Helper()
		for line := range strings.Lines(strings.TrimSpace(script)) {
			command, want, _ := strings.Cut(strings.TrimSpace(line), "  ")
			if got := s.line(command); got != strings.TrimSpace(want) {
				t.Errorf("%s\n got %s\nwant %s", command, got, strings.TrimSpace(want))
			}
		}
	}
	run(a, `
		CONFIG SET notify-keyspace-events EA                +OK
		SET b v PX 10000                                    +OK
		HSET {b}hash f 1 g 2                                :2
		HPEXPIRE {b}hash 5000 FIELDS 1 f                    [:1]
		RPUSH {b}list x y                                   :2
		SET f stays                                         +OK
		@cevents PSUBSCRIBE __keyevent@0__:del              ["psubscribe", "__keyevent@0__:del", :1]
		@cblocked BLPOP {b}empty 0
		@cshard SSUBSCRIBE {b}news                          ["ssubscribe", "{b}news", :1]
		@ctracking HELLO 3                                  {"server", "redis", "version", "8.0.2", "proto", :3, "id", :5, "mode", "cluster", "role", "master", "modules", []}
		@ctracking CLIENT TRACKING ON                       +OK
		@ctracking GET b                                    "v"
		@cwatch WATCH b                                     +OK
		SET {b}dead v PX 1                                  +OK
		@sleep 2
	`)
	run(b, `
		GET b                                               -MOVED 3300 127.0.0.1:57000
		@sleep 2
	`)
	c.handOver(3300, 3300, 0, 1)
	run(a, `
		GET b                                               -MOVED 3300 127.0.0.1:57001
		GET f                                               "stays"
		@out blocked                                        -MOVED 3300 127.0.0.1:57001
		@out shard                                          ["sunsubscribe", "{b}news", :0]
		@out tracking                                       >["invalidate", ["b"]]
		@out events                                         ["pmessage", "__keyevent@0__:del", "__keyevent@0__:del", "b"] ["pmessage", "__keyevent@0__:del", "__keyevent@0__:del", "{b}hash"] ["pmessage", "__keyevent@0__:del", "__keyevent@0__:del", "{b}list"]
		@cwatch MULTI                                       +OK
		@cwatch PING                                        +QUEUED
		@cwatch EXEC                                        (nil array)
		DBSIZE                                              :1
		CLUSTER COUNTKEYSINSLOT 3300                        :0
	`)
	run(b, `
		PTTL b                                              :9998
		HPTTL {b}hash FIELDS 2 f g                          [:4998, :-1]
		LRANGE {b}list 0 -1                                 ["x", "y"]
		EXISTS {b}dead                                      :0
		CLUSTER COUNTKEYSINSLOT 3300                        :3
		CLUSTER INFO                                        "cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_slots_ok:16384\r\ncluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:2\r\ncluster_size:2\r\ncluster_current_epoch:3\r\ncluster_my_epoch:3\r\ncluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n"
	`)
	if spans := c.views.Load().spans(); len(spans) != 4 || spans[1] != (span{3300, 3300, 1}) {
		t.Errorf("the slots are %v", spans)
	}
}

// The slots are distributed over any number of nodes, each a consecutive run; no two runs differ by more than one slot.
func TestSlotsAreDealtOut(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7, 100} {
		spans := NewCluster(n, 0).views.Load().spans()
		if len(spans) != n {
			t.Errorf("%d nodes have %d runs of slots", n, len(spans))
		}
		for i, s := range spans {
			if size := s.last - s.first + 1; s.node != i || size != hashslot.Count/n && size != hashslot.Count/n+1 {
				t.Errorf("of %d nodes: %+v", n, s)
			}
		}
	}
}

// A message published at one node reaches all of them; shard messages and keyspace events do not.
func TestPublishedMessagesAreForAllNodes(t *testing.T) {
	a := newNodes(2).stages[0]
	for _, line := range []string{"PUBLISH news 1", "SPUBLISH b 2", `EVAL "return redis.call('publish','news','3')" 0`, "CONFIG SET notify-keyspace-events EA", "SET b v"} {
		a.line(line)
	}
	var got []string
	for _, m := range a.Broadcasts() {
		got = append(got, string(m.Channel)+" "+string(m.Message))
	}
	if !slices.Equal(got, []string{"news 1", "news 3"}) {
		t.Errorf("the other nodes get %q", got)
	}
	if again := a.Broadcasts(); again != nil {
		t.Errorf("and once more %q", again)
	}
	a.line("@clistener SUBSCRIBE news")
	a.Deliver(Message{[]byte("news"), []byte("from afar")})
	if got := a.take("listener"); got != `["message", "news", "from afar"]` {
		t.Errorf("a subscriber heard %s", got)
	}
}

// A server outside of a cluster says so.
func TestNoCluster(t *testing.T) {
	play(t, Options{}, `
		CLUSTER SLOTS          -ERR This instance has cluster support disabled
		CLUSTER HELP           -ERR This instance has cluster support disabled
		CLUSTER KEYSLOT        -ERR wrong number of arguments for 'cluster|keyslot' command
		CLUSTER FOO            -ERR unknown subcommand 'FOO'. Try CLUSTER HELP.
		CLUSTER                -ERR wrong number of arguments for 'cluster' command
		ASKING                 -ERR This instance has cluster support disabled
		READONLY               -ERR This instance has cluster support disabled
		CONFIG GET cluster-en*  ["cluster-enabled", "no"]
	`)
}
