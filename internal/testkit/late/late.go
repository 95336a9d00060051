// Package late delivers requests long after their client gave up on them, as a network may: a segment that is transmitted again, a
// proxy that holds it back.
//
//	conns, rdb := late.Client(t, srv)
//	conns.Hold("set")      // the next request with a SET does not arrive, and its connection ends
//	...                    // the client repeats it on another connection, or does not
//	conns.Deliver(t)       // it arrives
package late

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/redistest"
)

// Dial makes connections.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Conns makes connections on which requests can be held. A request is what the client writes in one call.
type Conns struct {
	dial Dial

	mu   sync.Mutex // guards the fields below
	hold string     // the command to hold next, in lower case
	held []request
}

type request struct {
	network, addr string
	bytes         []byte
}

// New returns Conns over connections of dial.
func New(dial Dial) *Conns { return &Conns{dial: dial} }

// Client returns a client of srv over connections of its own.
func Client(tb testing.TB, srv *redistest.Server) (*Conns, *redis.Client) {
	c, o := New(srv.Dial), srv.Options()
	o.Dialer = c.Dial
	rdb := redis.NewClient(o)
	tb.Cleanup(func() { rdb.Close() })
	return c, rdb
}

// Dial is a dialer for the client's options.
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

// Held returns the number of held requests.
func (c *Conns) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.held)
}

// Deliver sends the held requests on new connections, and waits until the server has answered. It fails the test if none is held.
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

// Check delivers the held requests. It fails the test if the call that sent them returned nil and they now change what the server holds, as
// dump shows it. A call whose request was held may return an error like want, and no other.
func (c *Conns) Check(tb testing.TB, dump func() string, got, want error) {
	tb.Helper()
	was := dump()
	c.Deliver(tb)
	if is := dump(); got == nil && is != was {
		tb.Errorf("a late copy made\n%q\nof\n%q", is, was)
	}
	if got != nil && !errors.Is(got, want) {
		tb.Errorf("its reply was lost: %v", got)
	}
}

// takes reports whether to hold p.
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
	if err != nil { // the client's own Close gives another error, but the client does not read then
		err = io.EOF
	}
	return n, err
}
