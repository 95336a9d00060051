// Package redistest is a Redis 8.0 for tests, in the test's own process, in the spirit of net/http/httptest.
//
//	srv := redistest.Start(t)
//	rdb := srv.Client() // an in-memory *redis.Client; closed with the test
//
//	rdb.Set(ctx, "session", "s1", time.Hour)
//	srv.Advance(time.Hour + time.Millisecond)
//	rdb.Get(ctx, "session") // redis.Nil
//
// Data is reached through the protocol: every reply is Redis's, and a command that the double does not implement is answered with Redis's
// "ERR unknown command". There is no port until Addr is called.
//
// # Time
//
// The server's clock runs: it is time.Now, and in a testing/synctest bubble the bubble's time. In a bubble time.Sleep is all a test needs; a
// week of it costs milliseconds, since the server's only timer is the one for its next deadline. Elsewhere Advance moves the clock. A key can
// be read in the millisecond of its deadline, but not in the next.
//
// # Faults
//
// Hang, Refuse, Latency, FailNext, DropReply, DropInvalidations, KillConnections and Restart make the server misbehave, as servers and
// networks do. Log shows the commands that it received.
//
// # Clusters
//
// StartCluster starts several masters that divide the keys among them, as strictly as Redis does.
//
// Tests written for miniredis find its functions here under the same names: see docs/testing.md.
package redistest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// patience is how long Close and Advance wait for clients that do not read.
const patience = 5 * time.Second

// Options set up a Server. The zero value is a Redis without a password.
type Options struct {
	Password string // what clients must send with AUTH; empty: none

	// Hz, if not 0, removes expired keys in Redis's documented cycle, this many times a second, 1 to 500, where Redis's default is 10: removal
	// and announcement may then be late. 0 removes and announces each in the millisecond after its deadline. Either way an expired key cannot
	// be read. With Hz the server has a timer that runs while any key has a deadline.
	Hz int

	Seed uint64 // of every random choice (RANDOMKEY, SPOP, eviction ...); 0: different for every server
}

// Server is a running double. Its methods are safe for concurrent use.
type Server struct {
	data    // direct access to the selected database
	options Options
	tb      Tester       // nil: it runs outside of a test
	offset  atomic.Int64 // microseconds by which the clock is ahead of time.Now
	log     commandLog
	ports   sync.WaitGroup  // goroutines that accept connections
	cluster *Cluster        // nil: it is not a node of a cluster
	node    int             // its index in the cluster
	seeming *engine.Cluster // the cluster it pretends to be, as miniredis does; nil: it says that it is not one

	mu       sync.Mutex // guards what follows
	server   *server.Server
	engine   *engine.Engine
	running  bool
	addr     string // host:port, once there is one. It survives Close, for Restart.
	client   *redis.Client
	tls      *tls.Config // of the port; nil: plain TCP
	username string      // what Options gives with the password; empty: none
}

func newServer(t Tester, o Options) *Server {
	s := &Server{tb: t, options: o}
	s.srv = s
	return s
}

// Start starts a server. It stops when the test ends.
func Start(tb testing.TB, o ...Options) *Server {
	tb.Helper()
	if len(o) > 1 {
		tb.Fatalf("redistest: Start takes one Options at most, got %d", len(o))
	}
	return start(tb, append(o, Options{})[0])
}

func start(t Tester, o Options) *Server {
	return newServer(t, o).mustOpen()
}

func (s *Server) mustOpen() *Server {
	if err := s.open(); err != nil {
		s.tb.Fatalf("could not start redistest: %s", err)
	}
	s.tb.Cleanup(s.Close)
	return s
}

// open starts the server, without a port.
func (s *Server) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running {
		return errors.New("redistest: the server is already running: Close it first")
	}
	if s.engine == nil {
		e, err := s.newEngine()
		if err != nil {
			return err
		}
		s.engine = e
	}
	o := server.Options{Clock: func() int64 { return time.Now().UnixMicro() + s.offset.Load() }}
	if s.cluster != nil {
		o.Broadcast = func(m engine.Message) { s.cluster.broadcast(s, m) }
	}
	srv, err := server.New(s.engine, o)
	if err != nil {
		return err
	}
	srv.Faults().Watch(s.log.add)
	s.server, s.running = srv, true
	if s.cluster != nil {
		s.cluster.shared.SetDown(s.node, false)
	}
	return nil
}

