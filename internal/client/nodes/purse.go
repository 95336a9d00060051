package nodes

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// A request may pass several caches, each of which would wait for a Redis that does not answer. A purse in the request's context limits
// this wait in total. Only waiting in vain is charged: a Redis that answers may be asked any number of times.

// ErrSpent says that Redis was not asked because this request has already waited for it in vain for as long as it may.
var ErrSpent = errors.New("redis was not asked: this request has already waited for it long enough")

type purse struct{ left atomic.Int64 }

type purseKey struct{}

// WithPurse returns a context that may wait in vain for d in total. A context that already has a purse keeps it.
func WithPurse(ctx context.Context, d time.Duration) context.Context {
	if ctx.Value(purseKey{}) != nil {
		return ctx
	}
	p := new(purse)
	p.left.Store(int64(d))
	return context.WithValue(ctx, purseKey{}, p)
}

// Purse returns how long ctx may still wait in vain, up to d; zero if nothing is left.
func Purse(ctx context.Context, d time.Duration) time.Duration {
	if p, _ := ctx.Value(purseKey{}).(*purse); p != nil {
		return max(0, min(d, time.Duration(p.left.Load())))
	}
	return d
}

// Pay charges the purse of ctx for the time of a question that got no answer.
func Pay(ctx context.Context, spent time.Duration, err error) {
	if p, _ := ctx.Value(purseKey{}).(*purse); p != nil && err != nil && !Answered(err) {
		p.left.Add(-int64(spent))
	}
}
