// Package server connects clients to an engine: it reads commands, runs them one at a time under one lock, and writes the replies. It does
// not know what commands mean.
//
//	s, err := server.New(engine.New(engine.Options{}), server.Options{})
//	go s.Serve(listener)                               // TCP, unix, anything
//	rdb := redis.NewClient(&redis.Options{Dialer: s.Dial}) // or in memory
//	defer s.Close(ctx)
//
// A connection has one goroutine. It reads, takes the lock, runs every complete command that has arrived, releases the lock, and writes: a
// pipeline costs one read and one write. A slow reader never holds up the lock. For a client that sends without reading, replies are
// buffered, as in Redis: a second goroutine writes what the connection does not accept at once, and ends when it is done. Output caused
// by other connections (pushes, the end of a wait) is written by the goroutine that caused it, or by that second goroutine.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// Options set up a Server. The zero value serves like a Redis without configuration.
type Options struct {
	// Clock returns the time in unix microseconds; it is read once for every command. Nil is the wall clock. Call [Server.CatchUp] after
	// moving it.
	Clock func() int64

	MaxClients int // connections at a time; 0 means 10000

	// Broadcast, if the engine is a node of a cluster, passes a message to every other node by calling their Receive. It is called for one
	// message at a time.
	Broadcast func(engine.Message)

	// Keeper, if set, makes writes durable. Replies wait for it.
	Keeper Keeper

	// Subscribers limits what is buffered for a subscriber that does not read. The zero value is Redis's 32mb 8mb 60.
	Subscribers Limit

	// Replicas limits what is buffered for a replica that does not read. The zero value is Redis's 256mb 64mb 60.
	Replicas Limit
}

// A Keeper makes recorded writes durable. Its positions count what was recorded.
type Keeper interface {
	Position() int64            // after everything recorded; called while no command runs
	Safe(position int64) bool   // a reply about writes up to position need not wait
	Await(position int64) error // waits until that is so; an error says that it never will be
}

// A Limit says when a connection that does not read is cut: when more than Hard bytes are queued for it, or more than Soft for longer than
// For.
type Limit struct {
	Hard, Soft int
	For        time.Duration
}

func (o *Options) validate() error {
	if o.Clock == nil {
		o.Clock = func() int64 { return time.Now().UnixMicro() }
	}
	o.MaxClients = cmp.Or(o.MaxClients, 10_000)
	o.Subscribers = cmp.Or(o.Subscribers, Limit{Hard: 32 << 20, Soft: 8 << 20, For: time.Minute})
	o.Replicas = cmp.Or(o.Replicas, Limit{Hard: 256 << 20, Soft: 64 << 20, For: time.Minute})
	switch {
	case o.MaxClients < 0:
		return fmt.Errorf("server: Options.MaxClients must be at least 1, got %d", o.MaxClients)
	case o.Replicas.Hard <= 0 || o.Replicas.Soft <= 0 || o.Replicas.For < 0:
		return fmt.Errorf("server: Options.Replicas must be positive, got %+v", o.Replicas)
	case o.Subscribers.Hard <= 0 || o.Subscribers.Soft <= 0 || o.Subscribers.For < 0:
		return fmt.Errorf("server: Options.Subscribers must be positive, got %+v", o.Subscribers)
	}
	return nil
}

// Server serves one engine. Its methods are safe for concurrent use.
type Server struct {
	options Options
	faults  atomic.Pointer[Faults]
	dialed  atomic.Int64
	bus     sync.Mutex     // held to broadcast; never taken while any server's mu is held
	work    sync.WaitGroup // every goroutine of the server; grows only while mu is held and closed is false

	mu        sync.Mutex // guards the engine and the fields below
	engine    *engine.Engine
	conns     map[*engine.Session]*conn
	listeners map[net.Listener]struct{}
	closed    bool
	alarm     alarm
	ticked    time.Duration // spent in the engine's ticks
	frozenBy  freezeReason
	thawed    chan struct{} // closed when the server is no longer frozen
	told      int64         // the keeper's position when the lock was last released
	stall     int64         // when DEBUG SLEEP ends, in unix microseconds; 0: it is not running

	outgoing, incoming []engine.Message // to and from the other nodes of a cluster
}

// New returns a server of e, which belongs to the server from now on. Connections come by Serve, ServeConn or Dial.
func New(e *engine.Engine, o Options) (*Server, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Server{
		options:   o,
		engine:    e,
		conns:     make(map[*engine.Session]*conn),
		listeners: make(map[net.Listener]struct{}),
	}, nil
}

// Serve accepts connections from l until the server or l is closed, and closes l. It returns nil if the server was closed.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.begin(func() {
		s.listeners[l] = struct{}{}
		if tcp, ok := l.Addr().(*net.TCPAddr); ok {
			s.engine.Listening(tcp.Port)
		}
	}) {
		return nil
	}
	defer s.work.Done()
	defer s.locked(func() { delete(s.listeners, l) })
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			s.ServeConn(nc)
		case errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE):
			// Out of file descriptors: wait for other connections to end, as net/http does.
			time.Sleep(5 * time.Millisecond)
		default:
			if s.isClosed() {
				return nil
			}
			return fmt.Errorf("server: accept: %w", err)
		}
	}
}

