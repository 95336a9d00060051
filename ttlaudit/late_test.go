package ttlaudit_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/late"
	"github.com/mayflycache/mayfly/redistest"
	"github.com/mayflycache/mayfly/ttlaudit"
)

var hourly = ttlaudit.Plan{Apply: true, Give: []ttlaudit.Give{{Pattern: "a:*", TTL: time.Hour}}}

// A fix that returned nil gives no key an end later: one that somebody made permanent after it stays so.
func TestAFixLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		conns, rdb := late.Client(t, srv)
		srv.Set("a:1", "v")
		conns.Hold("pexpire")
		r, err := ttlaudit.Fix(t.Context(), rdb, hourly)
		srv.Client().Persist(t.Context(), "a:1")
		conns.Deliver(t)
		if left := srv.TTL("a:1"); err == nil && left != 0 {
			t.Errorf("a key that was made permanent ends in %v", left)
		}
		if err == nil || r.Complete || r.Gives[0].Given != 0 {
			t.Errorf("its reply was lost: %+v, %v", r, err)
		}
		// A refused command is sent again.
		srv.Client().Persist(t.Context(), "a:1")
		srv.FailNext("pexpire", "LOADING Redis is loading the dataset in memory")
		if r, err := ttlaudit.Fix(t.Context(), rdb, hourly); err != nil || r.Gives[0].Given != 1 {
			t.Errorf("after a refusal: %+v, %v", r, err)
		}
	})
}

// A key that moves to another master between SCAN and PEXPIRE is not one that had a TTL.
func TestAFixTellsOfKeysThatMove(t *testing.T) {
	cluster := redistest.StartCluster(t, 2)
	rdb := redis.NewClusterClient(cluster.Client().Options())
	defer rdb.Close()
	from, to := cluster.Owner("a:1"), cluster.Nodes()[0]
	if from == to {
		to = cluster.Nodes()[1]
	}
	var once sync.Once
	rdb.OnNewNode(func(node *redis.Client) {
		node.AddHook(meddling{after: func(scan *redis.ScanCmd) {
			if keys, _ := scan.Val(); len(keys) > 0 {
				once.Do(func() { cluster.MoveSlots(0, 16383, to) })
			}
		}})
	})
	if err := rdb.Set(t.Context(), "a:1", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r, err := ttlaudit.Fix(t.Context(), rdb, hourly)
	if g := r.Gives[0]; err != nil || g.Had != 0 || r.Moved != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
