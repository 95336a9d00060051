package nodes_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
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
		c.Compare(a.Now+a.Left.Milliseconds(), a.Left, a.Now)
		return true
	}
	if _, ok := c.Now(); !ok {
		t.Error("what was known is not known any more")
	}
	return false
}

func mustNot(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func node(t *testing.T, rdb redis.UniversalClient) *nodes.Node {
	t.Helper()
	n, err := nodes.New(nodes.Options{Redis: rdb, Timeout: time.Second}).Of(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The clock is read once a second. A reading older than two seconds is not relied on, even if another caller has yet to read the clock.
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

// What is read is judged by the latest that the time can be, and what is written ends by the earliest: what it took to ask counts for the one, and
// against the other.
func TestTheTimeIsWithinBounds(t *testing.T) {
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
		if ends := n.Ends(t.Context(), time.Minute); ends > at+60_000 || ends < at+60_000-350 {
			t.Errorf("what is written for a minute is thought to end %d ms later", ends-at-60_000)
		}
	})
}

// A command's wait for its turn is no part of that.
func TestTheWaitForATurnIsNotTheServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		o.PoolSize = 1
		rdb := redis.NewClient(o)
		defer rdb.Close()
		n, err := nodes.New(nodes.Options{Redis: rdb, Timeout: 5 * time.Second}).Of(t.Context(), "k")
		mustNot(t, err)
		c, _ := n.Clock() // it is time to look
		srv.Latency(1500 * time.Millisecond)
		go n.Ask1(t.Context(), redis.NewStringCmd(t.Context(), "get", "k"))
		synctest.Wait()
		srv.Latency(0)
		now, err := n.AskTimed(t.Context(), redis.NewStringCmd(t.Context(), "get", "k"), redis.NewDurationCmd(t.Context(), time.Millisecond, "pttl", "k"))
		mustNot(t, err)
		c.Compare(now+1000, time.Second, now)
		at, ok := c.Now()
		if !ok || at > now+100 {
			t.Errorf("it is thought to be %d ms later than it is (%v)", at-now, ok)
		}
	})
}

// After a server's clock was set back, ends are too late for two seconds, also those of clients that only write.
func TestAnEndIsReckonedByWhatWasHeardOfLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		n := node(t, srv.Client())
		off := func() int64 {
			ends := n.Ends(t.Context(), time.Minute)
			return ends - 60_000 - srv.Client().Time(t.Context()).Val().UnixMilli()
		}
		if d := off(); d != 0 {
			t.Errorf("the first is off by %d ms", d)
		}
		srv.SetTime(time.Now().Add(-8 * time.Second))
		time.Sleep(2*time.Second + time.Millisecond)
		if d := off(); d != 0 {
			t.Errorf("after two seconds it is off by %d ms", d)
		}
	})
}

// A record may say that it ends a while before it does, as one that has waited for its turn. One that says it later is not to be reckoned by, and
// is enough, whatever others are met with it.
func TestWhichRecordsAgree(t *testing.T) {
	for name, row := range map[string]struct {
		offs   []int64
		agrees bool
	}{
		"right":                 {[]int64{0}, true},
		"a little too late":     {[]int64{4}, true},
		"too late":              {[]int64{6}, false},
		"early":                 {[]int64{-1500}, true},
		"too early":             {[]int64{-2500}, false},
		"one of three too late": {[]int64{0, 6, 0}, false},
		"the last too late":     {[]int64{0, 6}, false},
		"the last too early":    {[]int64{0, -60_000}, true},
		"the first too early":   {[]int64{-60_000, 0}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := node(t, redistest.Start(t).Client())
			c, _ := n.Clock()
			now := n.Get(t.Context(), "k", true).Now
			for _, off := range row.offs {
				c.Compare(now+1000+off, time.Second, now)
			}
			if _, ok := n.Clock(); ok != row.agrees || now == 0 {
				t.Errorf("%s: reckons: %v", name, ok)
			}
		})
	}
}

// Behind a proxy of several servers with different clocks, one look meets a record of the server that told its time, and the next look one of
// another. So one record that says its end too late outweighs the looks of ten seconds.
func TestALateRecordIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := node(t, redistest.Start(t).Client())
		for second, off := range []int64{0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} {
			c, ok := n.Clock()
			if ok {
				t.Errorf("second %d: nobody looks", second)
			}
			now := n.Get(t.Context(), "k", true).Now
			c.Compare(now+1000+off, time.Second, now)
			if _, ok := n.Clock(); ok != (second < 1 || second > 10) {
				t.Errorf("second %d: reckons: %v", second, ok)
			}
			time.Sleep(time.Second)
		}
	})
}

