package engine

// tracker knows which sessions keep copies of which keys: CLIENT TRACKING.
type tracker struct {
	on bool // some session tracks
}

// trackingState is what one session set up.
type trackingState struct{}

// remember notes the keys that a finished command read, for the session that asked.
func (e *Engine) remember(c *call) {}

// invalidate is told that key was changed by s, or, if nil, by time.
func (e *Engine) invalidate(key []byte, s *Session) {}

// flushInvalidations sends what was collected while a command ran.
func (e *Engine) flushInvalidations() {}

// untrack turns tracking off for s.
func (e *Engine) untrack(s *Session) {}

// invalidateAll is told that a database was emptied.
func (e *Engine) invalidateAll() {}
