package engine

import (
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/realserver"
	"github.com/mayflycache/mayfly/internal/testkit/wire"
)

// Of three nodes the first serves b (slot 3300) and f (3168), the second k (7629), the third foo (12182). The commands to @0, @1 and @2 are
// compared with a Redis Cluster in the same run; a name after the node's number is another connection to it.
const clusterScript = `
@0 GET b
@0 GET k
@1 GET k
@0 GET foo
@0 SET b 1
@0 SET f 1
@0 MGET b f
@0 MGET k foo
@0 DEL b {b}x
@0 MSET b 1 {b}x 2
@0 OBJECT FREQ k
@0 OBJECT ENCODING b
@0 MEMORY USAGE k
@0 ZUNIONSTORE b 2 f
@0 ZUNIONSTORE b 1 f
@0 BITOP AND b f
@0 EXISTS b f
@0 RENAME b f
@0 SMOVE b f x
@0 SORT b STORE f
@0 PFMERGE b f
@0 XFOO k
@0 GET
@0 SET k
@0 PING
@0 KEYS nosuch*
@0 DBSIZE
@0 SELECT 1
@0 SELECT 0
@0 SELECT 16
@0 SELECT x
@0 SWAPDB 0 1
@0 SWAPDB x y
@0 MOVE b 1
@0 MOVE b x
@0 MOVE k 1
@0 COPY b {b}y DB 1
@0 COPY b {b}y DB x
@0 COPY b {b}y DB 0
@0 COPY b k

@0 MULTI
@0 SET b 1
@0 SET f 1
@0 EXEC
@0 GET b
@0 MULTI
@0 SET k 1
@0 EXEC
@0 MULTI
@0 INCR b
@0 INCR {b}x
@0 EXEC
@0 MULTI
@0 PING
@0 EXEC
@0 WATCH b {b}x
@0 WATCH b f
@0 WATCH k
@0 UNWATCH

@0 EVAL "return redis.call('set',KEYS[1],1)" 1 b
@0 EVAL "return 1" 1 k
@0 EVAL "return 1" 2 b f
@0 EVAL "return 1" 5 k
@0 EVAL "return redis.call('set','b',1)" 0
@0 EVAL "redis.call('set','b',1) return redis.call('set','f',1)" 0
@0 EVAL "return redis.call('get','k')" 0
@0 EVAL "return redis.pcall('get','k').err" 0
@0 EVAL "return redis.pcall('get','k')" 0
@0 EVAL "return redis.call('MSET','b',1,'f',1)" 0
@0 EVAL "#!lua\nredis.call('set','b',1) return redis.call('set','f',1)" 0
@0 EVAL "#!lua\nreturn redis.call('set','f',1)" 1 b
@0 EVAL "#!lua\nreturn redis.call('set','{b}z',1)" 1 b
@0 EVAL "#!lua flags=allow-cross-slot-keys\nredis.call('set','b',1) return redis.call('set','f',1)" 0
@0 EVAL "#!lua flags=no-cluster\nreturn 1" 0
@0 EVAL "return redis.call('cluster','keyslot','a')" 0
@0 EVAL "return redis.call('readonly')" 0

@0 SSUBSCRIBE k
@0 SSUBSCRIBE b f
@0 SSUBSCRIBE b {b}1
@0 SUNSUBSCRIBE b f
@0 SUNSUBSCRIBE k
@0 SUNSUBSCRIBE b
@0 SUNSUBSCRIBE
@0 SPUBLISH k x
@0 SPUBLISH b x
@0 PUBLISH k x

@0 DEL b
@0 SORT b BY w_*
@0 SORT b BY nosort
@0 SORT b BY {b}w_*
@0 SORT b BY *{b}
@0 SORT b BY w\{b}*
@0 SORT b GET #
@0 SORT b GET w_*
@0 SORT b GET foo
@0 SORT b GET b
@0 SORT b GET {b
@0 SORT b GET {}*
@0 SORT b GET {b}*->x*
@0 SORT b GET {b*}x
@0 SORT_RO b GET w[{b}*

@0 ASKING
@0 ASKING x
@0 READONLY
@0 READWRITE
@0 CLUSTER
@0 CLUSTER FOO
@0 CLUSTER KEYSLOT {a}b
@0 CLUSTER KEYSLOT
@0 SET b 1
@0 CLUSTER COUNTKEYSINSLOT 3300
@0 CLUSTER COUNTKEYSINSLOT 0
@0 CLUSTER COUNTKEYSINSLOT -1
@0 CLUSTER COUNTKEYSINSLOT 16384
@0 CLUSTER COUNTKEYSINSLOT x
@0 CLUSTER GETKEYSINSLOT 3168 10
@0 CLUSTER GETKEYSINSLOT 3168 0
@0 CLUSTER GETKEYSINSLOT 3168 -1
@0 CLUSTER GETKEYSINSLOT 16384 1
@0 CLUSTER GETKEYSINSLOT x 1
@0 CLUSTER GETKEYSINSLOT 1 x
@0 CLUSTER REPLICAS foo
@0 CLUSTER SLAVES foo
@0 CLUSTER MYID
@1 CLUSTER MYID
@0 CLUSTER MYSHARDID
@0 CLUSTER SLOTS
@1 CLUSTER SLOTS
@0 CLUSTER SHARDS
@0 CLUSTER NODES
@2 CLUSTER NODES
@0 CLUSTER INFO
@1 CLUSTER INFO
@0 CONFIG GET cluster-enabled
@0 INFO cluster
@0 COMMAND GETKEYS GET k
@0three HELLO 3
@0three CLUSTER SLOTS
@0three CLUSTER SHARDS
@0three CLUSTER NODES
@0three CLUSTER INFO
@0three GET k
`

