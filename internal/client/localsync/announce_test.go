package localsync_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/redistest"
)

// told runs test with two processes on the rung PubSub: writer announces, and n listens.
func told(t *testing.T, test func(t *testing.T, srv *redistest.Server, writer, n *near)) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		lower := func(rdb *redis.Client) *near {
			srv.FailNext("client tracking", "NOPERM no")
			n := open(t, rdb, func(o *localsync.Options) { o.MaxEntries = 20000 })
			n.wantRungs(localsync.PubSub)
			return n
		}
		writer, n := lower(srv.Client()), lower(other)
		test(t, srv, writer, n)
	})
}

// copies has n copy keys under prefix.
func (n *near) copies(srv *redistest.Server, prefix string, many int) (keys []string) {
	for i := range many {
		key := fmt.Sprint(prefix, i)
		srv.Set(key, "old")
		n.insert(key, n.Begin(key), answer{"old", time.Hour})
		keys = append(keys, key)
	}
	if got := n.served(keys); got != many {
		n.t.Fatalf("%d of %d keys were copied", got, many)
	}
	return keys
}

// served counts the keys whose copy is served.
func (n *near) served(keys []string) (served int) {
	for _, key := range keys {
		if n.get(key) != "" {
			served++
		}
	}
	return served
}

func TestManyAnnouncementsAtOnce(t *testing.T) {
	for _, many := range []int{3000, 15000} {
		told(t, func(t *testing.T, srv *redistest.Server, writer, n *near) {
			keys, others := n.copies(srv, "a:", many), n.copies(srv, "b:", 10)
			srv.Hang()
			for _, key := range keys {
				writer.Changed(key)
			}
			time.Sleep(300 * time.Millisecond)
			srv.Thaw()
			time.Sleep(time.Second)
			if left := n.served(keys); left != 0 {
				t.Errorf("%d of %d changed keys are still served", left, many)
			}
			if left := n.served(others); left != len(others) {
				t.Errorf("of %d copies that nobody changed %d are left", len(others), left)
			}
		})
	}
}

// An announcement is repeated until it is acknowledged.
func TestAnAnnouncementFails(t *testing.T) {
	for name, fault := range map[string]func(srv *redistest.Server){
		"it is refused for now": func(srv *redistest.Server) {
			srv.FailNext("publish", "MISCONF Errors writing to the AOF file")
		},
		"its reply is lost": func(srv *redistest.Server) { srv.DropReply("publish") },
	} {
		t.Run(name, func(t *testing.T) {
			told(t, func(t *testing.T, srv *redistest.Server, writer, n *near) {
				keys, others := n.copies(srv, "a:", 10), n.copies(srv, "b:", 10)
				time.Sleep(100 * time.Millisecond) // between two beats
				for range 6 {                      // the announcements, or the times that go-redis sends them
					fault(srv)
				}
				writer.Changed(keys[:5]...)
				writer.ChangedAll("a:7")
				time.Sleep(3 * time.Second)
				if left := n.served(keys[:5]) + n.served(keys[7:8]); left != 0 {
					t.Errorf("%d changed keys are still served", left)
				}
				if left := n.served(others); left != len(others) {
					t.Errorf("of %d copies that nobody changed %d are left", len(others), left)
				}
				n.wantRungs(localsync.PubSub)
			})
		})
	}
}

// A refusal for good is not argued with.
func TestAnAnnouncementIsForbidden(t *testing.T) {
	told(t, func(t *testing.T, srv *redistest.Server, writer, n *near) {
		keys := n.copies(srv, "a:", 2)
		srv.FailNext("publish", "NOPERM User default has no permissions to access one of the channels used as arguments")
		writer.Changed(keys[0])
		n.reads(10 * time.Second)
		n.want(keys[0], "old")
		writer.Changed(keys[1])
		synctest.Wait()
		n.want(keys[1], "")
	})
}

// A process on no rung, or on the lowest, still announces: others may listen.
func TestEveryRungBelowTrackingAnnounces(t *testing.T) {
	told(t, func(t *testing.T, srv *redistest.Server, writer, n *near) {
		keys := n.copies(srv, "a:", 3)

		srv.FailNext("client tracking", "NOPERM no")
		srv.FailNext("subscribe", "NOPERM no")
		short := open(t, writer.rdb, nil)
		short.wantRungs(localsync.ShortTTL)
		short.Changed(keys[0])
		synctest.Wait()
		n.want(keys[0], "")
		n.want(keys[1], "old")

		for range 100 {
			srv.FailNext("client tracking", "LOADING Redis is loading the dataset in memory")
		}
		off := open(t, writer.rdb, nil)
		if r := off.Stats().Rung; r != localsync.Off {
			t.Fatalf("the rung is %v", r)
		}
		off.Changed(keys[1])
		synctest.Wait()
		n.want(keys[1], "")
		off.ChangedAll("a:")
		synctest.Wait()
		n.want(keys[2], "")
	})
}

func TestCloseLetsTheLastAnnouncementsOut(t *testing.T) {
	told(t, func(t *testing.T, srv *redistest.Server, writer, n *near) {
		keys := n.copies(srv, "a:", 500)
		srv.Hang()
		for _, key := range keys {
			writer.Changed(key)
		}
		time.AfterFunc(500*time.Millisecond, srv.Thaw)
		if err := writer.Close(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if left := n.served(keys); left != 0 {
			t.Errorf("%d changed keys are still served", left)
		}
	})
	// But it does not wait for a Redis that is gone: not longer than ctx, nor than Silence and a timeout.
	told(t, func(t *testing.T, srv *redistest.Server, writer, n *near) {
		srv.Hang()
		defer srv.Thaw()
		writer.Changed("a:1")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if err := writer.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 100*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		n.Changed("a:1")
		if n.Close(t.Context()); time.Since(begun) > 5*time.Second {
			t.Errorf("Close took %v", time.Since(begun))
		}
	})
}
