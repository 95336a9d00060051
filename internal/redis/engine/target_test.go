package engine

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/expect"
	"github.com/mayflycache/mayfly/internal/testkit/realredis"
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
	conns map[string]*realConn
	other *realredis.Server // a replica; nil: not needed yet
}

type realConn struct {
	net.Conn
	*resp.Reader
}

// realServer starts the Redis to compare with.
func realServer(t *testing.T) string {
	return realredis.Start(t, realredis.Options{Config: []string{"enable-debug-command yes"}}).Addr()
}

// newRealTarget returns the server at addr in its initial state, except for its statistics.
func newRealTarget(t *testing.T, addr string) *realTarget {
	r := &realTarget{t: t, addr: addr, conns: map[string]*realConn{}}
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

func (r *realTarget) conn(who string) *realConn {
	if r.conns[who] == nil {
		c, err := net.Dial("tcp", r.addr)
		if err != nil {
			r.t.Fatal(err)
		}
		r.conns[who] = &realConn{c, resp.NewReader(c)}
	}
	return r.conns[who]
}

func (r *realTarget) do(who string, args ...string) string {
	c := r.conn(who)
	if err := c.send(args); err != nil {
		r.t.Fatal(err)
	}
	for {
		v, err := c.Read()
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

// send sends a command, and gives the reply some time to arrive.
func (c *realConn) send(args []string) error {
	w := bufio.NewWriter(c)
	fmt.Fprintf(w, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(a), a)
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
	return w.Flush()
}

func (c *realConn) Read() (resp.Value, error) { return c.Reader.Read() }

func (r *realTarget) take(who string) string {
	c := r.conn(who)
	var out []string
	for {
		c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		v, err := c.Read()
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
	if err := c.send([]string{"SYNC"}); err != nil {
		r.t.Fatal(err)
	}
	var head string
	for b := []byte{0}; !strings.HasSuffix(head, "\r\n"); {
		if _, err := c.Conn.Read(b); err != nil {
			r.t.Fatal(err)
		}
		head = strings.TrimLeft(head+string(b), "\n")
	}
	n, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(head, "$")))
	if err != nil {
		r.t.Fatalf("SYNC: %q", head)
	}
	if _, err := io.CopyN(io.Discard, c.Conn, int64(n)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *realTarget) stream() (string, int64) {
	now, c := time.Now(), r.conn("feed")
	c.SetReadDeadline(now.Add(300 * time.Millisecond))
	return propagated(c.Read), now.UnixMilli()
}

func (r *realTarget) replica(args ...string) string {
	host, port, _ := net.SplitHostPort(r.addr)
	if r.other == nil {
		r.other = replicaServer(r.t)
		r.do("", "CONFIG", "SET", "repl-diskless-sync-delay", "0")
		r.conns["R"] = nil
		at := &realTarget{t: r.t, addr: r.other.Addr(), conns: map[string]*realConn{}}
		if reply := at.do("", "REPLICAOF", host, port); reply != "+OK" {
			r.t.Fatal(reply)
		}
		expect.Eventually(r.t, "the replica is in step", func() bool {
			return strings.Contains(at.do("", "INFO", "replication"), "master_link_status:up")
		})
		r.conns["R"] = at.conn("")
	}
	return r.do("R", args...)
}

// replicaServer is a Redis for use as a replica, one for each test.
func replicaServer(t *testing.T) *realredis.Server {
	return realredis.Start(t, realredis.Options{Config: []string{"enable-debug-command yes"}})
}