func (s *Server) newEngine() (*engine.Engine, error) {
	o := engine.Options{Password: s.options.Password, Seed: s.options.Seed}
	switch hz := s.options.Hz; {
	case hz < 0 || hz > 500:
		return nil, fmt.Errorf("redistest: Options.Hz must be between 0 and 500, got %d", hz)
	case hz > 0:
		o.Cycle, o.Hz = engine.Documented, hz
	}
	if s.cluster != nil {
		o.Cluster = &engine.ClusterOptions{Cluster: s.cluster.shared, Node: s.node}
	}
	o.Seeming = s.seeming
	return engine.New(o), nil
}

// announce sets the address at which a cluster client is told to find this server.
func (s *Server) announce(addr string) {
	at := netip.MustParseAddrPort(addr)
	s.seeming.Announce(0, at.Addr().Unmap().String(), int(at.Port()))
}

// Client returns an in-memory client, the same at every call. It works in the synctest bubble in which the server was started, and is closed
// when the test ends. Make others, as if in other processes, with redis.NewClient(srv.Options()).
func (s *Server) Client() *redis.Client {
	o := s.Options()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == nil {
		c := redis.NewClient(o)
		s.client = c
		if s.tb != nil {
			s.tb.Cleanup(func() { c.Close() })
		}
	}
	return s.client
}

// Options returns options for an in-memory client of your own, with the server's password, context deadlines obeyed and small buffers. They
// leave out what makes connecting slow and is of no use in a test: the client's name and version, and maintenance notifications of Redis's
// cloud. A connection that fails is not tried again: go-redis would do that in a goroutine that outlives the client, and with it the test's bubble.
func (s *Server) Options() *redis.Options {
	return s.clientOptions(s.Dial, memoryAddr(s.node)).Simple()
}

// clientOptions returns the options shared by clients of a server and of a cluster.
func (s *Server) clientOptions(dial func(ctx context.Context, network, addr string) (net.Conn, error), addrs ...string) *redis.UniversalOptions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &redis.UniversalOptions{
		Addrs:                    addrs,
		Dialer:                   dial,
		Username:                 s.username,
		Password:                 s.options.Password,
		PoolSize:                 poolSize,
		ReadBufferSize:           bufferSize,
		WriteBufferSize:          bufferSize,
		DialerRetries:            1,
		DisableIdentity:          true,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// poolSize exceeds the callers of most tests, so that none waits for a connection: go-redis waits on timers shared by all clients of a
// process, and a timer of one synctest bubble must not get into another.
const poolSize = 200

// bufferSize is an eighth of go-redis's default; buffers are most of the cost of a client that sends few commands.
const bufferSize = 4 << 10

// memoryAddr is the address of a node, or of a single server, as an in-memory client sees it. Nobody listens there: the Dialer is asked. A
// name would be looked up.
func memoryAddr(node int) string { return "127.0.0.1:" + strconv.Itoa(6379+node) }

// Dial returns the client's end of a new in-memory connection. Network and address are ignored.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	srv, _ := s.state()
	if srv == nil {
		return nil, errors.New("redistest: the server was not started")
	}
	return srv.Dial(ctx, network, addr)
}

// Addr returns "127.0.0.1:port", for clients that need TCP. The first call opens the port. Not for synctest bubbles: there time stands still
// while a goroutine waits for the network.
func (s *Server) Addr() string {
	if s.cluster != nil {
		return s.cluster.Addrs()[s.node]
	}
	return s.mustListen()
}

// mustListen opens a TCP port chosen by the system, unless one is open, and returns its address.
func (s *Server) mustListen() string {
	addr, err := s.listen("127.0.0.1:0")
	if err != nil {
		s.fatal(err)
	}
	return addr
}

