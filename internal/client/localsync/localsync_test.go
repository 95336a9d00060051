package localsync_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/localstore"
	"github.com/mayflycache/mayfly/internal/client/localsync"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/redistest"
)

// near is a process that copies what it reads.
type near struct {
	*localsync.Local
	t    testing.TB
	rdb  redis.UniversalClient
	view *localstore.Values[string]

	mu    sync.Mutex
	rungs []localsync.Rung // as they were reported
	whys  []error
}

// toldRungs are the rungs reported so far.
func (n *near) toldRungs() []localsync.Rung {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.rungs)
}

func open(t testing.TB, rdb redis.UniversalClient, change func(*localsync.Options)) *near {
	t.Helper()
	n := &near{t: t, rdb: rdb}
	o := localsync.Options{
		Redis: rdb, Prefixes: []string{"a:", "b:"}, MaxEntries: 1000, Silence: 2 * time.Second, ShortTTL: time.Second,
		RungChanged: func(to localsync.Rung, why error) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.rungs, n.whys = append(n.rungs, to), append(n.whys, why)
		},
	}
	if change != nil {
		change(&o)
	}
	var err error
	if n.Local, err = localsync.Open(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	n.view = localstore.NewValues[string](n.Store())
	t.Cleanup(func() { n.Close(context.Background()) })
	return n
}

// get returns the copy of key, or "" if none may be served.
func (n *near) get(key string) string {
	now := n.Now()
	if !n.Trusted(now) {
		return ""
	}
	v, _, _ := n.view.Get(key, now)
	return v
}

// read reads key from Redis and copies it.
func (n *near) read(key string) {
	n.t.Helper()
	n.insert(key, n.Begin(key), n.ask(key))
}

type answer struct {
	value string
	left  time.Duration
}

func (n *near) ask(key string) answer {
	n.t.Helper()
	pipe := n.rdb.Pipeline()
	get, pttl := pipe.Get(n.t.Context(), key), pipe.PTTL(n.t.Context(), key)
	if _, err := pipe.Exec(n.t.Context()); err != nil {
		n.t.Fatal(err)
	}
	return answer{get.Val(), pttl.Val()}
}

func (n *near) insert(key string, k localsync.Ticket, a answer) {
	localsync.Insert(n.Local, n.view, key, k, a.value, 10, a.left)
}

func (n *near) want(key, value string) {
	n.t.Helper()
	if got := n.get(key); got != value {
		n.t.Errorf("the copy of %s is %q, want %q (rung %v)", key, got, value, n.Stats().Rung)
	}
}

func (n *near) wantRungs(want ...localsync.Rung) {
	n.t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Equal(n.rungs, want) {
		n.t.Errorf("the rungs were %v, want %v (%v)", n.rungs, want, errors.Join(n.whys...))
	}
}

func set(t testing.TB, rdb redis.UniversalClient, key, value string) {
	t.Helper()
	if err := rdb.Set(t.Context(), key, value, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
}

// bubble runs test with a double, whose client is "another process".
func bubble(t *testing.T, test func(t *testing.T, srv *redistest.Server, other *redis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		other := redis.NewClient(srv.Options())
		t.Cleanup(func() { other.Close() })
		test(t, srv, other)
	})
}

func TestEveryChangeIsHeard(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), nil)
		n.wantRungs(localsync.Tracking)
		for _, change := range []struct {
			name string
			do   func()
		}{
			{"SET", func() { set(t, other, "a:1", "new") }},
			{"DEL", func() { other.Del(t.Context(), "a:1") }},
			{"the TTL", func() { other.PExpire(t.Context(), "a:1", time.Hour) }},
			{"its own client", func() { set(t, n.rdb, "a:1", "new") }},
			{"expiry", func() {
				other.PExpire(t.Context(), "a:1", time.Millisecond)
				time.Sleep(10 * time.Millisecond)
			}},
			{"another database", func() {
				o := srv.Options()
				o.DB = 3
				far := redis.NewClient(o)
				defer far.Close()
				set(t, far, "a:1", "new")
			}},
			{"FLUSHALL", func() { other.FlushAll(t.Context()) }},
		} {
			set(t, other, "a:1", "old")
			set(t, other, "b:1", "other")
			synctest.Wait()
			n.read("a:1")
			n.read("b:1")
			n.want("a:1", "old")
			set(t, other, "c:1", "not listened to")
			synctest.Wait()
			n.want("a:1", "old")
			change.do()
			synctest.Wait()
			if got := n.get("a:1"); got != "" {
				t.Errorf("after %s there is still a copy", change.name)
			}
		}
		if s := n.Stats(); s.Heard == 0 || s.Outdated != 0 || s.Rung != localsync.Tracking {
			t.Errorf("%+v", s)
		}
	})
}

