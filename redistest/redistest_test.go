package redistest_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/testkit/diff"
	"github.com/mayflycache/mayfly/redistest"
)

// A key is readable in the millisecond of its deadline and gone in the next, when it is removed and announced without any command.
func TestAKeyLivesToTheMillisecond(t *testing.T) {
	for _, ttl := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, 24 * time.Hour} {
		for _, move := range []string{"sleep", "advance"} {
			t.Run(move+" "+ttl.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Start(t)
					rdb := srv.Client()
					pass := time.Sleep
					if move == "advance" {
						pass = srv.Advance
					}
					set(t, rdb, "k", ttl)
					pass(ttl - time.Millisecond)
					wantAlive(t, rdb, "1 ms before its deadline", true)
					pass(time.Millisecond)
					wantAlive(t, rdb, "at its deadline", true)
					pass(time.Millisecond)
					wantAlive(t, rdb, "1 ms after its deadline", false)

					set(t, rdb, "k", ttl)
					pass(ttl + time.Millisecond)
					synctest.Wait()
					if n := rdb.DBSize(t.Context()).Val(); n != 0 {
						t.Errorf("%d keys were not reaped 1 ms after their deadline", n)
					}
				})
			})
		}
	}
}

func set(t *testing.T, rdb redis.UniversalClient, key string, ttl time.Duration) {
	t.Helper()
	if err := rdb.Set(t.Context(), key, "v", ttl).Err(); err != nil {
		t.Fatal(err)
	}
}

func wantAlive(t *testing.T, rdb *redis.Client, when string, want bool) {
	t.Helper()
	if err := rdb.Get(t.Context(), "k").Err(); (err == nil) != want || err != nil && err != redis.Nil {
		t.Errorf("%s: want alive %v, got error %v", when, want, err)
	}
}

// That the week costs nothing either is tested in internal/redis/server, where reads of the clock can be counted.
func TestAWeekOfSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := srv.Client()
		for i := range 100 {
			set(t, rdb, string(rune('a'+i)), time.Duration(i+1)*time.Hour)
		}
		set(t, rdb, "later", 8*24*time.Hour)
		time.Sleep(7 * 24 * time.Hour)
		if n := rdb.DBSize(t.Context()).Val(); n != 1 {
			t.Errorf("%d keys are left, want 1", n)
		}
	})
}

// The timer follows the clock as Advance left it.
func TestAfterAdvanceKeysStillEndByThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := srv.Client()
		set(t, rdb, "k", 5*time.Second)
		srv.Advance(3 * time.Second)
		time.Sleep(2*time.Second + time.Millisecond)
		synctest.Wait()
		if n := rdb.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys were not reaped 1 ms after their deadline", n)
		}
	})
}

func TestSetTimeMovesBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := srv.Client()
		then := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		srv.SetTime(then)
		if got := rdb.Time(t.Context()).Val(); !got.Equal(then.Add(time.Millisecond)) { // so that what ends at then has ended
			t.Errorf("TIME is %v", got)
		}
		set(t, rdb, "k", time.Hour)
		srv.SetTime(then.Add(-time.Hour))
		if got := rdb.PTTL(t.Context(), "k").Val(); got != 2*time.Hour {
			t.Errorf("an hour back: PTTL is %v", got)
		}
		time.Sleep(time.Minute)
		if got := rdb.PTTL(t.Context(), "k").Val(); got != 2*time.Hour-time.Minute {
			t.Errorf("the clock does not run: PTTL is %v", got)
		}
		srv.SetTime(then.Add(time.Hour + time.Millisecond))
		wantAlive(t, rdb, "after its deadline", false)
	})
}

// A user's own options with the server's Dialer, in one bubble after another, as docs/testing.md shows. Without an Addr go-redis would look
// up "localhost", with timers that belong to the first bubble.
func TestADialerInManyBubbles(t *testing.T) {
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t)
			rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: srv.Dial})
			defer rdb.Close()
			if err := rdb.Set(t.Context(), "k", "v", time.Hour).Err(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Hour + time.Millisecond)
			if err := rdb.Get(t.Context(), "k").Err(); err != redis.Nil {
				t.Error(err)
			}
		})
	}
}

// When Advance returns, a tracking client has handled the expirations, however long that takes.
func TestAdvanceReturnsWhenTrackingReadersHaveSeenIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		rdb := srv.Client()
		reader, err := srv.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer reader.Close()
		io.WriteString(reader, "HELLO 3\r\nCLIENT TRACKING ON BCAST PREFIX user:\r\nSUBSCRIBE others\r\n")
		var mu sync.Mutex
		seen := ""
		go func() {
			buf := make([]byte, 4096)
			for {
				n, err := reader.Read(buf)
				if err != nil {
					return
				}
				time.Sleep(time.Second) // a slow client
				mu.Lock()
				seen += string(buf[:n])
				mu.Unlock()
			}
		}()
		set(t, rdb, "user:1", time.Hour)
		time.Sleep(time.Minute)
		mu.Lock()
		seen = ""
		mu.Unlock()
		srv.Advance(time.Hour)
		mu.Lock()
		defer mu.Unlock()
		if !strings.Contains(seen, "invalidate") || !strings.Contains(seen, "user:1") {
			t.Errorf("the reader has seen %q", seen)
		}
	})
}

