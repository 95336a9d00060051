package httpcache

import (
	"context"
	"sync"
	"time"
)

// leaving decides whether the handler's context ends when its client leaves. It ends at once if the answer is for this client
// alone, as it would without a cache. While that is not known, and when the answer is for others too, it ends after a while.
type leaving struct {
	cancel context.CancelFunc
	unlink func() bool

	mu    sync.Mutex  // guards the rest
	alone bool        // the answer is for this client alone
	timer *time.Timer // set when the client has left
}

// newLeaving returns the context for a request whose own is ctx, which outlives that by after at most. end must be called.
func newLeaving(ctx context.Context, after time.Duration) (context.Context, *leaving) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	l := &leaving{cancel: cancel}
	l.unlink = context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.alone {
			cancel()
		} else {
			l.timer = time.AfterFunc(after, cancel)
		}
	})
	return free, l
}

// endsHandler says that the answer is for this client alone.
func (l *leaving) endsHandler() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alone = true; l.timer != nil {
		l.cancel()
	}
}

func (l *leaving) end() {
	l.unlink()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil {
		l.timer.Stop()
	}
	l.cancel()
}
