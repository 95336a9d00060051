// Package wire speaks to a Redis server in its own protocol: words there, a reply back. It is for tests that compare or arrange servers: without
// go-redis, which doubles what a test program costs to compile and link, and which would hide what exactly was said.
package wire

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
)

// A Conn is a connection to a server. It is for one goroutine.
type Conn struct {
	net.Conn
	in       *resp.Reader
	out      []byte // not sent yet
	patience time.Duration
}

// New returns a Conn over c. All replies to what is sent at once must arrive within patience.
func New(c net.Conn, patience time.Duration) *Conn {
	return &Conn{Conn: c, in: resp.NewReader(bufio.NewReaderSize(c, 1<<16)), patience: patience}
}

// Dial connects to the server at addr.
func Dial(ctx context.Context, addr string, patience time.Duration) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return New(c, patience), nil
}

// Add appends a command to those that Flush sends.
func (c *Conn) Add(words ...string) {
	c.out = fmt.Appendf(c.out, "*%d\r\n", len(words))
	for _, w := range words {
		c.out = fmt.Appendf(c.out, "$%d\r\n%s\r\n", len(w), w)
	}
}

// Flush sends the added commands.
func (c *Conn) Flush() error {
	c.SetDeadline(time.Now().Add(c.patience))
	_, err := c.Write(c.out)
	c.out = c.out[:0]
	return err
}

// Reply returns what the server says next: a reply, or what it pushes.
func (c *Conn) Reply() (resp.Value, error) { return c.in.Read() }

// Do sends a command and returns the reply; if that is an error, as err too.
func (c *Conn) Do(words ...string) (resp.Value, error) {
	c.Add(words...)
	if err := c.Flush(); err != nil {
		return resp.Value{}, err
	}
	v, err := c.Reply()
	if err == nil && v.Kind == '-' {
		err = errors.New(v.Text)
	}
	return v, err
}
