package httpcache

import (
	"context"
	"sync"

	"github.com/mayflycache/mayfly"
)

// works is the cache's background work: every goroutine it starts is counted here, and Close waits for it.
type works struct {
	ctx    context.Context // ends, with mayfly.ErrClosed as its cause, when Close has waited long enough
	cancel context.CancelCauseFunc

	mu     sync.Mutex // guards the rest
	n      int
	closed bool
	idle   chan struct{} // closed when closed and n is zero

	closing chan struct{} // closed when Close is called: work that could go on for long ends soon
}

func (w *works) init() {
	w.ctx, w.cancel = context.WithCancelCause(context.Background())
	w.idle, w.closing = make(chan struct{}), make(chan struct{})
}

// start runs f in a goroutine, unless the cache is closed: then it does not, and reports false.
func (w *works) start(f func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.n++
	go func() {
		defer w.done()
		f()
	}()
	return true
}

func (w *works) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n--; w.n == 0 && w.closed {
		close(w.idle)
	}
}

func (w *works) isClosed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

func (w *works) close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.closing)
		if w.n == 0 {
			close(w.idle)
		}
	}
	w.mu.Unlock()
	defer w.cancel(mayfly.ErrClosed)
	select {
	case <-w.idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
