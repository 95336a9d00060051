package redistest_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

// inCluster runs f in a bubble with a cluster of three masters.
func inCluster(t *testing.T, f func(t *testing.T, cluster *redistest.Cluster, rdb *redis.ClusterClient)) {
	synctest.Test(t, func(t *testing.T) {
		cluster := redistest.StartCluster(t, 3)
		f(t, cluster, cluster.Client())
	})
}

// An unmodified cluster client works as with a real cluster.
func TestClusterClientWorksUnmodified(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *redistest.Cluster, rdb *redis.ClusterClient) {
		ctx := t.Context()
		var keys []string
		for i := range 100 {
			keys = append(keys, fmt.Sprint("key:", i))
		}
		if _, err := rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, key := range keys {
				p.Set(ctx, key, key, time.Hour)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		for _, key := range keys {
			if got := rdb.Get(ctx, key).Val(); got != key {
				t.Fatalf("%s is %q", key, got)
			}
			if holds := slices.IndexFunc(cluster.Nodes(), func(s *redistest.Server) bool { return s.Exists(key) }); cluster.Nodes()[holds] != cluster.Owner(key) {
				t.Fatalf("%s is at node %d", key, holds)
			}
		}
		for i, s := range cluster.Nodes() {
			if n := len(s.Keys()); n < 20 {
				t.Errorf("node %d has %d of 100 keys", i, n)
			}
		}
		if n := rdb.DBSize(ctx).Val(); n != 100 {
			t.Errorf("the cluster client counts %d keys", n)
		}
		masters := make(chan string, 10)
		if err := rdb.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
			masters <- c.Options().Addr
			return c.Ping(ctx).Err()
		}); err != nil || len(masters) != 3 {
			t.Errorf("%d masters, %v", len(masters), err)
		}

		cmds, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.RPush(ctx, "{visit:7}pages", "/a", "/b")
			p.Expire(ctx, "{visit:7}pages", time.Minute)
			return nil
		})
		if err != nil || len(cmds) != 2 {
			t.Errorf("a transaction: %v", err)
		}
		if err := rdb.MGet(ctx, "key:1", "key:2").Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT ") {
			t.Errorf("two slots: %v", err)
		}
		sum := redis.NewScript("return redis.call('incrby', KEYS[1], ARGV[1])")
		if n, err := sum.Run(ctx, rdb, []string{"counter"}, 7).Int(); n != 7 || err != nil {
			t.Errorf("a script: %d, %v", n, err)
		}
		if err := rdb.Watch(ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Incr(ctx, "counter").Err() })
			return err
		}, "counter"); err != nil || rdb.Get(ctx, "counter").Val() != "8" {
			t.Errorf("an optimistic transaction: %v", err)
		}

		cluster.Advance(time.Hour + time.Millisecond)
		if n := rdb.DBSize(ctx).Val(); n != 1 {
			t.Errorf("%d keys after their hour, want the counter", n)
		}
	})
}

// Messages reach subscribers at every node; those of a shard channel only at the node with the channel's slot.
func TestClusterPubSub(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *redistest.Cluster, rdb *redis.ClusterClient) {
		ctx := t.Context()
		const each = 20
		subs := []*redis.PubSub{rdb.SSubscribe(ctx, "shard")}
		for _, s := range cluster.Nodes() {
			subs = append(subs, s.Client().Subscribe(ctx, "news"))
		}
		for _, sub := range subs {
			defer sub.Close()
			if _, err := sub.Receive(ctx); err != nil {
				t.Fatal(err)
			}
		}
		cluster.Nodes()[2].Hang()
		for i := range each {
			if err := cluster.Nodes()[i%2].Client().Publish(ctx, "news", i).Err(); err != nil {
				t.Fatal(err)
			}
			if err := rdb.SPublish(ctx, "shard", i).Err(); err != nil && cluster.Owner("shard") != cluster.Nodes()[2] {
				t.Fatal(err)
			}
		}
		if m, err := subs[3].ReceiveTimeout(ctx, time.Second); err == nil {
			t.Errorf("a node that hangs said %v", m)
		}
		cluster.Nodes()[2].Thaw()
		for s, sub := range subs {
			for i := range each {
				m, err := sub.ReceiveMessage(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if m.Payload != fmt.Sprint(i) {
					t.Fatalf("subscriber %d heard %q as message %d", s, m.Payload, i)
				}
			}
		}
	})
}

// However many clients publish at a node at once, subscribers at other nodes get the messages in the same order as those at that node.
func TestClusterMessagesKeepTheirOrder(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	ctx := t.Context()
	const publishers, each = 8, 100
	var subs []*redis.PubSub
	for _, s := range cluster.Nodes() {
		sub := s.Client().Subscribe(ctx, "news")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		subs = append(subs, sub)
	}
	var publishing sync.WaitGroup
	defer publishing.Wait()
	for p := range publishers {
		publishing.Go(func() {
			for i := range each {
				cluster.Nodes()[0].Client().Publish(ctx, "news", fmt.Sprint(p, " ", i))
			}
		})
	}
	for i := range publishers * each {
		here, err := subs[0].ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		there, err := subs[1].ReceiveMessage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if here.Payload != there.Payload {
			t.Fatalf("message %d is %q at the node and %q at the other", i, here.Payload, there.Payload)
		}
	}
}

