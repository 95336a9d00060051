package server_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

const endless = `EVAL "while true do end" 0`

func TestAnEndlessScriptIsKilled(t *testing.T) {
	test := func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		runs, c := dial(t, s), dial(t, s)
		c.want("CONFIG SET busy-reply-threshold 30", "OK")
		began := time.Now()
		runs.send("PING", endless, "ECHO after")
		if got := runs.get(); got != "PONG" {
			t.Error(got)
		}
		for {
			c.send("GET k") // waits until the script is slow, and then is refused
			if got := c.get(); strings.HasPrefix(got, "-BUSY ") {
				break
			} else if got != "null" { // it came before the script
				t.Fatal(got)
			}
		}
		if d := time.Since(began); d < 30*time.Millisecond {
			t.Errorf("BUSY after %v", d)
		}
		c.want("SCRIPT KILL", "OK")
		if got := runs.get(); !strings.HasPrefix(got, "-ERR Error running script") && !strings.Contains(got, "killed") {
			t.Errorf("the script's reply is %q", got)
		}
		if got := runs.get(); got != "after" {
			t.Error(got)
		}
		c.want("GET k", "null")
	}
	t.Run("real time", test)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, test) })
}

// A running script does not see keys vanish, and nobody sees its work half done, whether or not other clients get BUSY meanwhile.
func TestALongScriptIsAtomic(t *testing.T) {
	for _, threshold := range []string{"0", "1"} {
		s := start(t, engine.Options{}, server.Options{})
		runs, c := dial(t, s), dial(t, s)
		c.want("CONFIG SET busy-reply-threshold "+threshold, "OK") // 0: never BUSY
		runs.send(`EVAL "redis.call('SET', 'k', 'v', 'PX', 5) redis.call('SET', 'a', 1) for i = 1, 1000000 do end redis.call('SET', 'b', 1) return redis.call('EXISTS', 'k')" 0`)
		for {
			c.send("MGET a b")
			got := c.get()
			if got == "*1 1" {
				break
			}
			if got != "*null null" && (threshold == "0" || !strings.HasPrefix(got, "-BUSY")) {
				t.Fatalf("threshold %s: got %q", threshold, got)
			}
		}
		if got := runs.get(); got != "1" {
			t.Errorf("threshold %s: the key vanished under the script: %q", threshold, got)
		}
		c.want("EXISTS k", "0")
	}
}

func TestCloseEndsAnEndlessScript(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	c.send("PING", endless)
	c.get()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
}

func TestARestartEndsAnEndlessScript(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	c.send("PING", endless)
	c.get()
	s.Restart(engine.New(engine.Options{}))
	dial(t, s).want("PING", "PONG")
	c.ended()
}
