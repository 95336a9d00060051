package mayfly

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// WithRedisBudget returns a context in which all caches together wait for a Redis that does not answer for d at most, where each would wait for its
// RedisTimeout. It is for a request that asks several, one after the other:
//
//	ctx := mayfly.WithRedisBudget(r.Context(), 150*time.Millisecond)
//
// Only waiting in vain counts; a Redis that answers may be asked as often as you like. When the budget is spent reads go to the origin at
// once; writes and deletions are tried all the same. A context that has a budget keeps it: httpcache gives each request one, of what it has left
// of its own RedisTimeout.
func WithRedisBudget(ctx context.Context, d time.Duration) context.Context {
	return nodes.WithPurse(ctx, d)
}
