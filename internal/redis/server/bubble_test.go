package server_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// goredis returns an in-memory go-redis client of s. Its address must be a number: a name would be looked up.
func goredis(t testing.TB, s *server.Server) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", Dialer: s.Dial})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// A key exists during the last millisecond of its life, and is gone after it, whether it is read or not.
func TestAKeyLivesToTheMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		rdb := goredis(t, s)
		ctx := context.Background()
		for _, ttl := range []time.Duration{time.Millisecond, 1500 * time.Millisecond, time.Hour} {
			rdb.Set(ctx, "k", "v", ttl)
			time.Sleep(ttl - time.Millisecond)
			if err := rdb.Get(ctx, "k").Err(); err != nil {
				t.Errorf("%v: 1 ms before its end: %v", ttl, err)
			}
			time.Sleep(2 * time.Millisecond)
			if err := rdb.Get(ctx, "k").Err(); err != redis.Nil {
				t.Errorf("%v: 1 ms after its end: %v", ttl, err)
			}

			rdb.Set(ctx, "k", "v", ttl)
			time.Sleep(ttl + time.Millisecond)
			synctest.Wait()
			if n := keys(t, s); n != 0 {
				t.Errorf("%v: %d keys were not reaped 1 ms after their end", ttl, n)
			}
		}
	})
}

// keys counts the stored keys, dead ones included: DBSIZE does not look at deadlines.
func keys(t *testing.T, s *server.Server) int64 {
	t.Helper()
	c := dial(t, s)
	defer c.Close()
	c.send("DBSIZE")
	v, err := c.replies.Read()
	if err != nil {
		t.Fatal(err)
	}
	return v.Int
}

// The server reads the clock only when it wakes up: once for a command, and a few times for each of 100 expirations.
func TestAWeekOfSleepCostsNothing(t *testing.T) {
	var looks atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{Clock: func() int64 { looks.Add(1); return time.Now().UnixMicro() }})
		rdb := goredis(t, s)
		ctx := context.Background()
		for i := range 100 {
			rdb.Set(ctx, string(rune('a'+i)), "v", time.Duration(i+1)*time.Hour)
		}
		rdb.Set(ctx, "stays", "v", 0)
		sub := rdb.Subscribe(ctx, "c")
		defer sub.Close()
		if _, err := sub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * 24 * time.Hour)
		if n := keys(t, s); n != 1 {
			t.Errorf("%d keys are left", n)
		}
		if err := rdb.Get(ctx, "stays").Err(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%d looks at the clock", looks.Load())
	if n := looks.Load(); n > 1000 {
		t.Errorf("the clock was looked at %d times in a week", n)
	}
}

func TestANearerDeadlineSetsTheAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		c := dial(t, s)
		c.want("SET far v EX 3600", "OK")
		c.want("SET near v EX 1", "OK")
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		c.want("DBSIZE", "1")
		time.Sleep(time.Hour)
		synctest.Wait()
		c.want("DBSIZE", "0")
	})
}

// The clock in Options may run differently from the timers: CatchUp makes the server look at it.
func TestCatchUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offset := time.Duration(0)
		s := start(t, engine.Options{}, server.Options{Clock: func() int64 { return time.Now().Add(offset).UnixMicro() }})
		c := dial(t, s)
		c.want("SET k v PX 1000", "OK")
		c.want("SET l v PX 5000", "OK")
		s.Do(func(int64, *engine.Engine) { offset = time.Second + time.Millisecond })
		if err := s.CatchUp(t.Context()); err != nil {
			t.Error(err)
		}
		if n := keys(t, s); n != 1 {
			t.Errorf("%d keys, want l only", n)
		}
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if n := keys(t, s); n != 0 {
			t.Errorf("%d keys, want none", n)
		}
	})
}

// When CatchUp returns, listeners have handled the pushes, however long that took.
func TestCatchUpWaitsForListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		offset := time.Duration(0)
		s := start(t, engine.Options{}, server.Options{Clock: func() int64 { return time.Now().Add(offset).UnixMicro() }})
		c, listening, idle := dial(t, s), dial(t, s), dial(t, s)
		c.want("CONFIG SET notify-keyspace-events Ex", "OK")
		for _, l := range []*client{listening, idle} { // idle does not read
			l.send("SUBSCRIBE __keyevent@0__:expired")
			l.get()
		}
		heard := 0
		go func() {
			for {
				if _, err := listening.replies.Read(); err != nil {
					return
				}
				time.Sleep(time.Second)
				heard++
			}
		}()
		for i := range 3 {
			c.want("SET k v PX 1000", "OK")
			synctest.Wait()
			s.Do(func(int64, *engine.Engine) { offset += 2 * time.Second })
			if err := s.CatchUp(t.Context()); err != nil {
				t.Error(err)
			}
			if heard != i+1 {
				t.Errorf("%d of %d pushes were heard", heard, i+1)
			}
		}
		c.want("SET k v PX 1000", "OK")
		synctest.Wait()
		s.Do(func(int64, *engine.Engine) { offset += 2 * time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if err := s.CatchUp(ctx); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second) // handling it takes a while
	})
}

func TestDebugSleepStopsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		a, b := dial(t, s), dial(t, s)
		began := time.Now()
		a.send("SET k v PX 100", "DEBUG SLEEP 2.5", "PING")
		if got := a.get(); got != "OK" {
			t.Error(got)
		}
		synctest.Wait()
		b.send("PING")
		b.get()
		if d := time.Since(began); d != 2500*time.Millisecond {
			t.Errorf("another connection was served after %v", d)
		}
		if got := a.get() + a.get(); got != "OKPONG" {
			t.Error(got)
		}
		if d := time.Since(began); d != 2500*time.Millisecond {
			t.Errorf("the sleeper was served after %v", d)
		}
	})
}
