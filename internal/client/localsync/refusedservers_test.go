package localsync_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
)

// neverOnPubSub ends a test in which changes by others must not go unheard.
func (n *near) neverOnPubSub() {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range n.rungs {
		if r == localsync.PubSub || r == localsync.ShortTTL {
			n.t.Errorf("it was on the rung %v: %v", r, n.whys[i])
		}
	}
}

// untilWhy waits until text is the reason for the rung.
func (n *near) untilWhy(text string) {
	n.t.Helper()
	expect.Eventually(n.t, "the reason has "+text, func() bool {
		n.Begin("a:0") // somebody reads
		why := n.Stats().Why
		return why != nil && strings.Contains(why.Error(), text)
	})
}

func TestRealServersThatRefuseWrites(t *testing.T) {
	t.Parallel()
	for _, flavour := range []realredis.Flavour{realredis.Redis8, realredis.Redis7, realredis.Valkey} {
		t.Run(flavour.String(), func(t *testing.T) {
			srv := realredis.Start(t, realredis.Options{Flavour: flavour})
			rdb, other := srv.Client(), srv.Client()
			t.Cleanup(func() { rdb.Close(); other.Close() })
			quick := func(o *localsync.Options) { o.Silence = time.Second }
			config := func(name, value string) {
				t.Helper()
				expect.OK(t, other.ConfigSet(t.Context(), name, value).Err())
			}

			// Full, and there was never a probe.
			config("maxmemory", "1")
			n := open(t, rdb, quick)
			n.untilWhy("OOM")
			config("maxmemory", "0")
			n.untilRung(localsync.Tracking)

			// Full, and there is one: changes are still heard.
			set(t, other, "a:1", "old")
			n.copied("a:1", "old")
			config("maxmemory", "1")
			if err := other.Set(t.Context(), "a:2", "v", time.Minute).Err(); !redis.HasErrorPrefix(err, "OOM") {
				t.Fatalf("a write is answered %v", err)
			}
			begun := time.Now()
			expect.Eventually(t, "three times Silence have gone by", func() bool { n.get("a:1"); return time.Since(begun) > 3*time.Second })
			n.copied("a:1", "old")
			expect.OK(t, other.Del(t.Context(), "a:1").Err())
			n.gone("a:1")
			if r := n.Stats().Rung; r != localsync.Tracking {
				t.Errorf("a full redis: %v, %v", r, n.Stats().Why)
			}
			config("maxmemory", "0")

			// Enough replicas are missing.
			config("min-replicas-to-write", "1")
			n.untilWhy("NOREPLICAS")
			n.want("a:1", "")
			config("min-replicas-to-write", "0")
			n.untilRung(localsync.Tracking)

			// A replica of another.
			master := realredis.Start(t, realredis.Options{Flavour: flavour})
			host, port, _ := net.SplitHostPort(master.Addr())
			expect.OK(t, other.ReplicaOf(t.Context(), host, port).Err())
			n.untilWhy("READONLY")
			boss := master.Client()
			defer boss.Close()
			set(t, boss, "a:3", "old")
			expect.Eventually(t, "the replica has it", func() bool { return rdb.Get(t.Context(), "a:3").Val() == "old" })
			expect.OK(t, other.ReplicaOf(t.Context(), "no", "one").Err())
			n.untilRung(localsync.Tracking)
			n.copied("a:3", "old")
			n.neverOnPubSub()
		})
	}
}

func TestARealClusterIsDown(t *testing.T) {
	t.Parallel()
	cluster := realredis.StartCluster(t, 3, 0, realredis.Options{})
	rdb, other := cluster.Client(), cluster.Client()
	n := open(t, rdb, nil)
	n.untilRung(localsync.Tracking)
	victim := cluster.Owner("a:1")
	victim.Pause()
	n.untilWhy("CLUSTERDOWN")
	victim.Resume()
	n.untilRung(localsync.Tracking)
	heardOfAll(t, n, other, "1")
	n.neverOnPubSub()
}
