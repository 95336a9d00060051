package realserver

import (
	"fmt"
	"testing"
)

// holds writes and reads keys of many slots, each where it belongs.
func holds(t *testing.T, owner func(key string) *Server) {
	t.Helper()
	for i := range 20 {
		key, s := fmt.Sprint("key", i), owner(fmt.Sprint("key", i))
		s.Do("SET", key, fmt.Sprint(i), "EX", "60")
		if got := s.Do("GET", key).Text; got != fmt.Sprint(i) {
			t.Fatalf("GET %s = %q, want %d", key, got, i)
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
		holds(t, c.Owner)

		old := c.Owner("key1")
		now := c.Failover("key1")
		if now == old || c.Owner("key1") != now {
			t.Errorf("after Failover the owner is %s, was %s, Failover said %s", c.Owner("key1").Addr(), old.Addr(), now.Addr())
		}
		if got := now.Do("GET", "key1").Text; got != "1" {
			t.Errorf("after Failover GET key1 = %q", got)
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
		holds(t, c.Owner)

		old.Kill()
		c.Settle()
		if c.Owner("key1") != now {
			t.Errorf("after Kill the owner is %s, want the replica %s", c.Owner("key1").Addr(), now.Addr())
		}
		old.Restart()
		c.Settle()
		holds(t, c.Owner)
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
	holds(t, c.Owner)
	from := c.Owner("key1")
	from.Do("SET", "{key1}more", "v", "EX", "60")
	to := c.Migrate("key1")
	if to == from || c.Owner("key1") != to || c.Owner("{key1}more") != to {
		t.Errorf("it was at %s, is at %s, and Migrate said %s", from.Addr(), c.Owner("key1").Addr(), to.Addr())
	}
	for key, want := range map[string]string{"key1": "1", "{key1}more": "v"} {
		if got := to.Do("GET", key).Text; got != want {
			t.Errorf("GET %s = %q", key, got)
		}
	}
	if ttl := to.Do("PTTL", "key1").Int; ttl <= 0 || ttl > 60_000 {
		t.Errorf("it has %d ms left", ttl)
	}
	holds(t, c.Owner)
}
