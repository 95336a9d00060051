package localsync_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/redistest"
)

// refusals are the answers of servers that currently accept no writes.
var refusals = []string{
	"OOM command not allowed when used memory > 'maxmemory'.",
	"READONLY You can't write against a read only replica.",
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
	"CLUSTERDOWN The cluster is down",
	"NOREPLICAS Not enough good replicas to write.",
	"ERR upstream is busy", // a proxy's
}

// refuseWrites answers the writes of probes with text, until the function that it returns is called.
func refuseWrites(t *testing.T, srv *redistest.Server, text string) (end func()) {
	for range 200 {
		srv.FailNext("set", text)
		srv.FailNext("pexpire", text)
	}
	return func() {
		o := srv.Options()
		o.MaxRetries = -1
		rdb := redis.NewClient(o)
		defer rdb.Close()
		for _, command := range []string{"set", "pexpire"} {
			for err := errors.New(text); err.Error() == text; err = rdb.Do(t.Context(), command).Err() {
			} // without arguments: nothing is written by the last
		}
	}
}

// reads asks for a copy now and then, for a time.
func (n *near) reads(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(400 * time.Millisecond) {
		n.Begin("a:0")
	}
}

// wantWhy looks for a text in the reason for the rung, as it was last reported, and as Stats has it.
func (n *near) wantWhy(text string) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, why := range []error{n.whys[len(n.whys)-1], n.Stats().Why} {
		if why == nil || !strings.Contains(why.Error(), text) {
			n.t.Errorf("the reason is %v, want %q in it", why, text)
		}
	}
}

// A refused probe proves nothing about pushes: the tier serves nothing, says why, and does not go down the ladder.
func TestWritesAreRefused(t *testing.T) {
	texts := refusals
	if effort.Race {
		texts = refusals[:2]
	}
	for _, text := range texts {
		withCopy(t, func(t *testing.T, srv *redistest.Server, other *redis.Client, n *near) {
			n.reads(10 * time.Second)
			n.want("a:1", "old")
			end := refuseWrites(t, srv, text)
			time.Sleep(3 * time.Second)
			n.want("a:1", "")
			n.wantRungs(localsync.Tracking, localsync.Off)
			n.wantWhy(text)
			n.reads(10 * time.Second)
			n.read("a:1")
			n.want("a:1", "")
			n.wantRungs(localsync.Tracking, localsync.Off)

			end()
			time.Sleep(time.Second)
			n.read("a:1")
			n.want("a:1", "old")
			n.wantRungs(localsync.Tracking, localsync.Off, localsync.Tracking)
			if s := n.Stats(); s.Why != nil {
				t.Errorf("on tracking Stats has the reason %v", s.Why)
			}
		})
		bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) { // from the beginning on
			end := refuseWrites(t, srv, text)
			n := open(t, srv.Client(), nil)
			n.wantRungs(localsync.Off)
			n.wantWhy(text)
			other.Del(t.Context(), "a:2")
			n.reads(20 * time.Second)
			n.wantRungs(localsync.Off)

			srv.Set("a:2", "v") // a push proves that changes are pushed, whichever client made the change
			time.Sleep(time.Second)
			n.wantRungs(localsync.Off, localsync.Tracking)
			n.reads(10 * time.Second)
			n.wantRungs(localsync.Off, localsync.Tracking, localsync.Off)
			n.wantWhy(text)
			end()
			time.Sleep(time.Second)
			n.wantRungs(localsync.Off, localsync.Tracking, localsync.Off, localsync.Tracking)
		})
	}
}

