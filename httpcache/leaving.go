package httpcache

import (
	"context"
	"sync/atomic"
	"time"
)

// leaving decides when the handler's context ends after the client left. It ends at once if the answer is for this client alone, as it would
// without a cache. If that is not known yet, or if the answer is for others too, the context ends after a while.
type leaving struct {
	left   func() error // not nil when the client has left
	cancel context.CancelFunc
	unlink func() bool
	alone  atomic.Bool // the answer is for this client alone
}

// newLeaving returns the handler's context for a request with context ctx. It outlives ctx by after at most. The caller must call end.
func newLeaving(ctx context.Context, after time.Duration) (context.Context, *leaving) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &leaving{left: ctx.Err, cancel: cancel}
	l.unlink = context.AfterFunc(ctx, func() {
		if l.alone.Load() {
			cancel()
			return
		}
		timer := time.AfterFunc(after, cancel)
		context.AfterFunc(free, func() { timer.Stop() })
	})
	return free, l
}

// endsHandler records that the answer is for this client alone.
func (l *leaving) endsHandler() {
	l.alone.Store(true) // before the check whether the client has left, or neither side might cancel
	if l.left() != nil {
		l.cancel()
	}
}

func (l *leaving) end() {
	l.unlink()
	l.cancel()
}
