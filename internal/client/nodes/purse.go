package nodes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A request may pass several caches, each of which would wait for a Redis that does not answer. A purse in its context is what it may wait for that
// in all. Only waiting in vain is paid for: a Redis that answers may be asked as often as one likes.

// ErrSpent says that Redis is not asked, because this request has waited for it in vain as long as it may.
var ErrSpent = errors.New("redis is not asked: this request has waited for it long enough")

type purse struct{ left atomic.Int64 }

type purseKey struct{}

// WithPurse returns a context that may wait in vain for d in all. One that has a purse already keeps it.
func WithPurse(ctx context.Context, d time.Duration) context.Context {
	if ctx.Value(purseKey{}) != nil {
		return ctx
	}
	p := new(purse)
	p.left.Store(int64(d))
	return context.WithValue(ctx, purseKey{}, p)
}

// Purse returns what ctx may still wait in vain, d at most: zero if nothing is left.
func Purse(ctx context.Context, d time.Duration) time.Duration {
	if p, _ := ctx.Value(purseKey{}).(*purse); p != nil {
		return max(0, min(d, time.Duration(p.left.Load())))
	}
	return d
}

// Pay takes what a question has spent out of the purse of ctx, if it had no answer.
func Pay(ctx context.Context, spent time.Duration, err error) {
	if p, _ := ctx.Value(purseKey{}).(*purse); p != nil && err != nil && !Answered(err) {
		p.left.Add(-int64(spent))
	}
}