// A full Redis still prolongs the probe, which takes no memory, so its pushes keep arriving.
func TestRedisIsFull(t *testing.T) {
	full := func(t *testing.T, rdb *redis.Client, on bool) {
		if err := rdb.ConfigSet(t.Context(), "maxmemory", map[bool]string{true: "1", false: "0"}[on]).Err(); err != nil {
			t.Fatal(err)
		}
		err := rdb.Set(t.Context(), "c:1", "v", time.Minute).Err()
		if redis.HasErrorPrefix(err, "OOM") != on {
			t.Fatalf("a write is answered %v", err)
		}
	}
	withCopy(t, func(t *testing.T, srv *redistest.Server, other *redis.Client, n *near) {
		busy := time.Now().Add(65 * time.Minute) // longer than the probe's key lives unless it is prolonged: no probe is needed to hear pushes, and it must still be there
		for time.Now().Before(busy) {
			set(t, other, "b:1", "v")
			n.get("a:1")
			time.Sleep(400 * time.Millisecond)
		}
		set(t, other, "a:1", "old")
		synctest.Wait()
		n.read("a:1")
		full(t, other, true)
		for range 40 {
			time.Sleep(time.Second)
			n.want("a:1", "old")
		}
		other.Del(t.Context(), "a:1")
		synctest.Wait()
		n.want("a:1", "")
		n.wantRungs(localsync.Tracking)

		later := open(t, redis.NewClient(srv.Options()), nil)
		later.wantRungs(localsync.Tracking)
		later.rdb.Close()
	})
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) { // without a probe that it had before
		full(t, other, true)
		n := open(t, srv.Client(), nil)
		n.wantRungs(localsync.Off)
		n.wantWhy("OOM")
		full(t, other, false)
		time.Sleep(time.Second)
		n.wantRungs(localsync.Off, localsync.Tracking)
	})
}

// Pushes that are swallowed are a cause to go down the ladder, if the probe was acknowledged.
func TestPushesAreSwallowed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		srv.DropInvalidations(true)
		defer srv.DropInvalidations(false)
		n := open(t, srv.Client(), nil)
		n.wantRungs(localsync.PubSub)
		n.wantWhy("no invalidation arrives")
	})
	// Nothing is known of that before.
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		srv.DropInvalidations(true)
		defer srv.DropInvalidations(false)
		end := refuseWrites(t, srv, refusals[0])
		n := open(t, srv.Client(), nil)
		n.reads(time.Minute)
		n.wantRungs(localsync.Off)
		end()
		n.reads(5 * time.Second)
		n.wantRungs(localsync.Off, localsync.PubSub)
	})
}

// A probe's push has until the next beat.
func TestAPushThatIsLate(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		end := refuseWrites(t, srv, refusals[0])
		n := open(t, srv.Client(), nil)
		srv.DropInvalidations(true)
		end()
		for !srv.Exists("mayfly:probe") {
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		srv.DropInvalidations(false)
		n.reads(5 * time.Second)
		n.wantRungs(localsync.Off, localsync.Tracking)
	})
}

// For an older Redis user, which may SET the probe but not prolong it, pushes still arrive; only a full Redis then refuses the probe.
func TestTheProbeMayNotBeProlonged(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		for range 1000 {
			srv.FailNext("pexpire", "NOPERM User reader has no permissions to run the 'pexpire' command")
		}
		n := open(t, srv.Client(), nil)
		n.reads(time.Minute)
		n.wantRungs(localsync.Tracking)
	})
}

// On each node of a cluster alike.
func TestAClusterIsDown(t *testing.T) {
	clustered(t, func(t *testing.T, cluster *redistest.Cluster, n *near, other *redis.ClusterClient) {
		set(t, other, "a:1", "old")
		synctest.Wait()
		n.read("a:1")
		cluster.Nodes()[0].Hang()
		n.reads(3 * time.Second)
		n.want("a:1", "")
		n.wantRungs(localsync.Tracking, localsync.Off)
		end := refuseWrites(t, cluster.Nodes()[1], "CLUSTERDOWN The cluster is down") // as one of its masters is away
		n.reads(30 * time.Second)
		n.wantRungs(localsync.Tracking, localsync.Off, localsync.Off) // the second cause is reported once
		n.wantWhy("CLUSTERDOWN")
		cluster.Nodes()[0].Thaw()
		n.reads(5 * time.Second)
		n.wantRungs(localsync.Tracking, localsync.Off, localsync.Off)
		end()
		n.reads(5 * time.Second)
		n.wantRungs(localsync.Tracking, localsync.Off, localsync.Off, localsync.Tracking)
	})
}