// Every node pushes the invalidations of its own keys to the clients that track there.
func TestClusterTracksPerNode(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *redistest.Cluster, rdb *redis.ClusterClient) {
		for i, s := range cluster.Nodes() {
			reader, err := s.Dial(t.Context(), "", "")
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			io.WriteString(reader, "HELLO 3\r\nCLIENT TRACKING ON BCAST PREFIX key:\r\n")
			buf := make([]byte, 1<<16)
			synctest.Wait()
			reader.Read(buf) // the greeting
			for k := range 100 {
				key := fmt.Sprint("key:", k)
				set(t, rdb, key, time.Hour)
				synctest.Wait()
				reader.SetReadDeadline(time.Now().Add(time.Millisecond))
				n, _ := reader.Read(buf)
				if told, his := strings.Contains(string(buf[:n]), key), cluster.Owner(key) == s; told != his {
					t.Fatalf("node %d pushed %v that %s changed, which is its key: %v", i, told, key, his)
				}
			}
		}
	})
}

func TestMoveSlots(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *redistest.Cluster, rdb *redis.ClusterClient) {
		ctx := t.Context()
		set(t, rdb, "k", time.Hour)
		from := cluster.Owner("k")
		to := cluster.Nodes()[(slices.Index(cluster.Nodes(), from)+1)%3]
		waits := make(chan error)
		go func() { waits <- rdb.BLPop(ctx, 0, "{k}list").Err() }()
		synctest.Wait()
		cluster.MoveSlots(cluster.Slot("k"), cluster.Slot("k"), to)
		if cluster.Owner("k") != to || from.Exists("k") || !to.Exists("k") {
			t.Error("the key is where it was")
		}
		if err := from.Client().Get(ctx, "k").Err(); err == nil || err.Error() != "MOVED 7629 "+to.Options().Addr {
			t.Errorf("the node that had it answers %v", err)
		}
		if ttl, err := rdb.PTTL(ctx, "k").Result(); ttl != time.Hour || err != nil {
			t.Errorf("PTTL is %v, %v", ttl, err)
		}
		if err := rdb.RPush(ctx, "{k}list", "x").Err(); err != nil {
			t.Error(err)
		}
		if err := <-waits; err != nil {
			t.Errorf("a client blocked on a key that moved: %v", err)
		}
		// All of a node's slots at once; the node stays, with nothing to do.
		cluster.MoveSlots(0, 16383, to)
		for i := range 100 {
			set(t, rdb, fmt.Sprint("key:", i), time.Hour)
		}
		if n := len(to.Keys()); n != 101 {
			t.Errorf("%d keys at the only node that has slots", n)
		}
	})
}

func TestAClosedNodeTakesTheClusterDown(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *redistest.Cluster, rdb *redis.ClusterClient) {
		ctx := t.Context()
		set(t, rdb, "k", time.Hour)
		set(t, rdb, "foo", time.Hour)
		dead := cluster.Owner("k")
		dead.Close()
		alive := cluster.Owner("foo")
		if err := alive.Client().Get(ctx, "foo").Err(); err == nil || err.Error() != "CLUSTERDOWN The cluster is down" {
			t.Errorf("a node that is up answers %v", err)
		}
		if err := dead.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.Get(ctx, "k").Err(); err != nil {
			t.Errorf("after it came back: %v", err)
		}
		dead.Close()
		cluster.MoveSlots(0, 16383, alive) // as when a replica takes over
		time.Sleep(time.Minute)
		for _, key := range []string{"foo", "k"} { // the first makes the client fetch a map newer than its own
			if err := rdb.Get(ctx, key).Err(); err != nil {
				t.Errorf("after its slots were moved: %s: %v", key, err)
			}
			time.Sleep(time.Second)
		}
	})
}

// Nodes behind a broken network do not take the others down.
func TestAHungNodeIsNobodyElsesTrouble(t *testing.T) {
	inCluster(t, func(t *testing.T, cluster *redistest.Cluster, rdb *redis.ClusterClient) {
		set(t, rdb, "k", time.Hour)
		set(t, rdb, "foo", time.Hour)
		cluster.Owner("k").Hang()
		defer cluster.Owner("k").Thaw()
		if err := rdb.Get(t.Context(), "foo").Err(); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := rdb.Get(ctx, "k").Err(); err == nil {
			t.Error("a node that hangs answered")
		}
	})
}

func TestClusterOverTCP(t *testing.T) {
	cluster := redistest.StartCluster(t, 3, redistest.Options{Password: "sesame"})
	before := cluster.Client() // has the addresses from before the ports were opened
	set(t, before, "foo", time.Hour)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()[:1], Password: "sesame"})
	defer rdb.Close()
	for _, key := range []string{"b", "k", "foo"} {
		set(t, rdb, key, time.Hour)
		if err := before.Get(t.Context(), key).Err(); err != nil {
			t.Errorf("over memory: %v", err)
		}
	}
	cluster.MoveSlots(cluster.Slot("k"), cluster.Slot("k"), cluster.Nodes()[0])
	for _, c := range []*redis.ClusterClient{rdb, before} {
		if err := c.Get(t.Context(), "k").Err(); err != nil {
			t.Error(err)
		}
	}
	if addr := cluster.Owner("foo").Addr(); !slices.Contains(cluster.Addrs(), addr) {
		t.Errorf("a node is at %s, not at any of %v", addr, cluster.Addrs())
	}
}

// A cluster of one node owns all slots, and is just as strict.
func TestAClusterOfOne(t *testing.T) {
	cluster := redistest.StartCluster(t, 1)
	rdb := cluster.Client()
	set(t, rdb, "a", time.Hour)
	if err := rdb.MGet(t.Context(), "a", "b").Err(); err == nil || !strings.HasPrefix(err.Error(), "CROSSSLOT ") {
		t.Errorf("two slots: %v", err)
	}
	if err := cluster.Nodes()[0].Client().Do(t.Context(), "SELECT", 1).Err(); err == nil {
		t.Error("a cluster has one database")
	}
}
