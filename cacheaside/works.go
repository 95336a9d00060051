package cacheaside

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/mayflycache/mayfly"
)

// works is the cache's background work: every goroutine it starts is counted here, and Close waits for it.
type works struct {
	ctx    context.Context // ends, with mayfly.ErrClosed as its cause, when Close has waited long enough
	cancel context.CancelCauseFunc

	closed atomic.Bool // written under mu

	mu   sync.Mutex // guards the rest
	n    int
	idle chan struct{} // closed when closed and n is zero

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
	if w.closed.Load() {
		return false
	}
	w.n++
	go func() {
		defer w.done()
		f()
	}()
	return true
}

// more counts a goroutine that a running work starts, so that it may start when the cache is already closed. Its end
// calls done.
func (w *works) more() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
}

func (w *works) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
	w.checkLocked()
}

func (w *works) checkLocked() {
	if !w.closed.Load() || w.n > 0 {
		return
	}
	select {
	case <-w.idle:
	default:
		close(w.idle)
	}
}

// open returns an error if the cache is closed.
func (w *works) open() error {
	if w.closed.Load() {
		return mayfly.ErrClosed
	}
	return nil
}

func (w *works) close(ctx context.Context) error {
	w.mu.Lock()
	if !w.closed.Swap(true) {
		close(w.closing)
		w.checkLocked()
	}
	w.mu.Unlock()
	select {
	case <-w.idle:
		w.cancel(mayfly.ErrClosed)
		return nil
	case <-ctx.Done():
		w.cancel(mayfly.ErrClosed)
		return ctx.Err()
	}
}

// on returns ctx's values with the life of the cache instead of the caller's.
func (w *works) on(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(w.ctx, func() { cancel(mayfly.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}
