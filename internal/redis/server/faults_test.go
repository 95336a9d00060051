package server_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

func TestAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		c, left := dial(t, s), dial(t, s)
		c.want("SET k v PX 1000", "OK")
		s.Faults().Hang()
		began := time.Now()
		time.AfterFunc(time.Hour, s.Faults().Thaw)
		left.send("SET left behind")
		left.Close()
		dial(t, s) // is accepted
		c.send("GET k")
		if got := c.get(); got != "null" || time.Since(began) != time.Hour {
			t.Errorf("GET k: %q after %v", got, time.Since(began))
		}
		synctest.Wait()
		c.want("GET left", "behind") // sent by a client that has left
	})
}

func TestNothingExpiresInAServerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		c := dial(t, s)
		c.want("CONFIG SET notify-keyspace-events Ex", "OK")
		c.want("SET k v PX 1000", "OK")
		c.send("SUBSCRIBE __keyevent@0__:expired")
		c.get()
		s.Faults().Hang()
		began := time.Now()
		time.AfterFunc(time.Hour, s.Faults().Thaw)
		if got := c.get(); got != "*message __keyevent@0__:expired k" || time.Since(began) != time.Hour {
			t.Errorf("%q after %v", got, time.Since(began))
		}
	})
}

func TestAHungServerCanBeClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		c := dial(t, s)
		s.Faults().Hang()
		c.send("PING")
		synctest.Wait()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if got := c.ended(); got != "" {
			t.Error(got)
		}
	})
}

func TestAServerThatRefuses(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	addr := listen(t, s, "tcp")
	old := dial(t, s)
	s.Faults().Refuse(true)
	if _, err := s.Dial(t.Context(), "", ""); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("in memory: %v", err)
	}
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		defer conn.Close()
		if _, err = conn.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("TCP: %v", err)
		}
	}
	old.want("PING", "PONG")
	s.Faults().Refuse(false)
	dial(t, s).want("PING", "PONG")
}

func TestLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, engine.Options{}, server.Options{})
		a, b := dial(t, s), dial(t, s)
		s.Faults().Latency(10 * time.Millisecond)
		began := time.Now()
		a.send("PING", "PING", "PING")
		b.send("PING")
		for i, want := range []time.Duration{10, 20, 30} {
			a.get()
			if d := time.Since(began); d != want*time.Millisecond {
				t.Errorf("reply %d after %v", i, d)
			}
		}
		b.get()
		if d := time.Since(began); d != 30*time.Millisecond {
			t.Errorf("another connection waited, too: %v", d)
		}
		s.Faults().Latency(0)
		a.want("PING", "PONG")
		if d := time.Since(began); d != 30*time.Millisecond {
			t.Errorf("latency stayed: %v", d)
		}
	})
}

func TestACommandThatFails(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	s.Faults().FailNext("get", "LOADING Redis is loading the dataset in memory")
	s.Faults().FailNext("config get", "ERR no")
	c.want("SET k v", "OK")
	c.want("GET k", "-LOADING Redis is loading the dataset in memory")
	c.want("GET k", "v")
	c.want("CONFIG GET hz", "-ERR no")
	c.want("CONFIG GET hz", "*hz 10")
	s.Faults().FailNext("", "ERR any")
	c.want("PING", "-ERR any")

	s.Faults().FailNext("set", "OOM command not allowed when used memory > 'maxmemory'.")
	c.want("MULTI", "OK")
	c.want("SET k w", "-OOM command not allowed when used memory > 'maxmemory'.")
	c.want("EXEC", "-EXECABORT Transaction discarded because of previous errors.")
	c.want("GET k", "v")

	s.Faults().FailNext("exec", "ERR lost")
	c.want("MULTI", "OK")
	c.want("SET k w", "QUEUED")
	c.want("EXEC", "-ERR lost")
	c.want("GET k", "v") // and not QUEUED
	c.want("EXEC", "-ERR EXEC without MULTI")
}

func TestEveryCommandFails(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	s.Faults().FailAll("ERR down")
	c.want("SET k v", "-ERR down")
	c.want("PING", "-ERR down")
	s.Faults().FailAll("")
	c.want("GET k", "null")
}

func TestAReplyThatIsLost(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	s.Faults().DropReply("INCR")
	c.send("PING", "INCR n", "INCR n")
	if got := c.ended(); got != "PONG" {
		t.Errorf("got %q", got)
	}
	dial(t, s).want("INCR n", "2")
}

func TestConnectionsThatAreKilled(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	a, b := dial(t, s), dial(t, s)
	a.want("PING", "PONG")
	s.Faults().KillConnections()
	if got := a.ended() + b.ended(); got != "" {
		t.Error(got)
	}
	dial(t, s).want("PING", "PONG")
}

func TestInvalidationsThatAreLost(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c, other := dial(t, s), dial(t, s)
	c.send("HELLO 3")
	c.get()
	c.want("CLIENT TRACKING ON", "OK")
	touch := func() {
		c.send("GET k")
		c.get()
		other.want("SET k v", "OK")
	}
	touch()
	if got := c.get(); got != ">invalidate *k" {
		t.Errorf("got %q", got)
	}
	s.Faults().DropInvalidations(true)
	touch()
	c.send("GET k", "SET k w", "ECHO done") // its own write invalidates its copy too
	if got := c.get() + c.get() + c.get(); got != "vOKdone" {
		t.Errorf("got %q", got)
	}
	s.Faults().DropInvalidations(false)
	touch()
	if got := c.get(); got != ">invalidate *k" {
		t.Errorf("got %q", got)
	}
}

func TestCommandsCanBeWatched(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	var seen []string
	s.Faults().Watch(func(_ int64, args [][]byte) { seen = append(seen, string(bytes.Join(args, []byte(" ")))) })
	c := dial(t, s)
	c.want("SET k v", "OK")
	c.want("FOO", "-ERR unknown command 'FOO', with args beginning with: ")
	s.Faults().Watch(nil)
	c.want("PING", "PONG")
	if got := strings.Join(seen, ","); got != "SET k v,FOO" {
		t.Error(got)
	}
}

func TestARestartLosesConnectionsAndData(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	c.want("SET k v", "OK")
	s.Restart(engine.New(engine.Options{}))
	if got := c.ended(); got != "" {
		t.Error(got)
	}
	dial(t, s).want("GET k", "null")
}