// ServeConn serves nc, and closes it at the end. It does not wait.
func (s *Server) ServeConn(nc net.Conn) {
	c := newConn(s, nc)
	if s.refuses() || !s.begin(c.open) {
		reset(nc)
		return
	}
	go func() {
		defer s.work.Done()
		c.serve()
	}()
}

// Dial returns the client's end of a new in-memory connection. It ignores network and address: it is a Dialer for redis.Options.
func (s *Server) Dial(_ context.Context, _, _ string) (net.Conn, error) {
	client, server := Pipe(s.dialed.Add(1))
	if s.isClosed() || s.refuses() {
		return nil, &net.OpError{Op: "dial", Net: pipeNetwork, Addr: client.RemoteAddr(), Err: syscall.ECONNREFUSED}
	}
	s.ServeConn(server)
	return client, nil
}

// Do calls f with the engine and the clock's time while no command runs, and then delivers what resulted: pushes and the ends of waits.
func (s *Server) Do(f func(now int64, e *engine.Engine)) {
	s.mu.Lock()
	f(s.options.Clock(), s.engine)
	s.unlock()
}

// Figures returns the engine's figures, and the time spent so far in its Tick: removing expired keys and ending waits.
func (s *Server) Figures() (f engine.Figures, ticked time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Figures(s.options.Clock()), s.ticked
}

// CatchUp does what is due at the clock's time: it reaps expired keys and fields, and ends waits. Call it after moving the clock. When it
// returns nil, in-memory peers that were waiting in Read have read the resulting pushes, and subscribers among them are reading again. If ctx
// ends first, its error is returned. For connections through the kernel this cannot be known.
func (s *Server) CatchUp(ctx context.Context) error {
	// The peers that were waiting in Read when a push came, and whether they are subscribers, which always read again.
	listeners := make(map[*stream]bool)
	for more := true; more; {
		s.mu.Lock()
		more = s.tick()
		others := s.collect(nil)
		for _, c := range others {
			if p, ok := c.nc.(*pipe); ok && p.out.listened() {
				listeners[p.out] = c.session.Subscribed()
			}
		}
		s.alarm.stop(s) // it was set for the old time
		s.alarm.arm(s)
		s.mu.Unlock()
		deliver(others)
	}
	for peer, readsOn := range listeners {
		if err := peer.awaitReader(ctx, readsOn); err != nil {
			return err
		}
	}
	return nil
}

// Restart cuts every connection and continues with another engine.
func (s *Server) Restart(e *engine.Engine) {
	s.mu.Lock()
	s.cutAll()
	s.engine, s.stall = e, 0
	s.thaw(asleep | scripted)
	s.unlock()
}

// Close stops the server: it accepts no more connections, runs the commands that have arrived, writes their replies, and closes the
// connections. If ctx ends first, they are cut. Close returns when every goroutine of the server has ended; the error is ctx's if connections
// had to be cut. Closing twice is fine.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for l := range s.listeners {
		l.Close()
	}
	for _, c := range s.conns {
		c.wake(true)
	}
	s.alarm.stop(s)
	if s.frozenBy&(hung|asleep) != 0 { // no more commands will run
		s.cutAll()
	}
	s.mu.Unlock()

	ended := make(chan struct{})
	go func() {
		s.work.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		s.locked(s.cutAll)
		<-ended
		return ctx.Err()
	}
}

// begin counts a goroutine that will call work.Done, and calls f under the lock; it reports false if the server is closed.
func (s *Server) begin(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Add(1)
	f()
	return true
}

func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *Server) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// cutAll cuts every connection; s.mu is held.
func (s *Server) cutAll() {
	for _, c := range s.conns {
		c.cut()
	}
}

// unlock releases the lock after the engine was used, arms the alarm, and delivers the output of other sessions. If a write cannot be kept,
// it reports false, and cuts those sessions instead: none of them may be told that it was done.
func (s *Server) unlock() (kept bool) {
	var room [8]*conn
	others := s.collect(room[:0])
	s.alarm.arm(s)
	var published []engine.Message
	if s.options.Broadcast != nil {
		others = append(others, s.receive()...) // messages that came while the server was frozen
		published = s.engine.Broadcasts()
		s.outgoing = append(s.outgoing, published...)
	}
	position, moved := s.position()
	s.mu.Unlock()
	if k := s.options.Keeper; k != nil && k.Await(position) != nil && moved {
		for _, c := range others {
			c.cut()
		}
		return false
	}
	deliver(others)
	if len(published) > 0 { // other goroutines hand out their own
		s.broadcast()
	}
	return true
}

// position returns the keeper's position, and whether it has moved since the lock was last released; s.mu is held.
func (s *Server) position() (at int64, moved bool) {
	if s.options.Keeper == nil {
		return 0, false
	}
	at = s.options.Keeper.Position()
	moved = at != s.told
	s.told = at
	return at, moved
}

// collect takes the output of sessions other than the caller's, and appends their connections to others.
func (s *Server) collect(others []*conn) []*conn {
	for _, session := range s.engine.Dirty() {
		c := s.conns[session]
		if c == nil {
			continue
		}
		c.post()
		if c.unread && !session.Waiting() {
			c.unread = false
			c.wake(false)
		}
		others = append(others, c)
	}
	return others
}

// deliver flushes the connections from collect; it does not wait for their peers.
func deliver(conns []*conn) {
	for _, c := range conns {
		c.flush()
	}
}
