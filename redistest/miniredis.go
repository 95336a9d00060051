package redistest

import (
	"net"
	"time"
)

// What follows, and the access to data in direct.go, is for tests that were written for miniredis: they swap by changing one import, to
//
//	import miniredis "github.com/mayflycache/mayfly/redistest"
//
// docs/testing.md says what maps to what, and where behaviour differs.

// Miniredis is the name that miniredis has for Server.
type Miniredis = Server

// Tester is what RunT needs of a test.
type Tester interface {
	Fatalf(string, ...any)
	Cleanup(func())
	Logf(format string, args ...any)
}

// NewMiniRedis returns a server that is not started. New tests use Start.
func NewMiniRedis() *Server { return &Server{} }

// Run returns a server that runs outside of any test, and that the caller has to Close.
func Run() (*Server, error) {
	s := NewMiniRedis()
	return s, s.Start()
}

// RunT starts a server that stops when the test ends, as Start does.
func RunT(t Tester) *Server { return start(t, Options{}) }

// Start starts a server that NewMiniRedis made. Its port is opened by Addr.
func (s *Server) Start() error { return s.open() }

// StartAddr starts a server that NewMiniRedis made, with a port at addr: "127.0.0.1:6379", ":6379" or "127.0.0.1:0".
func (s *Server) StartAddr(addr string) error {
	if err := s.open(); err != nil {
		return err
	}
	if _, err := s.listen(addr); err != nil {
		s.Close()
		return err
	}
	return nil
}

// Host returns the host of Addr.
func (s *Server) Host() string {
	host, _, _ := net.SplitHostPort(s.Addr())
	return host
}

// Port returns the port of Addr.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.Addr())
	return port
}

// FastForward moves the clock forward: it is Advance.
func (s *Server) FastForward(d time.Duration) { s.Advance(d) }

// SetError answers every command with an error, until it is called with "".
func (s *Server) SetError(msg string) { s.faults().FailAll(msg) }

// RequireAuth sets the password that new connections must AUTH with; "" removes it. Connections that are open stay as they are, as with
// Redis's CONFIG SET requirepass.
func (s *Server) RequireAuth(pw string) {
	s.do("CONFIG", "SET", "requirepass", pw)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.Password = pw
}
