package engine

import (
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/testkit/realserver"
	"github.com/mayflycache/mayfly/internal/testkit/wire"
)

// target plays rules: a stage, or a real Redis.
type target interface {
	name() string
	do(who string, args ...string) string // runs a command on a connection and returns the reply
	take(who string) string               // what was pushed to a connection
	sleep(ms int)
	close()

	attach()                          // attaches a replica, which only stream needs
	stream() (said string, now int64) // what was propagated to it since then, and unix ms
	replica(args ...string) string    // a command at a replica that is up to date
}

// realTarget is a real server over TCP.
type realTarget struct {
	t     *testing.T
	addr  string
	conns map[string]*wire.Conn
	other *realserver.Server // a replica; nil: not needed yet
}

// realServer starts the Redis to compare with.
func realServer(t *testing.T) string {
	return realserver.Start(t, realserver.Options{Config: []string{"enable-debug-command yes"}}).Addr()
}

// newRealTarget returns the server at addr in its initial state, except for its statistics.
func newRealTarget(t *testing.T, addr string) *realTarget {
	r := &realTarget{t: t, addr: addr, conns: map[string]*wire.Conn{}}
	for _, line := range []string{
		"FLUSHALL", "SCRIPT FLUSH", "DEBUG SET-ACTIVE-EXPIRE 1", `CONFIG SET notify-keyspace-events "" maxmemory 0 maxmemory-policy noeviction lazyfree-lazy-expire no`,
	} {
		if reply := r.do("", words(line)...); reply != "+OK" {
			t.Fatalf("%s: %s", line, reply)
		}
	}
	return r
}

func (r *realTarget) name() string { return "Redis" }

func (r *realTarget) conn(who string) *wire.Conn {
	if r.conns[who] == nil {
		c, err := wire.Dial(r.t.Context(), r.addr, time.Minute)
		if err != nil {
			r.t.Fatal(err)
		}
		r.conns[who] = c
	}
	return r.conns[who]
}

func (r *realTarget) do(who string, args ...string) string {
	c := r.conn(who)
	c.Add(args...)
	if err := c.Flush(); err != nil {
		r.t.Fatal(err)
	}
	for {
		v, err := c.Reply()
		if err == io.EOF {
			return ""
		}
		if err != nil {
			r.t.Fatalf("%q: %v", args, err)
		}
		if v.Kind != '>' { // pushes in between are dropped: rules take theirs first
			return notation(v)
		}
	}
}

func (r *realTarget) take(who string) string {
	c := r.conn(who)
	var out []string
	for {
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		v, err := c.Reply()
		if err != nil {
			return strings.Join(out, " ")
		}
		out = append(out, notation(v))
	}
}

// sleep is a rule's @sleep: a real server's clock can only be waited for.
func (r *realTarget) sleep(ms int) { <-time.After(time.Duration(ms) * time.Millisecond) }

func (r *realTarget) close() {
	for _, c := range r.conns {
		c.Close()
	}
	if r.other != nil {
		r.other.Stop()
	}
}

func (r *realTarget) attach() {
	if reply := r.do("", "CONFIG", "SET", "repl-diskless-sync-delay", "0"); reply != "+OK" {
		r.t.Fatal(reply)
	}
	c := r.conn("feed")
	c.Add("SYNC")
	if err := c.Flush(); err != nil {
		r.t.Fatal(err)
	}
	var head string
	for b := []byte{0}; !strings.HasSuffix(head, "\r\n"); {
		if _, err := c.Read(b); err != nil {
			r.t.Fatal(err)
		}
		head = strings.TrimLeft(head+string(b), "\n")
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil {
		r.t.Fatalf("SYNC: %q", head)
	}
	if _, err := io.CopyN(io.Discard, c, int64(n)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *realTarget) stream() (string, int64) {
	now, c := time.Now(), r.conn("feed")
	c.SetReadDeadline(now.Add(300 * time.Millisecond))
	return propagated(c.Reply), now.UnixMilli()
}

func (r *realTarget) replica(args ...string) string {
	host, port, _ := net.SplitHostPort(r.addr)
	if r.other == nil {
		r.other = replicaServer(r.t)
		r.do("", "CONFIG", "SET", "repl-diskless-sync-delay", "0")
		r.conns["R"] = nil
		at := &realTarget{t: r.t, addr: r.other.Addr(), conns: map[string]*wire.Conn{}}
		if reply := at.do("", "REPLICAOF", host, port); reply != "+OK" {
			r.t.Fatal(reply)
		}
		r.other.Await("master_link_status:up", "INFO", "replication")
		r.conns["R"] = at.conn("")
	}
	return r.do("R", args...)
}

// replicaServer is a Redis for use as a replica, one for each test.
func replicaServer(t *testing.T) *realserver.Server {
	return realserver.Start(t, realserver.Options{Config: []string{"enable-debug-command yes"}})
}
