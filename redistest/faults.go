package redistest

import (
	"time"

	"github.com/mayflycache/mayfly/internal/redis/server"
)

// Hang makes the server silent: it accepts connections and reads, but answers nothing, and nothing expires. Thaw ends that; what was sent
// meanwhile is run then, as by a process that was stopped and continued.
func (s *Server) Hang() { s.faults().Hang() }

// Thaw ends Hang.
func (s *Server) Thaw() { s.faults().Thaw() }

// Refuse makes the server turn new connections away, or take them again. Those that are open stay: KillConnections cuts them.
func (s *Server) Refuse(on bool) { s.faults().Refuse(on) }

// Latency makes every command wait for so long before it runs, each of a pipeline too; 0 ends that. Other connections' commands wait at the same time.
func (s *Server) Latency(d time.Duration) { s.faults().Latency(d) }

// FailNext answers the next command of this name with an error, such as "LOADING Redis is loading the dataset in memory", instead of
// running it. The name is a command's ("get"), a command's and its subcommand's ("client tracking"), or empty for any. Calls add up: two of
// the same name fail two commands.
func (s *Server) FailNext(command, err string) { s.faults().FailNext(command, err) }

// DropReply runs the next command of this name, and cuts its connection instead of replying: the client cannot know whether it ran.
func (s *Server) DropReply(command string) { s.faults().DropReply(command) }

// DropInvalidations loses the invalidation messages of CLIENT TRACKING from now on, or delivers them again.
func (s *Server) DropInvalidations(on bool) { s.faults().DropInvalidations(on) }

// KillConnections cuts every connection. New ones are welcome.
func (s *Server) KillConnections() { s.faults().KillConnections() }

// Restart makes a running server crash and come back at once, on the same port: connections are cut, and all data is lost, as by a Redis
// that saves nothing. A server that was closed is started again with the data it had. Faults and the clock stay as they are over a crash; a
// Close ends the faults.
func (s *Server) Restart() error {
	if _, running := s.state(); !running {
		return s.reopen()
	}
	e, err := s.newEngine()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.engine = e
	s.server.Restart(e)
	return nil
}

// reopen starts a closed server again, on its port if it had one.
func (s *Server) reopen() error {
	if err := s.open(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.addr == "" {
		return nil
	}
	return s.accept(s.addr)
}

func (s *Server) faults() *server.Faults { return s.current().Faults() }

// current is the server as it runs, or ran last.
func (s *Server) current() *server.Server {
	srv, _ := s.state()
	if srv == nil {
		panic("redistest: the server was not started")
	}
	return srv
}

// state returns the server as it runs, or ran last, and whether it runs; it is nil before the first start.
func (s *Server) state() (srv *server.Server, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server, s.running
}
