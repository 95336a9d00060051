package httpcache

import (
	"context"
	"sync"
	"time"
)

// tether is what a handler's context hangs on. While it is not known whether the answer is for others too, and when it
// is, the client's leaving does not end the context, but after a while; when it is not, it does, as it would without a cache.
type tether struct {
	cancel context.CancelFunc
	unlink func() bool
	after  time.Duration

	mu    sync.Mutex // guards the rest
	tied  bool       // the answer is for this client alone
	left  bool       // it has left
	timer *time.Timer
}

// tie returns the context for a request whose own is ctx. end must be called.
func tie(ctx context.Context, after time.Duration) (context.Context, *tether) {
	free, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &tether{cancel: cancel, after: after}
	t.unlink = context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.left = true; t.tied {
			t.cancel()
		} else {
			t.timer = time.AfterFunc(t.after, t.cancel)
		}
	})
	return free, t
}

// tighten says that the answer is for this client alone.
func (t *tether) tighten() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tied = true; t.left {
		t.cancel()
	}
}

func (t *tether) end() {
	t.unlink()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	t.cancel()
}
