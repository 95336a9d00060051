package testkit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// holds writes and reads keys of many slots.
func holds(t *testing.T, rdb redis.UniversalClient) {
	t.Helper()
	for i := range 20 {
		key := fmt.Sprint("key", i)
		expect.OK(t, rdb.Set(t.Context(), key, i, time.Minute).Err())
		if got, err := rdb.Get(t.Context(), key).Int(); err != nil || got != i {
			t.Fatalf("GET %s = %d, %v, want %d", key, got, err, i)
		}
	}
}

// The clients of a cluster and of sentinels find the master, also when it is another one; a node is the same *Server whoever names it.
func TestClientsOfRealServers(t *testing.T) {
	for f := realredis.Redis8; f <= realredis.Valkey; f++ {
		t.Run("cluster of "+f.String(), func(t *testing.T) {
			t.Parallel()
			c := realredis.StartCluster(t, 3, 3, realredis.Options{Flavour: f})
			rdb := c.Client()
			holds(t, rdb)
			old := c.Owner("key1")
			if now := c.Failover("key1"); now == old || c.Owner("key1") != now || now == c.Migrate("key1") {
				t.Errorf("the owner is %s, was %s, Failover said %s", c.Owner("key1").Addr(), old.Addr(), now.Addr())
			}
			if got, err := rdb.Get(t.Context(), "key1").Int(); err != nil || got != 1 {
				t.Errorf("GET key1 = %d, %v", got, err)
			}
			holds(t, rdb)
			holds(t, c.Client())
		})
		t.Run("sentinels of "+f.String(), func(t *testing.T) {
			t.Parallel()
			s := realredis.StartSentinel(t, 2, realredis.Options{Flavour: f})
			if s.Master() != s.Nodes()[0] || len(s.Sentinels()) != 3 {
				t.Errorf("%s is the master, want the first node, %s; %d sentinels", s.Master().Addr(), s.Nodes()[0].Addr(), len(s.Sentinels()))
			}
			holds(t, s.Client())
			if now := s.Failover(); now != s.Settle() || now != s.Master() || now == s.Nodes()[0] {
				t.Errorf("after Failover the master is %s, and Failover said %s", s.Master().Addr(), now.Addr())
			}
			holds(t, s.Client())
		})
	}
}
