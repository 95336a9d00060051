package redistest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

// inBubble runs f in a bubble with a server and a client that does not retry.
func inBubble(t *testing.T, f func(t *testing.T, srv *redistest.Server, rdb *redis.Client)) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Start(t)
		o := srv.Options()
		o.MaxRetries, o.DialerRetries = -1, 1
		rdb := redis.NewClient(o)
		defer rdb.Close()
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		f(t, srv, rdb)
	})
}

func TestHang(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *redistest.Server, rdb *redis.Client) {
		set(t, rdb, "k", 0)
		srv.Hang()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		if err := rdb.Get(ctx, "k").Err(); err == nil {
			t.Error("a server that hangs answered")
		}
		if d := time.Since(began); d != 100*time.Millisecond {
			t.Errorf("the client waited %v", d)
		}
		srv.Thaw()
		if err := rdb.Get(t.Context(), "k").Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestRefuseAndKillConnections(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *redistest.Server, rdb *redis.Client) {
		srv.Refuse(true)
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Errorf("an open connection: %v", err)
		}
		srv.KillConnections()
		synctest.Wait()
		for range 2 { // the pool's dead connection, then a new one
			if err := rdb.Ping(t.Context()).Err(); err == nil {
				t.Error("a server that refuses answered")
			}
		}
		srv.Refuse(false)
		if err := rdb.Ping(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestLatency(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *redistest.Server, rdb *redis.Client) {
		srv.Latency(30 * time.Millisecond)
		began := time.Now()
		rdb.Pipelined(t.Context(), func(p redis.Pipeliner) error {
			p.Ping(t.Context())
			p.Ping(t.Context())
			return nil
		})
		// A pipeline has its own connection, which begins with a greeting.
		if d := time.Since(began); d < 60*time.Millisecond || d%(30*time.Millisecond) != 0 {
			t.Errorf("two commands took %v", d)
		}
	})
}

func TestFailNextAndSetError(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *redistest.Server, rdb *redis.Client) {
		srv.FailNext("GET", "ERR not now")
		set(t, rdb, "k", 0)
		if err := rdb.Get(t.Context(), "k").Err(); err == nil || err.Error() != "ERR not now" {
			t.Errorf("the next: %v", err)
		}
		if err := rdb.Get(t.Context(), "k").Err(); err != nil {
			t.Errorf("the one after: %v", err)
		}
		srv.SetError("ERR never")
		for range 2 {
			if err := rdb.Get(t.Context(), "k").Err(); err == nil || err.Error() != "ERR never" {
				t.Error(err)
			}
		}
		srv.SetError("")
		if err := rdb.Get(t.Context(), "k").Err(); err != nil {
			t.Error(err)
		}
	})
}

func TestDropReply(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *redistest.Server, rdb *redis.Client) {
		srv.DropReply("incr")
		if err := rdb.Incr(t.Context(), "n").Err(); err == nil {
			t.Error("the reply arrived")
		}
		if n, err := rdb.Get(t.Context(), "n").Int(); err != nil || n != 1 {
			t.Errorf("the command did not run: %d, %v", n, err)
		}
	})
}

func TestDropInvalidations(t *testing.T) {
	inBubble(t, func(t *testing.T, srv *redistest.Server, rdb *redis.Client) {
		heard, stop := track(t, srv)
		defer stop()
		for _, drop := range []bool{true, false} {
			srv.DropInvalidations(drop)
			set(t, rdb, "user:1", 0)
			synctest.Wait()
			if got := len(heard); got != map[bool]int{true: 0, false: 1}[drop] {
				t.Errorf("dropping %v: %d messages", drop, got)
			}
		}
	})
}

func TestRestartLosesWhatMemoryHeld(t *testing.T) {
	srv := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
	defer rdb.Close()
	set(t, rdb, "k", 0)
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if n, err := rdb.Exists(t.Context(), "k").Result(); err != nil || n != 0 {
		t.Errorf("after a crash: %d, %v", n, err)
	}
}

func TestCloseThenRestartKeepsData(t *testing.T) {
	srv := redistest.Start(t)
	rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), MaxRetries: -1, DialerRetries: 1})
	defer rdb.Close()
	set(t, rdb, "k", 0)
	srv.Close()
	srv.Close()
	if err := rdb.Get(t.Context(), "k").Err(); err == nil || errors.Is(err, redis.Nil) {
		t.Errorf("closed: %v", err)
	}
	if err := rdb.Get(t.Context(), "k").Err(); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("closed, a new connection: %v", err)
	}
	if v, err := srv.Get("k"); v != "v" || err != nil {
		t.Errorf("closed, past the network: %q, %v", v, err)
	}
	if err := srv.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := rdb.Get(t.Context(), "k").Err(); err != nil {
		t.Errorf("open again: %v", err)
	}
	if err := srv.Start(); err == nil {
		t.Error("a server that runs was started")
	}
}