// downScript is played when the third node is down and the cluster has noticed.
const downScript = `
@0 GET b
@0 GET foo
@0 MGET b f
@0 PING
@0 KEYS nosuch*
@0 MULTI
@0 GET b
@0 EXEC
@0 WATCH b
@0 EVAL "return 1" 1 b
@0 EVAL "return redis.call('get','b')" 0
@0 EVAL "return redis.call('mget','b','f')" 0
@0 EVAL "return redis.call('ping')" 0
@0 SSUBSCRIBE b
@0 SSUBSCRIBE foo
@0 SUNSUBSCRIBE
@0 SPUBLISH b x
@0 PUBLISH b x
@0 CLUSTER KEYSLOT b
@0 CLUSTER SLOTS
@0 CLUSTER SHARDS
@0 CLUSTER NODES
@0 CLUSTER INFO
`

func TestClusterBesideRedis(t *testing.T) {
	real := realserver.StartCluster(t, 3, 0, realserver.Options{})
	servers := real.Nodes()
	mine := newNodes(3)
	var theirs []*realTarget
	for _, s := range servers {
		theirs = append(theirs, &realTarget{t: t, addr: s.Addr(), conns: map[string]*wire.Conn{}})
		defer theirs[len(theirs)-1].close()
	}
	mineNames, theirNames := mine.names(), realNames(servers)
	play := func(script string) {
		for line := range strings.Lines(script) {
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			who, command, _ := strings.Cut(line, " ")
			at := int(who[1] - '0')
			want := theirs[at].do(who[2:], words(command)...)
			got := mine.stages[at].do(who[2:], words(command)...)
			if strings.Contains(command, "SUBSCRIBE") { // one reply per channel, which need not arrive together
				for tries := 0; strings.Count(want, "[") < strings.Count(got, "[") && tries < 1000; tries++ {
					want = strings.TrimSpace(want + " " + theirs[at].take(who[2:]))
				}
			}
			got, want = sameWords(command, mineNames.Replace(got)), sameWords(command, theirNames.Replace(want))
			if got != want {
				t.Errorf("%s\n got %.1500s\nwant %.1500s", line, got, want)
			}
		}
	}
	play(clusterScript)

	servers[2].Kill()
	mine.SetDown(2, true)
	servers[0].Await("cluster_state:fail", "CLUSTER", "INFO")
	play(downScript)
}

// names replaces what differs between clusters: the ids and ports of the nodes.
func (c *nodes) names() *strings.Replacer {
	var pairs []string
	for i, n := range c.views.Load().nodes {
		pairs = append(pairs, nodeNames(i, n.id, n.shard, strconv.Itoa(n.port), strconv.Itoa(n.port+10000))...)
	}
	return strings.NewReplacer(pairs...)
}

func nodeNames(i int, id, shard, port, bus string) []string {
	n := strconv.Itoa(i)
	return []string{id, "id" + n, shard, "shard" + n, "@" + bus, "@bus" + n, port, "port" + n}
}

// figures match what no two clusters have in common: times, message counts, the number of a connection and what follows the mode in its
// greeting.
var figures = regexp.MustCompile(`( - )\d+ \d+( \d+ \w*connected)|cluster_stats_messages_\w+:\d+\\r\\n|:\d+(, "mode", "cluster").*`)

// sameWords returns a reply without figures, and sorts what Redis lists in random order.
func sameWords(command, reply string) string {
	reply = figures.ReplaceAllString(reply, "$1$2$3")
	var parts []string
	switch command {
	case "CLUSTER NODES":
		parts = strings.Split(strings.Trim(reply, `="tx:`), `\n`)
	case "CLUSTER SHARDS":
		parts = strings.Split(strings.Trim(reply, "[]{}"), `"slots"`)
		for i := range parts {
			parts[i] = strings.TrimRight(parts[i], ", []{}")
		}
	default:
		return reply
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

func realNames(servers []*realserver.Server) *strings.Replacer {
	var pairs []string
	for i, s := range servers {
		ask := func(what string) string { return s.Do("CLUSTER", what).Text }
		_, port, _ := net.SplitHostPort(s.Addr())
		line := ask("NODES")
		bus := regexp.MustCompile(port + `@(\d+)`).FindStringSubmatch(line)[1]
		pairs = append(pairs, nodeNames(i, ask("MYID"), ask("MYSHARDID"), port, bus)...)
	}
	return strings.NewReplacer(pairs...)
}
