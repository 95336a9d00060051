package server_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

func TestABlockedCommandIsServedAndThePipelineGoesOn(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		waits, c := newClient(t, dial()), newClient(t, dial())
		// All in one piece, so that the commands after BLPOP have arrived when it blocks.
		waits.send("CLIENT ID", "BLPOP l 0", "ECHO a", "BLPOP l 0", "ECHO b")
		id := waits.get()
		for i, echo := range []string{"a", "b"} {
			awaitBlocked(t, c, id)
			c.send(fmt.Sprintf("RPUSH l %d", i))
			c.get()
			if got, want := waits.get(), fmt.Sprintf("*l %d", i); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := waits.get(); got != echo {
				t.Errorf("got %q, want %q", got, echo)
			}
		}
		// Now commands that arrive while it waits.
		waits.send("BLPOP l 0")
		awaitBlocked(t, c, id)
		waits.send("ECHO later", "PING")
		c.send("RPUSH l x")
		c.get()
		if got := waits.get() + waits.get() + waits.get(); got != "*l xlaterPONG" {
			t.Errorf("got %q", got)
		}
	})
}

// awaitBlocked returns when the client of this id is blocked: CLIENT LIST shows a flag b.
func awaitBlocked(t *testing.T, c *client, id string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		c.send("CLIENT LIST ID " + id)
		if strings.Contains(c.get(), " flags=b ") {
			return
		}
	}
	t.Fatal("the client did not block")
}

func TestABlockedClientThatLeavesTakesNothing(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		waits, c := newClient(t, dial()), newClient(t, dial())
		waits.send("CLIENT ID", "BLPOP l 0")
		id := waits.get()
		awaitBlocked(t, c, id)
		waits.Close()
		deadline := time.Now().Add(time.Minute)
		for c.send("CLIENT LIST ID " + id); c.get() != ""; c.send("CLIENT LIST ID " + id) {
			if time.Now().After(deadline) {
				t.Fatal("nobody noticed that the client left")
			}
		}
		c.want("RPUSH l x", "1")
		c.want("LPOP l", "x")
	})
}

func TestABlockedClientTimesOutToTheMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		c := dial(t, s)
		began := time.Now()
		c.send("BLPOP l 1.5", "PING")
		if got := c.get(); got != "null" {
			t.Error(got)
		}
		if d := time.Since(began); d < 1500*time.Millisecond || d > 1501*time.Millisecond {
			t.Errorf("after %v", d)
		}
		if got := c.get(); got != "PONG" {
			t.Error(got)
		}
	})
}

func TestCloseEndsBlockedClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		c := dial(t, s)
		c.send("BLPOP l 0")
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := c.ended(); got != "" {
			t.Error(got)
		}
	})
}
