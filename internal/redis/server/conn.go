package server

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/resp"
)

const (
	turnCommands = 1024    // run at most before other connections get the lock
	turnOutput   = 1 << 20 // bytes of replies at most before they are written
	maxInput     = 1 << 30 // bytes of input at most that wait to be run: Redis's client-query-buffer-limit
)

// conn is one connection. Its goroutine reads, runs and writes; other goroutines may only post, flush, wake and cut it.
type conn struct {
	server *Server
	nc     net.Conn
	in     resp.Parser // used only by the connection's goroutine

	engine  *engine.Engine // the session's engine for the connection's whole life, even after Restart
	session *engine.Session
	denied  string // why there is no session
	unread  bool   // guarded by server.mu: the session waits, and has commands to run afterwards

	gone chan struct{} // closed when the connection is cut
	once sync.Once

	outbox
	woken   bool // guarded by outbox.mu: interrupted while reading
	leaving bool // guarded by outbox.mu: the server is closing
	ending  bool // used only by the connection's goroutine: nothing more will be read
}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{server: s, nc: nc, gone: make(chan struct{})}
	c.try = tryWriter(nc)
	c.done = sync.NewCond(&c.mu)
	return c
}

// open opens the session, unless there are too many or the peer is not allowed in; server.mu is held.
func (c *conn) open() {
	s := c.server
	switch {
	case len(s.conns) >= s.options.MaxClients:
		c.denied = "ERR max number of clients reached"
		s.engine.Rejected()
		return
	case s.engine.Protected() && fromElsewhere(c.nc):
		c.denied = protectedMode
		s.engine.Rejected()
		return
	}
	c.engine = s.engine
	c.session = s.engine.NewSession(engine.SessionOptions{
		Addr:      c.nc.RemoteAddr().String(),
		LocalAddr: c.nc.LocalAddr().String(),
		Now:       s.options.Clock(),
	})
	s.conns[c.session] = c
}

// serve is the connection's goroutine. It returns when the connection is closed and no goroutine writes to it any more.
func (c *conn) serve() {
	if c.session == nil {
		c.nc.Write([]byte("-" + c.denied + "\r\n"))
		c.nc.Close()
		return
	}
	for !c.ending && c.read() {
		for c.turn() == again {
		}
	}
	c.server.mu.Lock()
	c.engine.Drop(c.session)
	c.server.unlock()
	c.finish() // the peer may have stopped sending and still read
	c.server.locked(func() { delete(c.server.conns, c.session) })
	c.cut()
}

// read waits for more input, or to be woken. It reports false when the connection has ended.
func (c *conn) read() bool {
	n, err := c.in.Fill(c.nc)
	if n > 0 || err == nil {
		return c.in.Buffered() <= maxInput
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	woken := c.woken
	c.woken, c.ending = false, c.leaving
	c.nc.SetReadDeadline(time.Time{})
	return woken
}

// wake interrupts the connection's goroutine while it reads: to run what arrived while the session waited, or to leave.
func (c *conn) wake(leave bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.woken, c.leaving = true, c.leaving || leave
	c.nc.SetReadDeadline(time.Unix(1, 0))
}

// cut closes the connection at once.
func (c *conn) cut() {
	c.once.Do(func() {
		close(c.gone)
		c.nc.Close()
	})
}

func (c *conn) isCut() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// turn is one turn of the connection at the engine: it runs the commands that have arrived, and writes their replies.
func (c *conn) turn() next {
	then := over
	if c.server.enter(c) {
		c.session.Out.Reuse(c.spare())
		if c.session.Syncing() {
			c.engine.SyncPiece(c.session)
			then = again
		} else {
			then = c.run()
		}
		c.post()
	}
	syncing := c.session.Syncing()
	if !c.leaveEngine() {
		then = over
	} else if syncing && !c.awaitRoom() {
		then = over
	}
	c.ending = c.ending || then == over
	return then
}

// leaveEngine releases the server's lock and writes what was posted. If the writes cannot be kept, it cuts the connection, which must not be
// told that they were done, and reports false.
func (c *conn) leaveEngine() bool {
	if !c.server.unlock() {
		c.cut()
		return false
	}
	c.flush()
	return true
}

// next says what follows a turn.
type next uint8

const (
	wait  next = iota // for more input
	again             // there may be more to run
	over              // close, once everything is written
)

// run runs commands until no complete one is left in the input, the session waits, or it is another connection's turn.
func (c *conn) run() next {
	c.in.MaxBulk = c.engine.MaxBulk()
	for range turnCommands {
		if c.session.Waiting() {
			c.unread = c.in.Buffered() > 0 || c.session.Held()
			return wait
		}
		c.in.Unauthenticated = c.session.Anonymous()
		args, err := c.session.Resumed(), error(nil)
		if args == nil {
			args, err = c.in.Next()
		}
		if err != nil {
			c.session.Out.Error("ERR " + err.Error())
			return over
		}
		if args == nil {
			return wait
		}
		outcome, ok := c.do(args)
		switch {
		case !ok || outcome == engine.Close:
			return over
		case outcome == engine.Stalled && !c.server.sleep(c):
			return over
		}
		if c.session.Out.Len() > turnOutput || c.session.Syncing() {
			break
		}
	}
	return again
}

// do runs one command until it is done. It reports false if the connection ends before that.
func (c *conn) do(args [][]byte) (outcome engine.Outcome, ok bool) {
	if f := c.server.faults.Load(); f != nil {
		return f.do(c, args)
	}
	return c.runCommand(args)
}

func (c *conn) runCommand(args [][]byte) (outcome engine.Outcome, ok bool) {
	outcome = c.engine.Do(c.server.options.Clock(), c.session, args)
	if outcome == engine.Yielded {
		return c.server.script(c)
	}
	return outcome, true
}

// reset closes a connection that has no goroutine, so that the peer's next read fails.
func reset(nc net.Conn) {
	if tcp, ok := nc.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	nc.Close()
}
