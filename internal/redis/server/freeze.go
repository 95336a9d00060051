package server

import (
	"runtime"
	"time"

	"github.com/mayflycache/mayfly/internal/redis/engine"
)

// freezeReason is why the server is frozen: no command runs, nothing expires by itself, nothing is sent.
type freezeReason uint8

const (
	hung     freezeReason = 1 << iota // Faults.Hang
	asleep                            // DEBUG SLEEP
	scripted                          // a script is running that has not reached busy-reply-threshold
)

// freeze and thaw begin and end the freeze for one reason; s.mu is held.
func (s *Server) freeze(why freezeReason) {
	if s.frozenBy == 0 {
		s.thawed = make(chan struct{})
	}
	s.frozenBy |= why
}

func (s *Server) thaw(why freezeReason) {
	if s.frozenBy == 0 {
		return
	}
	if s.frozenBy &^= why; s.frozenBy == 0 {
		close(s.thawed)
	}
}

// enter takes the lock for a turn of c once the server is not frozen. It reports false if c was cut meanwhile.
func (s *Server) enter(c *conn) bool {
	s.mu.Lock()
	return s.frozenBy == 0 || s.awaitThaw(c)
}

// awaitThaw releases the lock while the server is frozen and c is not cut. It reports false if c was cut.
func (s *Server) awaitThaw(c *conn) bool {
	for s.frozenBy != 0 {
		thawed := s.thawed
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

// sleep stops c and all other connections until the engine's stall is over. It reports false if c was cut meanwhile.
func (s *Server) sleep(c *conn) bool {
	if s.stall = s.engine.StalledUntil(); s.stall == 0 {
		return true
	}
	s.freeze(asleep)
	s.alarm.arm(s)
	return s.awaitThaw(c)
}

// script continues a script of c that yielded, until it ends. No other command runs meanwhile; once the engine is Busy, other connections are
// let in to be told so and perhaps to kill the script. It reports false if c was cut and the server has closed or restarted since.
func (s *Server) script(c *conn) (engine.Outcome, bool) {
	defer s.thaw(scripted)
	for {
		if c.engine.Busy() {
			s.thaw(scripted)
		} else {
			s.freeze(scripted)
		}
		before := s.options.Clock()
		c.post() // the replies before the script
		c.leaveEngine()
		runtime.Gosched()
		if s.options.Clock() == before {
			// A clock that stands still belongs to a synctest bubble: it moves only when all goroutines wait.
			time.Sleep(time.Millisecond)
		}
		s.mu.Lock()
		if c.isCut() && (s.closed || s.engine != c.engine) {
			return engine.Close, false
		}
		if outcome := c.engine.Resume(s.options.Clock(), c.session); outcome != engine.Yielded {
			return outcome, true
		}
	}
}
