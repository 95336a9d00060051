// Package realserver starts real Redis servers for tests, alone, as a cluster or with sentinels, and breaks them: it stops, kills, pauses and
// fails them over. Only tests import it. It knows no client: those of go-redis are in realredis.
//
// Every server listens on a free loopback port, saves nothing, and ends with the test, or with the test process at the latest; if the test
// failed, its log is shown.
//
// Only the environment names the servers: MAYFLY_REDIS_BIN, MAYFLY_REDIS7_BIN and MAYFLY_VALKEY_BIN are directories that hold redis-server,
// as printed by .ci/redis. A test without the server that it needs is skipped, or fails if MAYFLY_REQUIRE_REDIS=1. The lines
// "SKIPPED-NO-REDIS test: why" and "REAL-REDIS started version", which go test -v shows, can be counted.
package realserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/resp"
	"github.com/mayflycache/mayfly/internal/testkit/wire"
)

// Options say what to start. The zero value is Redis 8.
type Options struct {
	Flavour Flavour
	Config  []string // further lines of redis.conf, e.g. "maxmemory 1mb"
}

// A Server is one redis-server on 127.0.0.1. Its methods end the test if they fail, and must be called from one goroutine at a time, the
// test's.
type Server struct {
	t       testing.TB
	binary  binary
	mode    []string // further arguments of redis-server
	config  []string
	dir     string
	port    int
	busPort int // of a cluster node, otherwise 0
	process *process
}

// Start starts a single server.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := prepare(t, need(t, o.Flavour), o.Config...)
	startAll(t, s)
	return s
}

// startAll starts servers in parallel.
func startAll(t testing.TB, servers ...*Server) {
	t.Helper()
	errs := make([]error, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { errs[i] = s.start() })
	}
	wg.Wait()
	must(t, errors.Join(errs...))
	for _, s := range servers {
		t.Logf("REAL-REDIS started %v at %s", s.Version(), s.Addr())
	}
}

// prepare makes a server to be started later, and arranges for its end.
func prepare(t testing.TB, b binary, config ...string) *Server {
	t.Helper()
	s := &Server{t: t, binary: b, dir: scratch(t), config: append([]string{
		`save ""`,
		"appendonly no",
		"enable-debug-command local",
		"repl-diskless-sync-delay 0", // a replica is synchronised at once, not after 5 s
		"repl-diskless-load on-empty-db",
	}, config...)}
	t.Cleanup(s.cleanup)
	return s
}

// scratch is a directory for a server's files, in memory if the system has such a place: sentinels and cluster nodes fsync what they learn,
// and one that waits for a busy disk is taken for dead by its peers.
func scratch(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "mayfly-realserver-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (s *Server) cleanup() {
	if err := s.process.end(os.Kill); err != nil {
		s.t.Errorf("realserver: %v", err)
	}
	if s.t.Failed() {
		s.t.Logf("log of %v at port %d:\n%s", s.binary.version, s.port, s.log())
	}
}

func (s *Server) log() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	return string(log)
}

func (s *Server) logFile() string { return filepath.Join(s.dir, "log") }

// must ends the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("realserver: %v", err)
	}
}

// start chooses free ports and starts the server there; if a port was taken meanwhile, it tries others.
func (s *Server) start() error {
	const tries = 10
	var err error
	for range tries {
		if s.port, err = freePort(); err != nil {
			return err
		}
		config := []string{
			fmt.Sprintf("port %d", s.port),
			"bind 127.0.0.1",
			fmt.Sprintf("dir %q", s.dir),
		}
		if s.busPort != 0 {
			if s.busPort, err = freePort(); err != nil {
				return err
			}
			config = append(config, fmt.Sprintf("cluster-port %d", s.busPort))
		}
		text := strings.Join(append(config, s.config...), "\n") + "\n"
		if err := os.WriteFile(s.configFile(), []byte(text), 0o600); err != nil {
			return err
		}
		if err = s.run(); !errors.Is(err, errPortTaken) {
			return err
		}
		os.Remove(s.logFile()) // otherwise the old log would explain the next failure too
	}
	return err
}

func (s *Server) configFile() string { return filepath.Join(s.dir, "redis.conf") }

