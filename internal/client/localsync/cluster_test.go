package localsync_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/redistest"
)

// clustered runs test in a bubble with a cluster of three masters and a fourth node that has no slots yet.
func clustered(t *testing.T, test func(t *testing.T, cluster *redistest.Cluster, n *near, other *redis.ClusterClient)) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redistest.StartCluster(t, 4)
		nodes := cluster.Nodes()
		for i, node := range nodes[:3] {
			cluster.MoveSlots(i*16384/3, (i+1)*16384/3-1, node)
		}
		other := redis.NewClusterClient(cluster.Options())
		t.Cleanup(func() { other.Close(); time.Sleep(time.Second) }) // it may be reloading its map
		n := open(t, cluster.Client(), nil)
		n.wantRungs(localsync.Tracking)
		test(t, cluster, n, other)
	})
}

func TestEveryMasterIsHeard(t *testing.T) {
	clustered(t, func(t *testing.T, cluster *redistest.Cluster, n *near, other *redis.ClusterClient) {
		owners := map[*redistest.Server]bool{}
		for i := range 50 {
			key := fmt.Sprint("a:", i)
			owners[cluster.Owner(key)] = true
			set(t, other, key, "old")
			synctest.Wait()
			n.read(key)
			n.want(key, "old")
			set(t, other, key, "new")
			synctest.Wait()
			n.want(key, "")
		}
		if len(owners) != 3 {
			t.Errorf("the keys were on %d masters", len(owners))
		}
		// One that is silent is enough for nothing to be served.
		set(t, other, "a:1", "v")
		synctest.Wait()
		n.read("a:1")
		for _, node := range cluster.Nodes()[:3] {
			if node != cluster.Owner("a:1") {
				node.KillConnections()
				break
			}
		}
		synctest.Wait()
		n.want("a:1", "")
		time.Sleep(time.Second)
		n.read("a:1")
		n.want("a:1", "v")
		n.wantRungs(localsync.Tracking, localsync.Off, localsync.Tracking)
	})
}

func TestASlotThatMoves(t *testing.T) {
	move := func(cluster *redistest.Cluster, key string, to *redistest.Server) {
		cluster.MoveSlots(cluster.Slot(key), cluster.Slot(key), to)
	}
	clustered(t, func(t *testing.T, cluster *redistest.Cluster, n *near, other *redis.ClusterClient) {
		// The slot moves to a node that was no known master: go-redis notices when it next asks, and so do we.
		set(t, other, "a:1", "old")
		synctest.Wait()
		n.read("a:1")
		n.want("a:1", "old")
		newcomer := cluster.Nodes()[3]
		move(cluster, "a:1", newcomer)
		set(t, other, "a:1", "new")
		time.Sleep(2 * time.Second)
		n.want("a:1", "")
		time.Sleep(time.Second)
		n.read("a:1")
		n.want("a:1", "new")
		set(t, other, "a:1", "newer")
		synctest.Wait()
		n.want("a:1", "")

		// A client that gets MOVED reports it.
		n.read("a:1")
		set(t, other, "b:1", "v")
		synctest.Wait()
		n.read("b:1")
		k := n.Begin("a:1")
		a := n.ask("a:1")
		n.Moved()
		n.want("b:1", "")
		n.insert("a:1", k, a)
		n.want("a:1", "")
		time.Sleep(time.Second)
		n.read("a:1")
		n.want("a:1", "newer")

		// The last slot of a master leaves it: it is no longer listened to.
		cluster.MoveSlots(0, 16383, newcomer)
		time.Sleep(5 * time.Second)
		set(t, other, "b:1", "v")
		synctest.Wait()
		n.read("b:1")
		n.want("b:1", "v")
		cluster.Nodes()[0].Hang()
		time.Sleep(5 * time.Second)
		n.want("b:1", "v")
		cluster.Nodes()[0].Thaw()
	})
}
