package mayfly

import (
	"context"
	"time"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// WithRedisBudget returns a context in which all caches together wait at most d for a Redis that does not answer. Otherwise each waits for its own
// RedisTimeout. It is for a request that uses several caches, one after the other:
//
//	ctx := mayfly.WithRedisBudget(r.Context(), 150*time.Millisecond)
//
// Only time spent without an answer counts; a Redis that answers may be asked as often as you like. When the budget is spent, reads go to the origin at
// once; writes and deletions are still tried. A context that has a budget keeps it: httpcache gives each request one, the rest of its own
// RedisTimeout.
func WithRedisBudget(ctx context.Context, d time.Duration) context.Context {
	return nodes.WithPurse(ctx, d)
}
