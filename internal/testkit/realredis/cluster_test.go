package realredis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// holds writes and reads keys of many slots.
func holds(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	for i := range 20 {
		key := fmt.Sprint("key", i)
		if err := rdb.Set(context.Background(), key, i, time.Minute).Err(); err != nil {
			t.Fatalf("SET %s: %v", key, err)
		}
		if got, err := rdb.Get(context.Background(), key).Int(); err != nil || got != i {
			t.Fatalf("GET %s = %d, %v, want %d", key, got, err, i)
		}
	}
}

func TestCluster(t *testing.T) {
	eachFlavour(t, func(t *testing.T, o Options) {
		o.Config = []string{"cluster-node-timeout 1000"}
		c := StartCluster(t, 3, 3, o)
		if n := len(c.Nodes()); n != 6 || !flavours[o.Flavour].fits(c.Nodes()[0].Version()) {
			t.Errorf("%d nodes of %v, want 6 of %v", n, c.Nodes()[0].Version(), o.Flavour)
		}
		rdb := c.Client()
		holds(t, rdb)

		old := c.Owner("key1")
		now := c.Failover("key1")
		if now == old || c.Owner("key1") != now {
			t.Errorf("after Failover the owner is %s, was %s, Failover said %s", c.Owner("key1").Addr(), old.Addr(), now.Addr())
		}
		if got, err := rdb.Get(context.Background(), "key1").Int(); err != nil || got != 1 {
			t.Errorf("after Failover GET key1 = %d, %v", got, err)
		}

		if o.Flavour != Redis8 {
			return // the others have shown that they start and fail over
		}
		now.Pause()
		if c.Failover("key1") != old { // without consent
			t.Errorf("the owner is %s, want %s", c.Owner("key1").Addr(), old.Addr())
		}
		now.Resume()
		c.Settle()
		holds(t, c.Client())

		old.Kill()
		c.Settle()
		if c.Owner("key1") != now {
			t.Errorf("after Kill the owner is %s, want the replica %s", c.Owner("key1").Addr(), now.Addr())
		}
		old.Restart()
		c.Settle()
		holds(t, c.Client())
	})
}

func TestClusterSizesAreChecked(t *testing.T) {
	for _, size := range [][2]int{{2, 1}, {0, 0}, {3, -1}} {
		if v := watch(t, func(t testing.TB) { StartCluster(t, size[0], size[1], Options{}) }); v.failed == "" {
			t.Errorf("StartCluster of %v: %+v, want a failure", size, v)
		}
	}
	if v := watch(t, func(t testing.TB) { StartSentinel(t, 0, Options{}) }); v.failed == "" {
		t.Errorf("StartSentinel with no replica: %+v, want a failure", v)
	}
}

// A slot moves with its keys, whoever serves it.
func TestMigrate(t *testing.T) {
	c := StartCluster(t, 3, 0, Options{})
	rdb := c.Client()
	holds(t, rdb)
	from := c.Owner("key1")
	rdb.Set(t.Context(), "{key1}more", "v", time.Minute)
	to := c.Migrate("key1")
	if to == from || c.Owner("key1") != to || c.Owner("{key1}more") != to {
		t.Errorf("it was at %s, is at %s, and Migrate said %s", from.Addr(), c.Owner("key1").Addr(), to.Addr())
	}
	for key, want := range map[string]string{"key1": "1", "{key1}more": "v"} {
		if got, err := to.Client().Get(t.Context(), key).Result(); got != want || err != nil {
			t.Errorf("GET %s = %q, %v", key, got, err)
		}
	}
	if ttl := rdb.PTTL(t.Context(), "key1").Val(); ttl <= 0 || ttl > time.Minute {
		t.Errorf("it has %v left", ttl)
	}
	holds(t, rdb)
}
