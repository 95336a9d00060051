// Package background keeps the books of the goroutines of something that can be closed: each is counted, and Close waits for all
// of them.
package background

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Group is the background work of one owner.
type Group struct {
	// Grace, set before use, is how much longer Close waits for what runs when it has ended its context. Zero is not at all.
	Grace time.Duration

	ended   error // what is returned, and the cause of contexts, once it is closed
	ctx     context.Context
	cancel  context.CancelCauseFunc
	closing chan struct{}

	works  sync.WaitGroup
	mu     sync.Mutex  // guards closed: nothing starts while it is set
	closed atomic.Bool // written under mu
}

// New returns a group that says ended when it is closed.
func New(ended error) *Group {
	g := &Group{ended: ended, closing: make(chan struct{})}
	g.ctx, g.cancel = context.WithCancelCause(context.Background())
	return g
}

// Start runs f in a goroutine, unless the group is closed: then it does not, and reports false.
func (g *Group) Start(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed.Load() {
		return false
	}
	g.works.Go(f)
	return true
}

// More counts a goroutine that running work starts, so that it may start when the group is already closed. Its end calls Done.
func (g *Group) More() { g.works.Add(1) }

// Done is the end of what More has counted.
func (g *Group) Done() { g.works.Done() }

// Err returns an error if the group is closed.
func (g *Group) Err() error {
	if g.closed.Load() {
		return g.ended
	}
	return nil
}

// Closing is closed when Close is called: what could go on for long ends soon then.
func (g *Group) Closing() <-chan struct{} { return g.closing }

// Context ends when the group is closed and its work is done, or Close has waited long enough.
func (g *Group) Context() context.Context { return g.ctx }

// On returns ctx's values with the life of the group instead of the caller's.
func (g *Group) On(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(g.ctx, func() { cancel(g.ended) })
	return ctx, func() { stop(); cancel(nil) }
}

// Last returns ctx for the last thing that work does, such as to give back what it holds: the end of the group does not end it, but it
// has Group.Grace.
func (g *Group) Last(ctx context.Context) (context.Context, context.CancelFunc) {
	if g.ctx.Err() == nil {
		return ctx, func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), g.Grace)
}

// Close lets nothing more start and waits for what runs, but not longer than ctx; what still runs then finds its context
// ended, has Grace to do its last thing, and the error is ctx's. Closing again is fine.
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
