// Package background tracks the goroutines of something that can be closed, so that its Close can wait for all of them.
package background

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Group is the background work of one owner.
type Group struct {
	// Grace is how much longer Close waits for running work after it has ended its context. Set it before use. Zero: not at all.
	Grace time.Duration

	ended   error // the error after Close, and the cause of its contexts' end
	ctx     context.Context
	cancel  context.CancelCauseFunc
	closing chan struct{}

	works  sync.WaitGroup
	mu     sync.Mutex  // guards closed: nothing starts once it is set
	closed atomic.Bool // written under mu
}

// New returns a group whose error, once closed, is ended.
func New(ended error) *Group {
	g := &Group{ended: ended, closing: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	return g
}

// Start runs f in a goroutine. If the group is closed it reports false and does not run f.
func (g *Group) Start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		return false
	}
	g.works.Go(f)
	return true
}

// More counts a goroutine that running work is about to start, which is allowed even when the group is already closed. That goroutine calls
// Done at its end.
func (g *Group) More() { g.works.Add(1) }

// Done ends what More has counted.
func (g *Group) Done() { g.works.Done() }

// Err returns the group's error if it is closed.
func (g *Group) Err() error {
	if g.closed.Load() {
		return g.ended
	}
	return nil
}

// Closing is closed by Close: work that could run for long should end soon.
func (g *Group) Closing() <-chan struct{} { return g.closing }

// Context ends when the group is closed and its work is done, or when Close has waited long enough.
func (g *Group) Context() context.Context { return g.ctx }

// On returns a context with ctx's values that lives as long as the group instead of the caller.
func (g *Group) On(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(g.ctx, func() { cancel(g.ended) })
	return ctx, func() { stop(); cancel(nil) }
}

// Last returns a context for the last step of running work, such as giving back what it holds. The end of the group does not end it; from
// then on it has Group.Grace.
func (g *Group) Last(ctx context.Context) (context.Context, context.CancelFunc) {
	if g.ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), g.Grace)
}

// Close stops new work from starting and waits for running work until ctx ends. Then it ends the context of what still runs, allows it
// Grace for its last step, and returns ctx's error. It is safe to call Close again.
func (g *Group) Close(ctx context.Context) error {
	g.mu.Lock()
	if !g.closed.Swap(true) {
		close(g.closing)
	}
	g.mu.Unlock()
	defer g.cancel(g.ended)
	idle := make(chan struct{})
	go func() {
		g.works.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	g.cancel(g.ended)
	grace := time.NewTimer(g.Grace)
	defer grace.Stop()
	select {
	case <-idle:
	case <-grace.C:
	}
	return ctx.Err()
}
