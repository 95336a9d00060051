package shop

import (
	"context"
	"fmt"
	"net"
	"sync"
	"syscall"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// line is the network between the shop and its Redis. It can be broken, so that any Redis can be killed and hung without harm to it.
type line struct {
	dial func(ctx context.Context, network, addr string) (net.Conn, error)

	mu     sync.Mutex // guards the fields below
	health panel.Health
	conns  map[*lineConn]struct{}
}

type lineConn struct {
	net.Conn
	line *line
	lost bool // something was not sent or not delivered, so the connection cannot continue. Guarded by line.mu
}

func newLine(dial func(ctx context.Context, network, addr string) (net.Conn, error)) *line {
	return &line{dial: dial, health: panel.Up, conns: make(map[*lineConn]struct{})}
}

// Dial is a Dialer for redis.Options.
func (l *line) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if l.is() == panel.Killed {
		return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("%w (the button was pressed)", syscall.ECONNREFUSED)}
	}
	nc, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c := &lineConn{Conn: nc, line: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return c, nil
}

func (l *line) is() panel.Health {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}

// set breaks or mends the line. It cuts connections that cannot continue.
func (l *line) set(h panel.Health) {
	var cut []net.Conn
	l.mu.Lock()
	l.health = h
	for c := range l.conns {
		if h == panel.Killed || h == panel.Up && c.lost {
			cut = append(cut, c.Conn)
			delete(l.conns, c)
		}
	}
	l.mu.Unlock()
	for _, c := range cut {
		c.Close()
	}
}

// loses reports whether bytes are lost now, and remembers that they were.
func (c *lineConn) loses() bool {
	c.line.mu.Lock()
	defer c.line.mu.Unlock()
	c.lost = c.lost || c.line.health == panel.Hung
	return c.line.health == panel.Hung
}

func (c *lineConn) Write(b []byte) (int, error) {
	if c.loses() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *lineConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if n == 0 || !c.loses() {
			return n, err
		}
	}
}

func (c *lineConn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c)
	c.line.mu.Unlock()
	return c.Conn.Close()
}