// track returns the keys of the pushes that a tracking client gets.
func track(t *testing.T, srv *redistest.Server) (keys <-chan []string, stop func()) {
	t.Helper()
	o := srv.Options()
	o.Protocol = 2
	o.OnConnect = func(ctx context.Context, cn *redis.Conn) error {
		id := cn.ClientID(ctx).Val()
		return cn.Do(ctx, "CLIENT", "TRACKING", "ON", "REDIRECT", id, "BCAST", "PREFIX", "user:").Err()
	}
	c := redis.NewClient(o)
	sub := c.Subscribe(t.Context(), "__redis__:invalidate")
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	heard := make(chan []string, 10)
	go func() {
		for m := range sub.Channel() {
			heard <- m.PayloadSlice
		}
	}()
	return heard, func() { sub.Close(); c.Close() }
}

func TestAddrServesTCP(t *testing.T) {
	srv := redistest.Start(t, redistest.Options{Password: "open sesame/"})
	set(t, srv.Client(), "k", 0)
	for what, o := range map[string]*redis.Options{
		"Addr": {Addr: srv.Addr(), Password: "open sesame/"},
		"URL":  must(redis.ParseURL(srv.URL())),
	} {
		rdb := redis.NewClient(o)
		defer rdb.Close()
		if err := rdb.Get(t.Context(), "k").Err(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	stranger := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer stranger.Close()
	if err := stranger.Get(t.Context(), "k").Err(); err == nil || !strings.HasPrefix(err.Error(), "NOAUTH") {
		t.Errorf("without the password: %v", err)
	}
	if srv.Host() != "127.0.0.1" || srv.Addr() != srv.Host()+":"+srv.Port() {
		t.Error(srv.Host(), srv.Port(), srv.Addr())
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestLog(t *testing.T) {
	srv := redistest.Start(t)
	rdb := srv.Client()
	rdb.Set(t.Context(), "user:7", "Ada \"Lovelace\"\n", time.Minute)
	rdb.Get(t.Context(), "")
	rdb.Echo(t.Context(), strings.Repeat("x", 2000))
	want := []string{
		`set user:7 "Ada \"Lovelace\"\n" ex 60`,
		`get ""`,
		`echo ` + strings.Repeat("x", 1024) + `...(2000 bytes)`,
	}
	if d := diff.Of(want, srv.Log()); d != "" {
		t.Error(d)
	}
	srv.ClearLog()
	if got := srv.Log(); got != nil {
		t.Errorf("after ClearLog: %q", got)
	}
	long := strings.Repeat("y", 1000)
	for range 5000 {
		rdb.Echo(t.Context(), long)
	}
	if n := len(srv.Log()); n < 500 || n > 1200 {
		t.Errorf("%d lines of 1 kB are kept", n)
	}
}

func TestBadHz(t *testing.T) {
	for _, hz := range []int{-1, 501} {
		if _, err := redistest.RunCluster(1, redistest.Options{Hz: hz}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("Options.Hz must be between 0 and 500, got ", hz)) {
			t.Errorf("%d: got error %v", hz, err)
		}
	}
}

// With the documented cycle dead keys are removed in batches, up to a tenth of a second late.
func TestDocumentedCycle(t *testing.T) {
	late := func(hz int) (most int64) {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Start(t, redistest.Options{Hz: hz})
			rdb := srv.Client()
			const keys = 50
			for i := range keys {
				set(t, rdb, fmt.Sprint(i), time.Second+time.Duration(10*i)*time.Millisecond)
			}
			time.Sleep(time.Second + time.Millisecond)
			for i := range keys {
				synctest.Wait()
				most = max(most, rdb.DBSize(t.Context()).Val()-int64(keys-1-i))
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if n := rdb.DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("%d keys are left after ten cycles", n)
			}
		})
		return most
	}
	if n := late(0); n != 0 {
		t.Errorf("by deadline: up to %d dead keys were kept", n)
	}
	if n := late(10); n < 2 || n > 40 {
		t.Errorf("documented: up to %d dead keys were kept", n)
	}
}

func TestServersAreGoneAfterTheirTests(t *testing.T) {
	for range 100 {
		t.Run("", func(t *testing.T) {
			srv := redistest.Start(t)
			set(t, srv.Client(), "k", time.Hour)
			o := srv.Options()
			o.MaxRetries, o.DialerRetries = -1, 1
			blocked := redis.NewClient(o)
			go func() {
				defer blocked.Close()
				blocked.BLPop(t.Context(), 0, "list")
			}()
			srv.Addr()
		})
	}
	if stacks := left(); len(stacks) > 0 {
		t.Errorf("%d goroutines are left:\n%s", len(stacks), stacks[0])
	}
}

// A time that the clock cannot represent is an error, and leaves the clock unchanged.
func TestTimesThatNoClockCanSay(t *testing.T) {
	srv := redistest.RunT(quiet{t})
	for _, bad := range []func(){
		func() { srv.SetTime(time.Date(300_000, 1, 1, 0, 0, 0, 0, time.UTC)) },
		func() { srv.SetTime(time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC)) },
		func() {
			for range 40 {
				srv.Advance(1<<63 - 1)
			}
		},
	} {
		srv.SetTime(time.Time{})
		died := make(chan bool)
		go func() {
			defer close(died)
			bad()
			died <- true // Fatalf did not end it
		}()
		if <-died {
			t.Error("no error")
		}
	}
	srv.SetTime(time.Time{})
	if got := srv.Client().Time(t.Context()).Val(); time.Until(got).Abs() > time.Minute {
		t.Errorf("the zero time is %v", got)
	}
	srv.SetTime(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	if got := srv.Client().Time(t.Context()).Val().UTC().Year(); got != 9999 {
		t.Errorf("the year %d", got)
	}
}

// quiet is a test whose Fatalf only ends the goroutine.
type quiet struct{ *testing.T }

func (quiet) Fatalf(string, ...any) { runtime.Goexit() }