// An answer from another server is not judged by this server's clock, and says nothing about it: while a slot moves key by key, reads do not all
// ask for the time.
func TestAnAnswerFromElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := redistest.StartCluster(t, 2)
		rdb := servers.Client()
		mustNot(t, rdb.Set(t.Context(), "k", "v", time.Hour).Err())
		n, err := nodes.New(nodes.Options{Redis: rdb, Timeout: time.Second}).Of(t.Context(), "k")
		mustNot(t, err)
		srv := servers.Owner("k")
		look(t, n)
		srv.ClearLog()
		for i := range 200 {
			time.Sleep(10 * time.Millisecond)
			if look(t, n) && i%100 < 98 && i%100 > 2 {
				t.Fatalf("PTTL was asked for after %d answers from elsewhere", i)
			}
			c, ok := n.Clock()
			srv.FailNext("get", "ASK 7629 127.0.0.1:1")
			a := n.Get(t.Context(), "k", !ok)
			mustNot(t, a.Err)
			if _, known := c.Now(); known {
				t.Fatal("an answer from elsewhere is judged by this clock")
			}
			c.Compare(a.Now+a.Left.Milliseconds()+60_000, a.Left, a.Now)
		}
		if n := asked(srv, "time"); n > 3 {
			t.Errorf("TIME was asked %d times in 2 s", n)
		}
	})
}

func asked(srv *redistest.Server, name string) int {
	return strings.Count("\n"+strings.Join(srv.Log(), "\n"), "\n"+name)
}

// swallows is a proxy that lets nothing through that has TIME in it, or nothing that has more than that.
type swallows struct {
	on, alone atomic.Bool
	lost      int // trips
	met       int // questions for the time
}

func (s *swallows) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (s *swallows) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (s *swallows) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[len(cmds)-1].Name() != "time" {
			return next(ctx, cmds)
		}
		if s.met++; !s.on.Load() || len(cmds) == 1 && !s.alone.Load() {
			return next(ctx, cmds)
		}
		if len(cmds) > 1 {
			s.lost++
		}
		for _, cmd := range cmds {
			cmd.SetErr(io.ErrUnexpectedEOF)
		}
		return io.ErrUnexpectedEOF
	}
}

// A trip that was lost with TIME in it may be TIME's fault. So TIME is then sent by itself, where nobody waits for it, and seldom.
func TestAProxyThatSwallowsTIME(t *testing.T) {
	for _, alone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			rdb := srv.Client()
			defer rdb.Close()
			proxy := &swallows{}
			proxy.on.Store(true)
			proxy.alone.Store(alone)
			rdb.AddHook(proxy)
			mustNot(t, rdb.Set(t.Context(), "k", "v", time.Hour).Err())
			n := node(t, rdb)
			lost := 0
			read := func() (pttl bool) {
				time.Sleep(100 * time.Millisecond)
				c, ok := n.Clock()
				a := n.Get(t.Context(), "k", !ok)
				if a.Err != nil {
					lost++
				} else if !ok {
					c.Compare(a.Now+a.Left.Milliseconds(), a.Left, a.Now)
				}
				synctest.Wait()
				return !ok
			}
			for range 1800 {
				if !read() {
					t.Fatal("reckoned without a clock")
				}
			}
			if most := map[bool]int{true: 1, false: 5}[alone]; lost == 0 || lost > most || lost != proxy.lost {
				t.Errorf("%d reads were lost in three minutes, %d trips, want %d at most; TIME by itself lost: %v", lost, proxy.lost, most, alone)
			}
			if proxy.met > 12 {
				t.Errorf("TIME was asked %d times in three minutes", proxy.met)
			}
			proxy.on.Store(false)
			for range 650 {
				read()
			}
			was, first := proxy.met, read()
			if second := read(); first && second || proxy.met > was+1 {
				t.Error("a minute after the proxy is gone the clock is not known")
			}
		})
	}
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

// TIME is not sent through a client if it is unknown to which server that goes.
func TestAClientOfManyServersHasNoClock(t *testing.T) {
	rdb := redistest.Start(t).Client()
	n := node(t, struct{ redis.UniversalClient }{rdb})
	c, ok := n.Clock()
	if ok || n.Ends(context.Background(), time.Hour) != 0 {
		t.Error("it has a clock")
	}
	c.Compare(1, time.Second, 1)
}
