// Package redistest is a Redis 8.0 for tests, in the test's own process, in the spirit of net/http/httptest.
//
//	srv := redistest.Start(t)
//	rdb := srv.Client() // a *redis.Client over memory; closed with the test
//
//	rdb.Set(ctx, "session", "s1", time.Hour)
//	srv.Advance(time.Hour + time.Millisecond)
//	rdb.Get(ctx, "session") // redis.Nil
//
// Data is reached through the protocol: every reply is Redis's, and a command that the double does not have is answered with
// Redis's "ERR unknown command". There is no port until Addr asks for one.
//
// # Time
//
// The server's clock runs: it is time.Now, and in a testing/synctest bubble the bubble's time. There time.Sleep is all a test needs; a week of
// it costs milliseconds, since the server has no timer but the one for its next deadline. Where there is no bubble, Advance moves the clock.
// A key can be read in the millisecond of its deadline, and not in the next.
//
// # Faults
//
// Hang, Refuse, Latency, FailNext, DropReply, DropInvalidations, KillConnections and Restart make the server misbehave, as servers and
// networks do. Log shows what was asked of it.
//
// # Clusters
//
// StartCluster starts several masters that divide the keys among them, as strictly as Redis does.
//
// Tests written for miniredis find its functions here by its names: see docs/testing.md.
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
	Password string // what clients must AUTH with; empty: nothing

	// Hz, if not 0, removes dead keys that nobody asks for in Redis's documented cycle, so many times a second, 1 to 500, and Redis does 10:
	// removal and announcement may be late then. 0 removes each, and announces that it expired, in the millisecond after its deadline. Either
	// way nobody can read a dead key. With Hz the server has a timer that runs while any key has a deadline.
	Hz int

	Seed uint64 // of every random choice (RANDOMKEY, SPOP, eviction ...); 0: a different one for every server
}

// Server is a running double. Its methods are safe for concurrent use.
type Server struct {
	data    // direct access to the selected database
	options Options
	tb      Tester       // nil: it runs in no test
	offset  atomic.Int64 // microseconds by which the clock is ahead of time.Now
	log     commandLog
	ports   sync.WaitGroup  // goroutines that accept connections
	cluster *Cluster        // nil: it is no node of one
	node    int             // which one it is
	seeming *engine.Cluster // what it tells a cluster client, as miniredis does; nil: that it is no cluster

	mu       sync.Mutex // guards what follows
	server   *server.Server
	engine   *engine.Engine
	running  bool
	addr     string // host:port, once there is one. It is kept over a Close, for Restart.
	client   *redis.Client
	tls      *tls.Config // of the port; nil: it is plain
	username string      // what Options gives with the password; empty: nothing
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
		return errors.New("redistest: the server runs already")
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

// announce is where a cluster client is told that it finds this server.
func (s *Server) announce(addr string) {
	at := netip.MustParseAddrPort(addr)
	s.seeming.Announce(0, at.Addr().Unmap().String(), int(at.Port()))
}

// Client returns a client over memory, the same at every call. It works in the synctest bubble in which the server was started, and is closed when
// the test ends. Make others, as of other processes, with redis.NewClient(srv.Options()).
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

// Options returns options for a client of your own over memory: with the server's password, context deadlines obeyed, small buffers, and without what
// makes a connection slow to begin and tells a test nothing: the client's name and version, the notices of maintenance of Redis's cloud.
func (s *Server) Options() *redis.Options {
	return s.clientOptions(s.Dial, memoryAddr(s.node)).Simple()
}

// clientOptions returns those that clients of a server and of a cluster share.
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
		DisableIdentity:          true,
		ContextTimeoutEnabled:    true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

// poolSize is more than the callers of most tests, so that nobody waits for a connection: go-redis waits with timers that it shares between
// all clients of a process, and a timer of one synctest bubble must not come into another.
const poolSize = 200

// bufferSize is an eighth of go-redis's, which are most of what a client of a few commands costs.
const bufferSize = 4 << 10

// memoryAddr is what a client over memory takes for the address of a node, or of a server that is none. Nobody listens there: the Dialer is
// asked. A name would be looked up.
func memoryAddr(node int) string { return "127.0.0.1:" + strconv.Itoa(6379+node) }

// Dial returns the client's end of a new connection over memory. Network and address are ignored.
func (s *Server) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	srv, _ := s.state()
	if srv == nil {
		return nil, errors.New("redistest: the server was not started")
	}
	return srv.Dial(ctx, network, addr)
}

// Addr returns "127.0.0.1:port", for clients that need TCP. The port is opened by the first call. Not for synctest bubbles: there time stands
// still while somebody waits for the network.
func (s *Server) Addr() string {
	if s.cluster != nil {
		return s.cluster.Addrs()[s.node]
	}
	return s.mustListen()
}

// mustListen opens a TCP port of the system's choice, if there is none, and returns its address.
func (s *Server) mustListen() string {
	addr, err := s.listen("127.0.0.1:0")
	if err != nil {
		s.fatal(err)
	}
	return addr
}

// listen opens a TCP port, if there is none, and returns its address.
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

// accept accepts connections at addr until the server is closed; s.mu is held. It goes without what TCP does for connections that leave the
// machine: an eighth of a test server's cost.
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

// Close stops the server: commands that have arrived are run and answered, then connections and the port are closed. It returns when every goroutine
// of the server has ended. Closing twice is fine, and a test closes its server by itself. Restart starts it again, with the data it had.
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
	srv.Close(ctx) // an error says that clients did not read their replies, which is theirs to say
	s.ports.Wait()
	if s.cluster != nil {
		s.cluster.shared.SetDown(s.node, true)
	}
}

// Advance moves the clock forward, and does what is then due: keys and fields expire, waits end, pushes go out. When it returns, those who listen
// over memory have dealt with the pushes: a client that waits for pushes (go-redis's PubSub, say, or a tracking connection that subscribed)
// has read them and waits for the next. Of a listener over TCP nobody can know that, nor of a connection that is idle in a pool.
// A listener that takes more than five seconds is not waited for; the test's log says so.
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

// lastTime is the latest that the clock can be set to: with a TTL of centuries it is still a time that clients can write down.
var lastTime = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)

// SetTime sets the clock to the millisecond after t, from where it runs on, so that what ends at t has ended. It may be set back: what is dead remains so. The zero time is the present. Times
// before 1970, which Redis does not know, and after the year 9999 end the test.
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

// fatal ends the test, or panics where there is none.
func (s *Server) fatal(err error) {
	if s.tb == nil {
		panic(err)
	}
	s.tb.Fatalf("%v", err)
}
