// Package testkit_test has the tests of this wing, except those of realredis, which use unexported names. They are one program, because
// linking a program takes longer than running them.
package testkit_test

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/processes"
	"github.com/mayflycache/mayfly/internal/testkit/proxy"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
	"github.com/mayflycache/mayfly/redistest"
)

func TestMain(m *testing.M) { os.Exit(processes.Main(m, "testkit/proxy.(*")) }

// through returns a proxy of an empty double, a client that goes through it and repeats nothing, and a direct client.
func through(t *testing.T) (p *proxy.Proxy, rdb, direct *redis.Client) {
	srv := redistest.Start(t)
	p = proxy.Start(t, srv.Addr())
	return p, client(t, p, -1), srv.Client()
}

func client(t *testing.T, p *proxy.Proxy, retries int) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: retries})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// in runs f in a goroutine, and returns a channel for its result.
func in(f func() error) <-chan error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return done
}

func TestWhatPassesIsAsItWas(t *testing.T) {
	p, rdb, _ := through(t)
	ctx := t.Context()
	long := strings.Repeat("\r\n$5\x00", 100_000)
	expect.OK(t, rdb.Set(ctx, "k", long, 0).Err())
	if got := rdb.Get(ctx, "k").Val(); got != long {
		t.Errorf("%d bytes came back as %d others", len(long), len(got))
	}
	for range 3 {
		pipe := rdb.TxPipeline()
		n, none, list := pipe.Incr(ctx, "n"), pipe.Get(ctx, "none"), pipe.HGetAll(ctx, "hash")
		if _, err := pipe.Exec(ctx); !errors.Is(err, redis.Nil) || n.Err() != nil || none.Err() != redis.Nil || list.Err() != nil {
			t.Fatal(err, n, none, list)
		}
	}
	if n := rdb.Get(ctx, "n").Val(); n != "3" {
		t.Errorf("counted %q", n)
	}
	if log := p.Log(); !strings.Contains(strings.Join(log, "\n"), `["get" "n"]`) {
		t.Errorf("the log lacks it: %q", log)
	}
}

func TestSubscribersHearThroughIt(t *testing.T) {
	_, rdb, direct := through(t)
	sub := rdb.Subscribe(t.Context(), "news")
	defer sub.Close()
	expect.Value(sub.Receive(t.Context()))(t)
	expect.OK(t, direct.Publish(t.Context(), "news", "hello").Err())
	if m := expect.Value(sub.ReceiveMessage(t.Context()))(t); m.Payload != "hello" {
		t.Errorf("heard %v", m)
	}
}

func TestHeldAndReleasedIsAnswered(t *testing.T) {
	p, rdb, direct := through(t)
	held := p.Hold("SET", "k")
	set := in(func() error { return rdb.Set(t.Context(), "k", "v", 0).Err() })
	<-held.Arrived()
	if got, err := direct.Get(t.Context(), "k").Result(); err != redis.Nil {
		t.Errorf("while the SET is held: %q, %v", got, err)
	}
	held.Release()
	expect.OK(t, <-set)
	if reply := held.Reply(); reply != "+OK\r\n" {
		t.Errorf("answered %q", reply)
	}
}

// The client gives up, by its own timeout or because it is cut, and the request arrives after that.
func TestLate(t *testing.T) {
	for name, giveUp := range map[string]func(*proxy.Proxy, *proxy.Fault){
		"timeout": func(*proxy.Proxy, *proxy.Fault) {},
		"cut":     func(_ *proxy.Proxy, held *proxy.Fault) { held.Cut() },
		"all cut": func(p *proxy.Proxy, _ *proxy.Fault) { p.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			p := proxy.Start(t, srv.Addr())
			rdb := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
			defer rdb.Close()
			expect.OK(t, rdb.Ping(t.Context()).Err()) // so that the short timeout does not hit the making of the connection
			held := p.Hold("set", "k")
			set := in(func() error { return rdb.WithTimeout(20*time.Millisecond).Set(t.Context(), "k", "late", 0).Err() })
			<-held.Arrived()
			giveUp(p, held)
			if err := <-set; err == nil {
				t.Fatal("it was answered")
			}
			expect.OK(t, srv.Client().Set(t.Context(), "k", "new", 0).Err())
			held.Release()
			<-held.Done()
			if got := srv.Client().Get(t.Context(), "k").Val(); got != "late" {
				t.Errorf("it is %q", got)
			}
		})
	}
}

