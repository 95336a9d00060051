package server

import "time"

// alarm is the server's only timer. It is armed for the time at which the engine next has something to do by itself, and not at all when
// nothing will become due: a program may then sleep for a week, even in a synctest bubble, and the server costs nothing.
type alarm struct {
	timer *time.Timer
	armed bool
	at    int64 // unix microseconds
}

// arm sets the alarm for the engine's next wake or the end of a stall, if that is sooner than its present time. s.mu is held.
func (a *alarm) arm(s *Server) {
	at, ok := s.engine.NextWake()
	if s.frozenBy != 0 {
		at, ok = s.stall, s.stall != 0
	}
	if !ok || s.closed || a.armed && a.at <= at {
		return
	}
	delay := until(at, s.options.Clock())
	switch {
	case a.timer == nil:
		a.timer = time.AfterFunc(delay, func() { a.ring(s) })
	case a.armed && !a.timer.Stop():
		return // the timer is ringing already and will arm itself
	default:
		a.timer.Reset(delay)
	}
	if !a.armed {
		s.work.Add(1)
	}
	a.armed, a.at = true, at
}

// until is the time from now to at, both in unix microseconds, limited to between zero and a year.
func until(at, now int64) time.Duration {
	const year = 365 * 24 * time.Hour
	return time.Duration(min(max(at-now, 0), year.Microseconds())) * time.Microsecond
}

// ring is what the timer calls.
func (a *alarm) ring(s *Server) {
	defer s.work.Done()
	s.mu.Lock()
	a.armed = false
	s.tick()
	s.unlock()
}

// stop disarms the alarm; s.mu is held.
func (a *alarm) stop(s *Server) {
	if a.armed && a.timer.Stop() {
		a.armed = false
		s.work.Done()
	}
}

// tick lets the engine do what is due, and reports whether more is due at once. s.mu is held.
func (s *Server) tick() (more bool) {
	now := s.options.Clock()
	if s.stall != 0 && now >= s.stall {
		s.stall = 0
		s.thaw(asleep)
	}
	if s.closed || s.frozenBy != 0 {
		return false
	}
	begun := time.Now()
	s.engine.Tick(now)
	s.ticked += time.Since(begun)
	at, ok := s.engine.NextWake()
	return ok && at <= now
}