func TestACopyIsNotOlderThanWhatWasHeard(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), nil)
		for _, c := range []struct {
			name    string
			between func() // the read of Redis and the insert
		}{
			{"a change", func() { set(t, other, "a:1", "new") }},
			{"a change by this process", func() { n.Forget("a:1") }},
			{"FLUSHALL", func() { other.FlushAll(t.Context()) }},
			{"a lost link", func() { srv.KillConnections(); time.Sleep(time.Second) }},
			{"everything dropped by this process", func() { n.ForgetAll("a:") }},
		} {
			set(t, other, "a:1", "old")
			synctest.Wait()
			k, before := n.Begin("a:1"), n.Stats().Outdated
			a := n.ask("a:1")
			c.between()
			synctest.Wait()
			n.insert("a:1", k, a)
			if n.get("a:1") != "" || n.Stats().Outdated != before+1 {
				t.Errorf("after %s between read and insert there is a copy of %q", c.name, n.get("a:1"))
			}
			n.Forget("a:1")
		}
	})
}

func TestACopyEndsBeforeTheOriginal(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), func(o *localsync.Options) { o.MaxTTL = 30 * time.Second })
		srv.DropInvalidations(true) // the end is not heard
		defer srv.DropInvalidations(false)
		other.Set(t.Context(), "a:1", "v", 300*time.Millisecond)
		begun := time.Now()
		k := n.Begin("a:1")
		a := n.ask("a:1")
		time.Sleep(100 * time.Millisecond) // a slow reply
		n.insert("a:1", k, a)
		n.want("a:1", "v")
		time.Sleep(time.Until(begun.Add(a.left - 2*time.Millisecond)))
		n.want("a:1", "v")
		time.Sleep(time.Until(begun.Add(a.left)))
		n.want("a:1", "")
	})
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), func(o *localsync.Options) { o.MaxTTL = 3 * time.Second })
		set(t, other, "a:1", "v")
		synctest.Wait()
		n.read("a:1")
		time.Sleep(3*time.Second - 2*time.Millisecond)
		n.want("a:1", "v")
		time.Sleep(2 * time.Millisecond)
		n.want("a:1", "")
	})
}

// withCopy runs f in a bubble, with a copy of a:1, which is "old".
func withCopy(t *testing.T, f func(t *testing.T, srv *redistest.Server, other *redis.Client, n *near)) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), nil)
		set(t, other, "a:1", "old")
		synctest.Wait()
		n.read("a:1")
		f(t, srv, other, n)
	})
}

func TestALostLink(t *testing.T) {
	for name, cut := range map[string]func(srv *redistest.Server){
		"connections are cut": func(srv *redistest.Server) { srv.KillConnections() },
		"the server crashes":  func(srv *redistest.Server) { srv.Restart() },
	} {
		t.Run(name, func(t *testing.T) {
			withCopy(t, func(t *testing.T, srv *redistest.Server, other *redis.Client, n *near) {
				flushes := n.Stats().Flushes
				cut(srv)
				synctest.Wait()
				n.want("a:1", "")
				time.Sleep(time.Second)
				n.want("a:1", "")
				if n.Stats().Flushes == flushes || n.Store().Len() != 0 {
					t.Error("the copies were not dropped")
				}
				n.wantRungs(localsync.Tracking, localsync.Off, localsync.Tracking)
				set(t, other, "a:1", "new")
				synctest.Wait()
				n.read("a:1")
				n.want("a:1", "new")
			})
		})
	}
}

