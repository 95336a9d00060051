package localsync

import (
	"sync"
	"sync/atomic"
)

// watched are the keys that callers wait for.
type watched struct {
	n  atomic.Int64 // the number of waiters: usually there are none
	mu sync.Mutex
	by map[string]map[chan struct{}]bool
}

// Watch returns a channel that is signalled when key has changed or everything was dropped, and a function that ends this. Both are nil if
// the server does not push changes now.
func (t *Local) Watch(key string) (changed <-chan struct{}, stop func()) {
	if t.rung() != Tracking {
		return nil, nil
	}
	w := &t.watched
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[string]map[chan struct{}]bool)
	}
	if w.by[key] == nil {
		w.by[key] = make(map[chan struct{}]bool)
	}
	w.by[key][c] = true
	w.n.Add(1)
	return c, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.by[key][c] {
			w.n.Add(-1)
			if delete(w.by[key], c); len(w.by[key]) == 0 {
				delete(w.by, key)
			}
		}
	}
}

func (w *watched) one(key string) {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	signal(w.by[key])
}

func (w *watched) all() {
	if w.n.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cs := range w.by {
		signal(cs)
	}
}

func signal(cs map[chan struct{}]bool) {
	for c := range cs {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
