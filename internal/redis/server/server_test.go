package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/redis/server"
)

// TestMain fails if a test left a goroutine behind.
func TestMain(m *testing.M) {
	code := m.Run()
	if stacks := left(); len(stacks) > 0 && code == 0 {
		fmt.Printf("%d goroutines are left:\n%s\n", len(stacks), strings.Join(stacks, "\n\n"))
		code = 1
	}
	os.Exit(code)
}

// left returns the stacks of the servers' goroutines, after those about to end have ended.
func left() (stacks []string) {
	for range 3000 {
		buf := make([]byte, 1<<20)
		all := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
		stacks = slices.DeleteFunc(all, func(stack string) bool { return !strings.Contains(stack, "internal/redis/server.(") })
		if len(stacks) == 0 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	return stacks
}

// start returns a running server, which is closed when the test ends.
func start(t testing.TB, eo engine.Options, so server.Options) *server.Server {
	t.Helper()
	s, err := server.New(engine.New(eo), so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, s) })
	return s
}

// closeNow closes s and cuts the remaining connections.
func closeNow(t testing.TB, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.Close(ctx)
}

// listen serves s on a network and returns the address.
func listen(t testing.TB, s *server.Server, network string) string {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	return l.Addr().String()
}

// client is the other end of a connection, for tests.
type client struct {
	t testing.TB
	net.Conn
	replies *resp.Reader
}

func dial(t testing.TB, s *server.Server) *client {
	t.Helper()
	conn, err := s.Dial(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, conn)
}

func newClient(t testing.TB, conn net.Conn) *client {
	t.Cleanup(func() { conn.Close() })
	return &client{t, conn, resp.NewReader(conn)}
}

// send writes inline commands.
func (c *client) send(lines ...string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, strings.Join(lines, "\r\n")+"\r\n"); err != nil {
		c.t.Fatal(err)
	}
}

// get reads a reply and returns its text.
func (c *client) get() string {
	c.t.Helper()
	v, err := c.replies.Read()
	if err != nil {
		c.t.Fatal(err)
	}
	return text(v)
}

func text(v resp.Value) string {
	switch {
	case v.Null:
		return "null"
	case v.Kind == ':':
		return fmt.Sprint(v.Int)
	case v.Kind == '$' || v.Kind == '+':
		return v.Text
	case v.List == nil:
		return string(v.Kind) + v.Text
	}
	var parts []string
	for _, e := range v.List {
		parts = append(parts, text(e))
	}
	return string(v.Kind) + strings.Join(parts, " ")
}

// want sends a command and compares the reply.
func (c *client) want(line, reply string) {
	c.t.Helper()
	c.send(line)
	if got := c.get(); got != reply {
		c.t.Errorf("%s: got %q, want %q", line, got, reply)
	}
}

// ended reads until the connection ends and returns what was received.
func (c *client) ended() string {
	c.t.Helper()
	c.Conn.SetReadDeadline(time.Now().Add(time.Minute))
	var got []string
	for {
		v, err := c.replies.Read()
		if err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				c.t.Error("the connection did not end")
			}
			return strings.Join(got, ",")
		}
		got = append(got, text(v))
	}
}

// eachNetwork runs a test over TCP, a unix socket and memory, and over a connection of a type that the server does not know.
func eachNetwork(t *testing.T, test func(t *testing.T, s *server.Server, dial func() net.Conn)) {
	for _, network := range []string{"tcp", "unix", "pipe", "foreign"} {
		t.Run(network, func(t *testing.T) {
			s := start(t, engine.Options{}, server.Options{})
			switch network {
			case "pipe":
				test(t, s, func() net.Conn { return dial(t, s).Conn })
			case "foreign":
				test(t, s, func() net.Conn {
					here, there := server.Pipe(1)
					s.ServeConn(struct{ net.Conn }{there})
					return here
				})
			default:
				addr := listen(t, s, network)
				test(t, s, func() net.Conn {
					conn, err := net.Dial(network, addr)
					if err != nil {
						t.Fatal(err)
					}
					return conn
				})
			}
		})
	}
}

func TestPipelines(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		c := newClient(t, dial())
		const n = 10_000
		var batch strings.Builder
		for i := range n {
			fmt.Fprintf(&batch, "*2\r\n$4\r\nECHO\r\n$%d\r\n%d\r\n", len(fmt.Sprint(i)), i)
		}
		go io.WriteString(c.Conn, batch.String())
		for i := range n {
			if got := c.get(); got != fmt.Sprint(i) {
				t.Fatalf("reply %d: %q", i, got)
			}
		}
		c.want("PING", "PONG")
	})
}

