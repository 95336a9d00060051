package server

import "github.com/mayflycache/mayfly/internal/redis/engine"

// What is published at one node of a cluster is for subscribers at all of them. It leaves after the lock was given back, and before the
// publisher gets its reply; Options.Broadcast brings it to the other servers' Receive.

// broadcast hands out what was published, in the order in which it was.
func (s *Server) broadcast() {
	s.bus.Lock()
	defer s.bus.Unlock()
	s.mu.Lock()
	messages := s.outgoing
	s.outgoing = nil
	s.mu.Unlock()
	for _, m := range messages {
		s.options.Broadcast(m)
	}
}

// Receive delivers a message that another node of the cluster broadcast; a server that is frozen does so when it is not any more. A server
// that is closed has nobody to tell.
func (s *Server) Receive(m engine.Message) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.incoming = append(s.incoming, m)
	others := s.receive()
	s.mu.Unlock()
	deliver(others)
}

// receive gives the engine what came from other nodes, and returns who is to be written to; s.mu is held.
func (s *Server) receive() []*conn {
	if s.frozenBy != 0 || len(s.incoming) == 0 {
		return nil
	}
	for _, m := range s.incoming {
		s.engine.Deliver(m)
	}
	s.incoming = nil
	return s.collect(nil)
}