// To the millisecond, by the clock alone: nothing has to be noticed.
func TestSilenceEndsTheTrust(t *testing.T) {
	for name, hush := range map[string]func(srv *redistest.Server, on bool){
		"the server hangs": func(srv *redistest.Server, on bool) {
			if on {
				srv.Hang()
			} else {
				srv.Thaw()
			}
		},
		"invalidations are lost": func(srv *redistest.Server, on bool) { srv.DropInvalidations(on) },
	} {
		t.Run(name, func(t *testing.T) {
			withCopy(t, func(t *testing.T, srv *redistest.Server, other *redis.Client, n *near) {
				const sinceBeat = 137 * time.Millisecond
				time.Sleep(10*time.Second + sinceBeat)
				n.want("a:1", "old")
				hush(srv, true)
				if lasted := n.lasts("a:1"); lasted < time.Second || lasted > 2*time.Second-sinceBeat+time.Millisecond {
					t.Errorf("a copy was served for %v", lasted)
				}
				time.Sleep(time.Second)
				if n.Store().Len() != 0 {
					t.Error("the copies were not dropped")
				}
				hush(srv, false)
				time.Sleep(2 * time.Minute)
				if r := n.Stats().Rung; r != localsync.Tracking {
					t.Errorf("after it is over the rung is %v", r)
				}
			})
		})
	}
}

// lasts returns for how much longer a copy is served.
func (n *near) lasts(key string) time.Duration {
	begun := time.Now()
	for n.get(key) != "" {
		time.Sleep(time.Millisecond)
	}
	return time.Since(begun)
}

// A beat that came back late says nothing about the time on its way.
func TestTrustCountsFromTheSending(t *testing.T) {
	longest := time.Duration(0)
	for offset := time.Duration(0); offset < time.Second; offset += 100 * time.Millisecond {
		bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
			n := open(t, srv.Client(), func(o *localsync.Options) { o.Silence = 4 * time.Second })
			set(t, other, "a:1", "v")
			synctest.Wait()
			srv.Latency(900 * time.Millisecond)
			busy := func(d time.Duration) { // pushes come all the time
				for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
					srv.Set("b:1", "v")
				}
			}
			busy(10 * time.Second)
			n.read("a:1")
			busy(offset)
			srv.Hang()
			longest = max(longest, n.lasts("a:1"))
			srv.Thaw()
		})
	}
	if longest > 3100*time.Millisecond+time.Millisecond {
		t.Errorf("a copy was served for %v after the last sign of life", longest)
	}
}

