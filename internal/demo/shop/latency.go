package shop

import (
	"slices"
	"sync"
	"time"
)

// latency keeps how long the latest pages took.
type latency struct {
	mu     sync.Mutex // guards what follows
	latest [1 << 14]tookAt
	next   int
}

// tookAt is a page that was there at some moment, and how long it took.
type tookAt struct {
	at   time.Time
	took time.Duration
}

func (l *latency) add(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.latest[l.next] = tookAt{time.Now(), took}
	l.next = (l.next + 1) % len(l.latest)
}

// since returns percentiles of the pages after a moment, 0 if there were none.
func (l *latency) since(moment time.Time) (p50, p99 time.Duration) {
	var took []time.Duration
	l.mu.Lock()
	for i := range l.latest {
		if p := &l.latest[i]; p.at.After(moment) {
			took = append(took, p.took)
		}
	}
	l.mu.Unlock()
	if len(took) == 0 {
		return 0, 0
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100]
}
