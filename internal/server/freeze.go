package server

// A server is frozen while DEBUG SLEEP or the fault Hang lasts: nobody's command runs, nothing expires by itself, nothing goes out.

// enter takes the lock for a turn of c, once the server is not frozen. It reports false if c was cut meanwhile.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	return s.frozen == nil || s.awaitThaw(c)
}

// sleep ends the turn of c until the engine's stall is over. It reports false if c was cut meanwhile.
func (s *Server) sleep(c *conn) bool {
	s.stall = s.engine.StalledUntil()
	if s.stall == 0 {
		return true
	}
	s.freeze()
	s.alarm.arm(s)
	return s.awaitThaw(c)
}

// awaitThaw gives the lock back while the server is frozen and c is not cut. It reports false if c was cut.
func (s *Server) awaitThaw(c *conn) bool {
	for s.frozen != nil {
		thawed := s.frozen
		s.mu.Unlock()
		select {
		case <-thawed:
			s.mu.Lock()
		case <-c.gone:
			s.mu.Lock()
			return false
		}
	}
	return true
}

func (s *Server) freeze() {
	if s.frozen == nil {
		s.frozen = make(chan struct{})
	}
}

// thaw ends the frost if neither reason for it is left.
func (s *Server) thaw() {
	if s.frozen != nil && !s.hung && s.stall == 0 {
		close(s.frozen)
		s.frozen = nil
	}
}
