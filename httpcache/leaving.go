package httpcache

import (
	"context"
	"sync/atomic"
	"time"
)

// leaving decides whether the handler's context ends when its client leaves. It ends at once if the answer is for this client
// alone, as it would without a cache. While that is not known, and when the answer is for others too, it ends after a while.
type leaving struct {
	left   func() error // not nil when the client has left
	cancel context.CancelFunc
	unlink func() bool
	alone  atomic.Bool // the answer is for this client alone
}

// newLeaving returns the context for a request whose own is ctx, which outlives that by after at most. end must be called.
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

// endsHandler says that the answer is for this client alone.
func (l *leaving) endsHandler() {
	l.alone.Store(true) // before the question whether the client has left, or neither side would cancel
	if l.left() != nil {
		l.cancel()
	}
}

func (l *leaving) end() {
	l.unlink()
	l.cancel()
}
