package cacheaside_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/cacheaside"
	"github.com/mayflycache/mayfly/earlyrefresh"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/redistest"
)

// Each server of a cluster has a clock of its own.
func TestServersOfAClusterHaveTheirOwnClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := redistest.StartCluster(t, 2)
		w := &clocks{t: t, rdb: servers.Client()}
		c := w.cache()
		first, second := 0, 1 // one on each server
		owner := func(key int) *redistest.Server { return servers.Owner("users:" + strconv.Itoa(key)) }
		for owner(second) == owner(first) {
			second++
		}
		owner(second).SetTime(time.Now().Add(20 * time.Minute))
		all := func() {
			for _, key := range []int{first, second} {
				_, err := c.Get(t.Context(), key)
				expect.OK(t, err)
				synctest.Wait()
			}
		}
		all()
		time.Sleep(30*time.Minute - 500*time.Millisecond)
		all() // looks at the clocks
		if n := w.loads.Load(); n != 2 {
			t.Errorf("%d loads before either was due", n)
		}
		time.Sleep(900 * time.Millisecond)
		if all(); w.loads.Load() != 4 {
			t.Errorf("%d loads when both were due", w.loads.Load())
		}
	})
}

// A moved slot is read from another server, whose clock differs.
func TestASlotThatWasMovedHasAnotherClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := redistest.StartCluster(t, 2)
		w := &clocks{t: t, rdb: servers.Client()}
		c := w.cache()
		for i := range 2 {
			for range 2 {
				get(t, c, i)
				time.Sleep(20 * time.Millisecond)
			}
			from, to := servers.Owner("users:7"), servers.Nodes()[0]
			if from == to {
				to = servers.Nodes()[1]
			}
			to.SetTime(time.Now().Add(31 * time.Minute)) // by this clock the value is due at once
			slot := servers.Slot("users:7")
			servers.MoveSlots(slot, slot, to)
			was := w.loads.Load()
			get(t, c, i)
			synctest.Wait()
			if n := w.loads.Load() - was; n != 1 {
				t.Errorf("%d loads of what is due where the slot is now", n)
			}
			to.SetTime(time.Now())
			expect.OK(t, c.Delete(t.Context(), 7))
		}
	})
}

// A value stored by a process with a stale window has expired for a process without one as soon as it is stale, whether or not that process sends
// PTTL anyway.
func TestAnothersStaleWindowIsNotOurs(t *testing.T) {
	for name, early := range map[string]earlyrefresh.Policy{"never early": earlyrefresh.Never, "by default": nil} {
		for i, reader := range []string{"Get", "GetMany"} {
			t.Run(name+", "+reader, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ns := namespace(t, redistest.Start(t).Client())
					var loads atomic.Int32
					load := func(context.Context, int) (user, error) { return user{Version: int(loads.Add(1))}, nil }
					stale := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{StaleWhile: time.Hour}))
					c := must[int, user](t)(cacheaside.New(ns, load, cacheaside.Options{Early: early}))
					get(t, stale, i)
					for range 3 {
						if v := get(t, c, i); v != 1 {
							t.Errorf("got version %d of what is fresh", v)
						}
						time.Sleep(20 * time.Millisecond)
					}
					time.Sleep(ns.TTL)
					if v := get(t, c, i); v != 2 {
						t.Errorf("got version %d of what is over", v)
					}
				})
			})
		}
	}
}
