package shop

import (
	"sync"
	"time"

	"github.com/mayflycache/mayfly/internal/demo/panel"
)

// latency keeps how long pages took.
type latency struct {
	mu   sync.Mutex // guards what follows
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

// take returns how long pages took since it was last called.
func (l *latency) take() panel.Took {
	l.mu.Lock()
	defer l.mu.Unlock()
	took := l.took
	l.took = nil
	return took
}