// Redis buffers replies without limit: a client may send all its commands before it reads.
func TestAClientMaySendALotBeforeItReads(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		c := newClient(t, dial())
		c.send("SET k " + strings.Repeat("v", 50_000))
		const n = 500
		c.send(strings.Repeat("GET k\r\n", n) + "PING") // 25 MB of replies
		if got := c.get(); got != "OK" {
			t.Fatal(got)
		}
		for range n {
			if got := c.get(); len(got) != 50_000 {
				t.Fatalf("%d bytes: %.100q", len(got), got)
			}
		}
		if got := c.get(); got != "PONG" {
			t.Fatal(got)
		}
	})
}

func TestHalfClosedConnectionsGetTheirReplies(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		conn := dial()
		c := newClient(t, conn)
		c.send("SET k "+strings.Repeat("v", 1<<20/20), strings.Repeat("GET k\r\n", 100)+"PING")
		half, ok := conn.(interface{ CloseWrite() error })
		if !ok {
			t.Skip("cannot be closed by half")
		}
		half.CloseWrite()
		if got := c.ended(); !strings.HasPrefix(got, "OK,vvv") || !strings.HasSuffix(got, "vvv,PONG") || len(got) < 100*1<<20/20 {
			t.Errorf("%d bytes: %.50q", len(got), got)
		}
	})
}

func TestProtocolErrorsAreAnsweredAndEndTheConnection(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		for in, want := range map[string]string{
			"PING\r\n*x\r\n":                         "PONG,-ERR Protocol error: invalid multibulk length",
			"*1\r\nPING\r\n":                         "-ERR Protocol error: expected '$', got 'P'",
			"*1\r\n$999999999\r\n":                   "-ERR Protocol error: invalid bulk length",
			"SET 'a\r\n":                             "-ERR Protocol error: unbalanced quotes in request",
			strings.Repeat("x", 65_537):              "-ERR Protocol error: too big inline request",
			"*-10\r\n*0\r\nPING\r\nQUIT\r\nPING\r\n": "PONG,OK",
		} {
			c := newClient(t, dial())
			io.WriteString(c.Conn, in)
			if got := c.ended(); got != want {
				t.Errorf("%.40q: got %q, want %q", in, got, want)
			}
		}
	})
}

func TestBeforeAuthOnlySmallCommandsAreRead(t *testing.T) {
	s := start(t, engine.Options{Password: "p"}, server.Options{})
	big := strings.Repeat("*2\r\n$4\r\nECHO\r\n$20000\r\n"+strings.Repeat("x", 20_000)+"\r\n", 1)
	c := dial(t, s)
	io.WriteString(c.Conn, big)
	if got := c.ended(); got != "-ERR Protocol error: unauthenticated bulk length" {
		t.Errorf("got %q", got)
	}
	c = dial(t, s)
	io.WriteString(c.Conn, "AUTH p\r\n"+big)
	if got := c.get(); got != "OK" {
		t.Error(got)
	}
	if got := c.get(); len(got) != 20_000 {
		t.Errorf("%.100q", got)
	}
}

func TestTooManyClients(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{MaxClients: 2})
	a, b := dial(t, s), dial(t, s)
	a.want("PING", "PONG")
	b.want("PING", "PONG")
	if got := dial(t, s).ended(); got != "-ERR max number of clients reached" {
		t.Error(got)
	}
	a.send("QUIT")
	a.ended()
	dial(t, s).want("PING", "PONG")
}

func TestCloseIsGracefulAndMayBeCalledTwice(t *testing.T) {
	eachNetwork(t, func(t *testing.T, s *server.Server, dial func() net.Conn) {
		c := newClient(t, dial())
		c.want("PING", "PONG")
		c.want("SET k "+strings.Repeat("v", 50_000), "OK")
		c.send(strings.Repeat("GET k\r\n", 100) + "PING") // arrives in one piece
		c.get()
		closed := make(chan error)
		go func() { closed <- s.Close(t.Context()) }()
		if got := c.ended(); !strings.HasSuffix(got, "PONG") {
			t.Errorf("replies are missing: ...%q", got[max(0, len(got)-20):])
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseCutsClientsThatDoNotRead(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	c := dial(t, s)
	c.want("SET k "+strings.Repeat("v", 50_000), "OK")
	c.send(strings.Repeat("GET k\r\n", 10) + "PING")
	c.get()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); err != context.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if _, err := s.Dial(t.Context(), "", ""); err == nil {
		t.Error("a closed server was dialled")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(l); err != nil {
		t.Error(err)
	}
}

func TestServeReturnsWhenItsListenerFails(t *testing.T) {
	s := start(t, engine.Options{}, server.Options{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := s.Serve(l); err == nil {
		t.Error("no error")
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []server.Options{{MaxClients: -1}, {Subscribers: server.Limit{Hard: -1}}} {
		if _, err := server.New(engine.New(engine.Options{}), o); err == nil || !strings.HasPrefix(err.Error(), "server: Options.") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