// A transaction with a held command is not executed, and arrives as a whole.
func TestALateTransaction(t *testing.T) {
	for _, command := range []string{"multi", "rpush", "exec"} {
		t.Run(command, func(t *testing.T) {
			p, rdb, direct := through(t)
			held := p.Hold(command, "")
			pushed := in(func() error {
				pipe := rdb.TxPipeline()
				pipe.RPush(t.Context(), "list", "a")
				pipe.PExpire(t.Context(), "list", time.Minute)
				_, err := pipe.Exec(t.Context())
				return err
			})
			<-held.Arrived()
			held.Cut()
			if err := <-pushed; err == nil {
				t.Fatal("it was answered")
			}
			if n := direct.Exists(t.Context(), "list").Val(); n != 0 {
				t.Error("a part of it was done")
			}
			held.Release()
			<-held.Done()
			if got, ttl := direct.LRange(t.Context(), "list", 0, -1).Val(), direct.PTTL(t.Context(), "list").Val(); len(got) != 1 || ttl <= 0 {
				t.Errorf("it is %q, for %v", got, ttl)
			}
		})
	}
}

// Requests after a held one on the same connection belong to it, and meet no other fault; a repetition comes on another connection.
func TestRepetitions(t *testing.T) {
	srv := redistest.Start(t)
	p := proxy.Start(t, srv.Addr())
	rdb := client(t, p, 1)
	lost := p.CutAfter("incr", "n")
	again := lost.HoldAgain()
	other := p.Hold("incr", "m").Skip(1) // of the first attempt
	done := in(func() error {
		pipe := rdb.Pipeline()
		pipe.Incr(t.Context(), "n")
		pipe.Incr(t.Context(), "m")
		_, err := pipe.Exec(t.Context())
		return err
	})
	<-again.Arrived()
	expect.Eventually(t, "the whole repetition came", func() bool { return len(p.Log()) == 4 })
	if n := srv.Client().Get(t.Context(), "n").Val(); n != "1" {
		t.Errorf("counted to %s before the repetition", n)
	}
	again.Release()
	expect.OK(t, <-done)
	<-again.Done()
	if n, m := srv.Client().Get(t.Context(), "n").Val(), srv.Client().Get(t.Context(), "m").Val(); n != "2" || m != "2" {
		t.Errorf("counted to %s and %s", n, m)
	}
	select {
	case <-other.Arrived():
		t.Error("a part of the held request was held for itself")
	default:
	}
	other.Release()
}

// Each way to lose a reply leaves executed what reached the server, and nothing else.
func TestLostReplies(t *testing.T) {
	for name, c := range map[string]struct {
		fault  func(p *proxy.Proxy) *proxy.Fault
		counts string        // at the server
		waits  time.Duration // the client, on the second command
		fails  func(error) bool
	}{
		"cut before": {func(p *proxy.Proxy) *proxy.Fault { return p.CutBefore("incr", "n") }, "1", time.Minute, func(err error) bool { return errors.Is(err, io.EOF) }},
		"cut after":  {func(p *proxy.Proxy) *proxy.Fault { return p.CutAfter("incrby INCR", "n") }, "2", time.Minute, func(err error) bool { return errors.Is(err, io.EOF) }},
		"dropped":    {func(p *proxy.Proxy) *proxy.Fault { return p.DropReply("incr", "n") }, "2", 20 * time.Millisecond, isTimeout},
		"truncated":  {func(p *proxy.Proxy) *proxy.Fault { return p.Truncate("incr", "n", 1) }, "2", time.Minute, func(err error) bool { return errors.Is(err, io.EOF) }},
		"held":       {func(p *proxy.Proxy) *proxy.Fault { return p.HoldReply("incr", "n") }, "2", 20 * time.Millisecond, isTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			srv := redistest.Start(t)
			p := proxy.Start(t, srv.Addr())
			rdb := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, ReadTimeout: time.Minute})
			defer rdb.Close()
			f := c.fault(p).Skip(1)
			expect.OK(t, rdb.Incr(t.Context(), "n").Err())
			if err := rdb.WithTimeout(c.waits).Incr(t.Context(), "n").Err(); !c.fails(err) {
				t.Errorf("the client saw %v", err)
			}
			f.Release()
			<-f.Done()
			if n := srv.Client().Get(t.Context(), "n").Val(); n != c.counts {
				t.Errorf("it was counted to %s, want %s", n, c.counts)
			}
		})
	}
}

func isTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func TestAHeldReplyComesLater(t *testing.T) {
	p, rdb, direct := through(t)
	held := p.HoldReply("incr", "n")
	n := make(chan int64)
	go func() { n <- rdb.Incr(t.Context(), "n").Val() }()
	expect.Eventually(t, "the server counted", func() bool { return direct.Get(t.Context(), "n").Val() == "1" })
	held.Release()
	if n := <-n; n != 1 {
		t.Errorf("answered %d", n)
	}
}

func TestADelayIsOverByItself(t *testing.T) {
	p, rdb, _ := through(t)
	begun := time.Now()
	p.Delay("ping", "", 20*time.Millisecond)
	expect.OK(t, rdb.Ping(t.Context()).Err())
	if took := time.Since(begun); took < 20*time.Millisecond {
		t.Errorf("it took %v", took)
	}
}

func TestACommandReleasedBeforeItCameIsNotHeld(t *testing.T) {
	p, rdb, _ := through(t)
	p.Hold("get set", "k").Release()
	expect.OK(t, rdb.Set(t.Context(), "k", "v", 0).Err())
}

// A command that is held when the server dies never arrives, and nothing waits for it.
func TestTheServerDies(t *testing.T) {
	srv := redistest.Start(t)
	p := proxy.Start(t, srv.Addr())
	rdb := client(t, p, -1)
	held := p.Hold("set", "k")
	set := in(func() error { return rdb.Set(t.Context(), "k", "v", 0).Err() })
	<-held.Arrived()
	expect.OK(t, srv.Restart())
	if err := <-set; err == nil {
		t.Error("it was answered")
	}
	held.Release()
	if reply := held.Reply(); reply != "" {
		t.Errorf("answered %q", reply)
	}
}

// A connection to the server ends with its client's, if nothing is held.
func TestServersAreLeft(t *testing.T) {
	p, rdb, direct := through(t)
	held := p.Hold("set", "k")
	set := in(func() error { return rdb.Set(t.Context(), "k", "v", 0).Err() })
	<-held.Arrived()
	clients := func() int { return strings.Count(direct.ClientList(t.Context()).Val(), "\n") }
	held.Cut()
	<-set
	expect.OK(t, rdb.Close())
	if n := clients(); n != 2 {
		t.Errorf("%d connections while one holds a request, and one asks", n)
	}
	held.Release()
	expect.Eventually(t, "only the one that asks is left", func() bool { return clients() == 1 })
}

func TestCloseLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	srv := redistest.Start(t)
	p := proxy.Start(t, srv.Addr())
	rdb := client(t, p, -1)
	p.Hold("set", "k")
	p.Delay("get", "", time.Hour)
	set := in(func() error { return rdb.Set(t.Context(), "k", "v", 0).Err() })
	get := in(func() error { return rdb.Get(t.Context(), "k").Err() })
	expect.Eventually(t, "both came", func() bool { return len(p.Log()) == 2 })
	p.Close()
	p.Close()
	if err := <-set; err == nil {
		t.Error("the SET was answered")
	}
	if err := <-get; err == nil {
		t.Error("the GET was answered")
	}
	rdb.Close()
	srv.Close()
	expect.Eventually(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
}

// Real servers, and a cluster whose nodes the client finds by itself.
func TestRealServers(t *testing.T) {
	t.Run("one", func(t *testing.T) {
		p := proxy.Start(t, realredis.Start(t, realredis.Options{}).Addr())
		lateOn(t, p, client(t, p, 3))
	})
	t.Run("cluster", func(t *testing.T) {
		o := realredis.StartCluster(t, 3, 0, realredis.Options{}).Options()
		p := proxy.Start(t)
		o.Dialer = p.Dial
		rdb := redis.NewClusterClient(o)
		t.Cleanup(func() { rdb.Close() })
		lateOn(t, p, rdb)
	})
}

// lateOn makes a SET of each of several keys arrive a second time.
func lateOn(t *testing.T, p *proxy.Proxy, rdb redis.UniversalClient) {
	for range effort.Times(1, 20) {
		for _, key := range []string{"a", "b", "c", "d"} { // on several nodes
			held := p.Hold("set", key)
			set := in(func() error { return rdb.Set(t.Context(), key, "late", 0).Err() })
			<-held.Arrived()
			held.Cut()
			expect.OK(t, <-set)
			expect.OK(t, rdb.Del(t.Context(), key).Err())
			held.Release()
			<-held.Done()
			if got := rdb.Get(t.Context(), key).Val(); got != "late" {
				t.Errorf("%s: it is %q", key, got)
			}
		}
	}
}
