// Package late delivers requests long after their client gave up on them, as a network may: a segment that is transmitted again, a
// proxy that holds it back.
//
//	conns := late.New(srv.Dial)
//	opt.Dialer = conns.Dial
//	conns.Hold("set")      // the next request with a SET does not arrive, and its connection ends
//	...                    // the client repeats it on another connection, or does not
//	conns.Deliver(t)       // it arrives
package late

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Dial makes connections.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Conns makes connections on which requests can be held. A request is what the client writes at once.
type Conns struct {
	dial Dial

	mu   sync.Mutex // guards what follows
	hold string     // the command that is held next, in lower case
	held []request
}

type request struct {
	network, addr string
	bytes         []byte
}

// New returns Conns over connections of dial.
func New(dial Dial) *Conns { return &Conns{dial: dial} }

// Dial is for the client's options.
func (c *Conns) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	to, err := c.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: to, all: c, network: network, addr: addr}, nil
}

// Hold holds the next request that has this command.
func (c *Conns) Hold(command string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold = strings.ToLower(command)
}

// Held is how many requests are held.
func (c *Conns) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held)
}

// Deliver sends what is held, on new connections, and waits until the server has answered. It fails the test if nothing is.
func (c *Conns) Deliver(tb testing.TB) {
	tb.Helper()
	c.mu.Lock()
	held := c.held
	c.hold, c.held = "", nil
	c.mu.Unlock()
	if len(held) == 0 {
		tb.Error("no request was held")
	}
	for _, r := range held {
		to, err := c.dial(context.Background(), r.network, r.addr)
		if err != nil {
			tb.Fatal(err)
		}
		defer to.Close()
		go to.Write(append(r.bytes, "*2\r\n$4\r\nECHO\r\n$9\r\nlate.done\r\n"...))
		var got []byte
		for some := make([]byte, 4096); !bytes.Contains(got, []byte("late.done")); {
			n, err := to.Read(some)
			if got = append(got, some[:n]...); err != nil {
				tb.Fatalf("%v after %q", err, got)
			}
		}
	}
}

// takes reports whether p is held.
func (c *Conns) takes(on *conn, p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hold == "" || !strings.Contains(strings.ToLower(string(p)), "\r\n"+c.hold+"\r\n") {
		return false
	}
	c.hold = ""
	c.held = append(c.held, request{on.network, on.addr, bytes.Clone(p)})
	return true
}

type conn struct {
	net.Conn
	all           *Conns
	network, addr string
}

func (c *conn) Write(p []byte) (int, error) {
	if c.all.takes(c, p) {
		c.Conn.Close()
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil { // the client's own Close is another error, but it does not read then
		err = io.EOF
	}
	return n, err
}