// anyPort asks start to choose a bus port.
const anyPort = -1

var errPortTaken = errors.New("the port was taken meanwhile")

// run starts the process and returns when it answers.
func (s *Server) run() error {
	var err error
	s.process, err = run(s.logFile(), s.binary.path, append([]string{s.configFile()}, s.mode...)...)
	if err != nil {
		return err
	}
	err = until(func(ctx context.Context) error {
		if !s.process.alive() {
			return nil
		}
		return s.answers(ctx)
	})
	if err != nil {
		return fmt.Errorf("%v did not start: %w", s.binary.version, err)
	}
	if s.process.alive() {
		return nil
	}
	if strings.Contains(s.log(), "Address already in use") {
		return fmt.Errorf("%w: %d", errPortTaken, s.port)
	}
	return fmt.Errorf("%v did not start: %v", s.binary.version, s.process.cmd.ProcessState)
}

// answers checks that the server answers PING, and that it is this one: if two servers wanted one port, the answer may come from the other.
func (s *Server) answers(ctx context.Context) error {
	c, err := wire.Dial(ctx, s.Addr(), hangs)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Do("PING"); err != nil {
		return err
	}
	info, err := c.Do("INFO", "server")
	if pid := fmt.Sprintf("process_id:%d\r\n", s.process.cmd.Process.Pid); err == nil && !strings.Contains(info.Text, pid) {
		return errors.New("another server has its port")
	}
	return err
}

// freePort returns a port that nobody listens on. It is below the range for outgoing connections, so that a server which is down finds its
// port free when it restarts.
func freePort() (int, error) {
	const first, end, tries = 15000, 32768, 100
	var err error
	for range tries {
		port := first + rand.IntN(end-first)
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("no free port: %w", err)
}

// Addr returns the server's address, which never changes.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Version returns the server's version.
func (s *Server) Version() Version { return s.binary.version }

// Stop ends the server as an operator would. Its data are lost, since it saves nothing.
func (s *Server) Stop() {
	s.t.Helper()
	if s.process.paused {
		s.Resume()
	}
	must(s.t, s.process.end(syscall.SIGTERM))
}

// Kill ends the server at once, so that its connections break as in a crash.
func (s *Server) Kill() {
	s.t.Helper()
	must(s.t, s.process.end(os.Kill))
}

// Restart starts the server again at its old address, empty; a running server is stopped first. A cluster node still knows its cluster, a
// sentinel its master.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	must(s.t, s.run())
}

// Pause makes the server hang until Resume: connections stay and are even accepted, and nothing is answered.
func (s *Server) Pause() {
	s.t.Helper()
	must(s.t, s.process.signal("STOP"))
	awaitStopped(s.process.cmd.Process)
	s.process.paused = true
}

// Resume continues a paused server; it then answers the commands received meanwhile.
func (s *Server) Resume() {
	s.t.Helper()
	must(s.t, s.process.signal("CONT"))
	s.process.paused = false
}

// Do sends a command on a connection of its own, and returns the reply, which must not be an error.
func (s *Server) Do(words ...string) resp.Value {
	s.t.Helper()
	v, err := s.ask(context.Background(), words...)
	must(s.t, err)
	return v
}

// Await waits until the reply to a command contains text.
func (s *Server) Await(text string, words ...string) {
	s.t.Helper()
	must(s.t, until(func(ctx context.Context) error {
		v, err := s.ask(ctx, words...)
		if err == nil && !strings.Contains(v.Text, text) {
			err = fmt.Errorf("%s does not say %q to %q: %s", s.Addr(), text, words, v.Text)
		}
		return err
	}))
}

// hangs is how long a server takes at least if it hangs.
const hangs = 5 * time.Second

// ask sends a command once, since to repeat it is until's job, and returns the reply.
func (s *Server) ask(ctx context.Context, words ...string) (resp.Value, error) {
	c, err := wire.Dial(ctx, s.Addr(), hangs)
	if err != nil {
		return resp.Value{}, err
	}
	defer c.Close()
	return c.Do(words...)
}

// up reports whether the server can be expected to answer.
func (s *Server) up() bool { return s.process.alive() && !s.process.paused }
