package script

import "sync"

// maxShared is how many bytes of source shared holds. It is enough for the scripts of a program and its tests, and small beside an engine.
const maxShared = 256 << 10

// shared holds compiled scripts for all engines of the process, as a chunk never changes: tests that start an engine each compile the same
// scripts, which costs more than to run them.
var shared chunks

// chunks are compiled scripts by their SHA1, with at most maxShared bytes of source.
type chunks struct {
	mu    sync.Mutex // guards the rest
	bySum map[string]*Chunk
	bytes int
}

// find returns the chunk of this source, or nil.
func (s *chunks) find(sum, source string) *Chunk {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.bySum[sum]; c != nil && c.Source == source {
		return c
	}
	return nil
}

// keep adds c. When there is no room for it, all others go.
func (s *chunks) keep(c *Chunk) {
	if len(c.Source) > maxShared {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes += len(c.Source); s.bytes > maxShared || s.bySum == nil {
		s.bySum, s.bytes = make(map[string]*Chunk), len(c.Source)
	}
	s.bySum[c.Sum] = c
}