// listen opens a TCP port, unless one is open, and returns its address.
func (s *Server) listen(addr string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr != "" || !s.running {
		return s.addr, nil
	}
	if err := s.accept(addr); err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	return s.addr, nil
}

// accept accepts connections at addr until the server is closed; s.mu is held. It turns off what TCP does for connections that leave the
// machine, an eighth of a test server's cost.
func (s *Server) accept(addr string) error {
	config := net.ListenConfig{KeepAlive: -1}
	config.SetMultipathTCP(false)
	l, err := config.Listen(context.Background(), "tcp", addr)
	if err != nil {
		return err
	}
	s.addr = l.Addr().String()
	if s.seeming != nil {
		s.announce(s.addr)
	}
	if s.tls != nil {
		l = tls.NewListener(l, s.tls)
	}
	srv := s.server
	s.ports.Go(func() { srv.Serve(l) })
	return nil
}

// URL returns "redis://..." for redis.ParseURL and other clients. Like Addr it opens the port.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tls != nil {
		u.Scheme = "rediss"
	}
	if s.options.Password != "" {
		u.User = url.UserPassword(s.username, s.options.Password)
	}
	return u.String()
}

// Close stops the server: commands that have arrived are run and answered, then the connections and the port are closed. It returns when
// every goroutine of the server has ended. Closing twice is fine, and a test closes its server automatically. Restart starts it again, with
// its old data.
func (s *Server) Close() {
	s.mu.Lock()
	srv := s.server
	s.running = false
	s.mu.Unlock()
	if srv == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	srv.Close(ctx) // an error means that clients did not read their replies, which is their concern
	s.ports.Wait()
	if s.cluster != nil {
		s.cluster.shared.SetDown(s.node, true)
	}
}

// Advance moves the clock forward, and does what is then due: keys and fields expire, waits end, pushes are sent. When it returns, in-memory
// listeners have handled the pushes: a client that waits for pushes (go-redis's PubSub, say, or a tracking connection that is subscribed) has
// read them and waits for the next. For listeners over TCP, and for connections that are idle in a pool, this cannot be known. A listener
// that takes more than five seconds is not waited for; the test's log says so.
func (s *Server) Advance(d time.Duration) {
	if d < 0 {
		s.fatal(fmt.Errorf("redistest: Advance moves forward, got %v; SetTime sets the clock back", d))
		return
	}
	if time.Now().UnixMicro()+s.offset.Load()+d.Microseconds() > lastTime.UnixMicro() {
		s.fatal(fmt.Errorf("redistest: Advance by %v would take the clock beyond the year %d", d, lastTime.Year()))
		return
	}
	s.offset.Add(d.Microseconds())
	s.catchUp()
}

// lastTime is the latest time that the clock can be set to: even with a TTL of centuries, clients can still format the result.
var lastTime = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// SetTime sets the clock to the millisecond after t, so that what ends at t has ended, and it runs on from there. The clock may be set back:
// dead keys stay dead. The zero time is the present. Times before 1970, which Redis does not know, and after the year 9999 end the test.
func (s *Server) SetTime(t time.Time) {
	now := time.Now()
	switch {
	case t.IsZero():
		t = now.Add(-deadlineItself)
	case t.Before(time.Unix(0, 0)) || t.After(lastTime):
		s.fatal(fmt.Errorf("redistest: SetTime sets a clock between 1970 and the year %d, got the year %d", lastTime.Year(), t.Year()))
		return
	}
	s.offset.Store(t.Add(deadlineItself).UnixMicro() - now.UnixMicro())
	s.catchUp()
}

func (s *Server) catchUp() {
	srv, running := s.state()
	if !running {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := srv.CatchUp(ctx); err != nil && s.tb != nil {
		s.tb.Logf("redistest: the clock was moved, and after %v a listener has not read what came of it", patience)
	}
}

// fatal ends the test, or panics outside of one.
func (s *Server) fatal(err error) {
	if s.tb == nil {
		panic(err)
	}
	s.tb.Fatalf("%v", err)
}
