package nodes_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
	"github.com/mayflycache/mayfly/redistest"
)

// look reads a key as one does who reckons, meets a record that ends in an hour, and reports whether PTTL was asked.
func look(t *testing.T, n *nodes.Node) (asked bool) {
	t.Helper()
	c, ok := n.Clock()
	a := n.Get(t.Context(), "k", !ok)
	if a.Err != nil {
		t.Fatal(a.Err)
	}
	if !ok {
		n.Compare(a.Now+a.Left.Milliseconds(), a.Left, a.Now)
		return true
	}
	if _, ok := c.Now(); !ok {
		t.Error("what was known is not known any more")
	}
	return false
}

func node(t *testing.T, rdb redis.UniversalClient) *nodes.Node {
	t.Helper()
	n, err := nodes.New(nodes.Options{Redis: rdb, Timeout: time.Second}).Of(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A clock is looked at once a second. What is older than two seconds is not relied on, even if somebody else has yet to look.
func TestALookIsGoodForTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		srv.Client().Set(t.Context(), "k", "v", time.Hour)
		n := node(t, srv.Client())
		if !look(t, n) || look(t, n) {
			t.Error("the first look does not tell the clock")
		}
		time.Sleep(999 * time.Millisecond)
		if look(t, n) {
			t.Error("it is looked at again within a second")
		}
		time.Sleep(time.Millisecond)
		if _, ok := n.Clock(); ok { // it is this one's to look, and it takes its time
			t.Error("nobody looks after a second")
		}
		if _, ok := n.Clock(); !ok {
			t.Error("all ask, while one looks")
		}
		time.Sleep(999 * time.Millisecond)
		if _, ok := n.Clock(); !ok {
			t.Error("it is not relied on for two seconds")
		}
		time.Sleep(2 * time.Millisecond)
		n.Clock() // looks
		if _, ok := n.Clock(); ok {
			t.Error("it is relied on after two seconds")
		}
	})
}

// The time is as late as it can be: what it took to ask counts.
func TestTheTimeIsAsLateAsItCanBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		srv.SetTime(time.Now().Add(time.Hour))
		srv.Client().Set(t.Context(), "k", "v", time.Hour)
		n := node(t, srv.Client())
		look(t, n)
		time.Sleep(time.Second)
		srv.Latency(100 * time.Millisecond)
		look(t, n)
		srv.Latency(0)
		c, ok := n.Clock()
		if !ok {
			t.Fatal("the clock is not known")
		}
		now, ok := c.Now()
		at := srv.Client().Time(t.Context()).Val().UnixMilli()
		if !ok || now < at || now > at+350 {
			t.Errorf("it is thought to be %d ms later than it is (%v)", now-at, ok)
		}
		if ends := n.Ends(t.Context(), time.Minute); ends < at+60_000 || ends > at+60_350 {
			t.Errorf("what is written for a minute is thought to end %d ms later", ends-at-60_000)
		}
	})
}

// A server that does not tell its time is asked for PTTL each time, and for its time once a minute.
func TestAServerThatDoesNotTellItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := srv.Client()
		rdb.Set(t.Context(), "k", "v", time.Hour)
		n := node(t, rdb)
		for minute := range 2 {
			srv.ClearLog()
			for i := range 20 {
				srv.FailNext("time", "NOPERM this user has no permissions to run the 'time' command")
				if !look(t, n) {
					t.Error("it is judged without a clock")
				}
				if ends := n.Ends(t.Context(), time.Hour); ends != 0 {
					t.Errorf("an end is told: %d", ends)
				}
				if i > 0 {
					time.Sleep(time.Second)
				}
			}
			if n := strings.Count("\n"+strings.Join(srv.Log(), "\n"), "\ntime"); n > 1 {
				t.Errorf("it was asked %d times in minute %d", n, minute)
			}
			time.Sleep(time.Minute)
		}
	})
}

// A client of which nobody knows where it sends TIME is not asked for it.
func TestAClientOfManyServersHasNoClock(t *testing.T) {
	rdb := redistest.Start(t).Client()
	n := node(t, struct{ redis.UniversalClient }{rdb})
	if _, ok := n.Clock(); ok || n.Ends(context.Background(), time.Hour) != 0 {
		t.Error("it has a clock")
	}
	n.Compare(1, time.Second, 1)
}
