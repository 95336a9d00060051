package shop

import (
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// latency collects how long pages took.
type latency struct {
	mu   sync.Mutex // guards the fields below
	took panel.Took
}

func (l *latency) add(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.took == nil {
		l.took = make(panel.Took)
	}
	l.took.Add(took)
}

// take returns how long pages took since the last call.
func (l *latency) take() panel.Took {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := l.took
	l.took = nil
	return took
}
