package redistest

import (
	"time"

	"github.com/mayflycache/mayfly/internal/redis/server"
)

// Hang makes the server silent: it accepts connections and reads, but answers nothing, and nothing expires. Thaw ends that, and then the
// commands sent meanwhile are run, as by a process that was stopped and continued.
func (s *Server) Hang() { s.faults().Hang() }

// Thaw ends Hang.
func (s *Server) Thaw() { s.faults().Thaw() }

// Refuse makes the server turn new connections away, or accept them again. Open connections stay: KillConnections cuts them.
func (s *Server) Refuse(on bool) { s.faults().Refuse(on) }

// Latency delays every command by d before it runs, each command of a pipeline too; 0 ends that. Connections wait at the same time, not one
// after the other.
func (s *Server) Latency(d time.Duration) { s.faults().Latency(d) }

// FailNext answers the next command of this name with an error, such as "LOADING Redis is loading the dataset in memory", instead of running
// it. The name is that of a command ("get"), of a command and its subcommand ("client tracking"), or empty for any command. Calls add up: two
// with the same name fail two commands.
func (s *Server) FailNext(command, err string) { s.faults().FailNext(command, err) }

// DropReply runs the next command of this name, and cuts its connection instead of replying: the client cannot know whether it ran.
func (s *Server) DropReply(command string) { s.faults().DropReply(command) }

// DropInvalidations drops the invalidation messages of CLIENT TRACKING from now on, or delivers them again.
func (s *Server) DropInvalidations(on bool) { s.faults().DropInvalidations(on) }

// KillConnections cuts every connection. New ones are accepted.
func (s *Server) KillConnections() { s.faults().KillConnections() }

// Restart makes a running server crash and come back at once, on the same port: connections are cut, and all data is lost, as with a Redis
// that saves nothing. A closed server is started again with its old data. Faults and the clock survive a crash; Close ends the faults.
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

// current returns the server that runs, or that ran last.
func (s *Server) current() *server.Server {
	srv, _ := s.state()
	if srv == nil {
		panic("redistest: the server was not started")
	}
	return srv
}

// state returns the server that runs, or that ran last, and whether it runs; it is nil before the first start.
func (s *Server) state() (srv *server.Server, running bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server, s.running
}