func TestTheLadder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		srv.FailNext("client tracking", "NOPERM User default has no permissions to run the 'client|tracking' command")
		n := open(t, srv.Client(), nil)
		n.wantRungs(localsync.PubSub)
		if why := errors.Join(n.whys...); !strings.Contains(why.Error(), "NOPERM") {
			t.Errorf("the reason is %v", why)
		}
		srv.FailNext("client tracking", "NOPERM no")
		other1 := open(t, other, nil)
		set(t, other, "a:1", "old")
		set(t, other, "a:2", "old")
		set(t, other, "b:2", "old")
		read := func() { n.read("a:1"); n.read("a:2"); n.read("b:2") }
		read()
		n.want("a:1", "old")
		set(t, other, "a:1", "new")
		synctest.Wait()
		n.want("a:1", "old") // there was no push
		other1.Changed("a:1")
		synctest.Wait()
		n.want("a:1", "")
		n.want("a:2", "old")
		other1.ChangedAll("a:")
		synctest.Wait()
		n.want("a:2", "")
		n.want("b:2", "old")
		time.Sleep(10 * time.Second)
		n.want("b:2", "old")
		srv.Hang()
		time.Sleep(2100 * time.Millisecond)
		n.want("b:2", "")
		srv.Thaw()
		time.Sleep(5 * time.Second)
		n.wantRungs(localsync.PubSub, localsync.Off, localsync.Tracking)
	})
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		srv.FailNext("client tracking", "NOPERM no")
		srv.FailNext("subscribe", "NOPERM no channels for you")
		n := open(t, srv.Client(), nil)
		n.wantRungs(localsync.ShortTTL)
		set(t, other, "a:1", "old")
		n.read("a:1")
		time.Sleep(900 * time.Millisecond)
		n.want("a:1", "old")
		time.Sleep(100 * time.Millisecond)
		n.want("a:1", "")
		set(t, other, "a:1", "new")
		n.read("a:1")
		time.Sleep(70 * time.Second)
		n.wantRungs(localsync.ShortTTL, localsync.Off, localsync.Tracking)
	})
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) { // a password that is being changed says nothing about tracking
		srv.FailNext("client tracking", "NOAUTH Authentication required.")
		n := open(t, srv.Client(), nil)
		time.Sleep(time.Second)
		n.wantRungs(localsync.Tracking)
	})
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		srv.FailNext("client tracking", "NOPERM no")
		srv.FailNext("subscribe", "NOPERM no")
		n := open(t, srv.Client(), func(o *localsync.Options) { o.ShortTTL = -1 })
		set(t, other, "a:1", "old")
		n.read("a:1")
		n.want("a:1", "")
	})
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		srv.FailNext("hello", "ERR unknown command 'HELLO'") // of go-redis, which goes on with RESP2
		srv.FailNext("hello", "ERR unknown command 'HELLO'")
		n := open(t, redis.NewClient(srv.Options()), nil)
		n.wantRungs(localsync.PubSub)
		n.rdb.Close()
	})
}

func TestARedisThatIsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		set(t, other, "a:1", "v")
		srv.Refuse(true)
		begun := time.Now()
		n := open(t, srv.Client(), nil)
		if took := time.Since(begun); took > 2*time.Second {
			t.Errorf("Open took %v", took)
		}
		n.wantRungs()
		srv.Refuse(false)
		time.Sleep(2 * time.Second)
		n.read("a:1")
		n.want("a:1", "v")
		n.wantRungs(localsync.Tracking)
	})
}

func TestNobodyReads(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), nil)
		set(t, other, "a:1", "v")
		synctest.Wait()
		n.read("a:1")
		time.Sleep(2 * time.Minute)
		n.want("a:1", "")
		asked := len(srv.Log())
		time.Sleep(7 * 24 * time.Hour)
		if sent := len(srv.Log()) - asked; sent > 10 {
			t.Errorf("in a week that nobody read in, %d commands were sent", sent)
		}
		set(t, other, "a:1", "v")
		n.read("a:1") // wakes it
		time.Sleep(time.Second)
		n.read("a:1")
		n.want("a:1", "v")
		n.wantRungs(localsync.Tracking)
	})
}

func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), nil)
		changed, stop := n.Watch("a:1")
		set(t, other, "a:2", "v")
		synctest.Wait()
		select {
		case <-changed:
			t.Error("another key's change was signalled")
		default:
		}
		set(t, other, "a:1", "v")
		<-changed
		other.FlushAll(t.Context())
		<-changed
		stop()
		stop()
	})
}

func TestClose(t *testing.T) {
	bubble(t, func(t *testing.T, srv *redistest.Server, other *redis.Client) {
		n := open(t, srv.Client(), nil)
		set(t, other, "a:1", "v")
		synctest.Wait()
		n.read("a:1")
		for range 2 {
			if err := n.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
		n.want("a:1", "")
		n.read("a:1")
		n.want("a:1", "")
		n.wantRungs(localsync.Tracking)
		if _, asleep := <-time.After(time.Second), false; asleep || !n.Closed() {
			t.Error("it is not closed")
		}
	})
}

// TestMain looks for goroutines that outlived their Local.
func TestMain(m *testing.M) {
	os.Exit(processes.Main(m, "localsync.(*"))
}
