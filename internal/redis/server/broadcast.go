package server

import "github.com/mayflycache/mayfly/internal/redis/engine"

// A message published at one node of a cluster is for the subscribers at every node. It is sent on after the lock is released and before the
// publisher gets its reply; Options.Broadcast passes it to the other servers' Receive.

// broadcast sends out the published messages, in order.
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

// Receive delivers a message that another node of the cluster broadcast. A frozen server delivers it after the thaw; a closed one drops it.
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

// receive passes the messages of other nodes to the engine, and returns the connections that must be written to; s.mu is held.
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
