// Package sendonce sends commands about a value whose only copy is in Redis, and says what their errors mean. It sends a command that must
// not be repeated only once. "Absent" and "down" are different answers. A write whose reply was lost is neither: the caller learns that the
// outcome is unknown.
package sendonce

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
)

// once is a command that go-redis does not repeat when its reply is lost. In [redis.ClusterClient.Process] that holds only if the command
// has a single key and is not DEL, UNLINK, TOUCH, EXISTS or MSET: go-redis splits those into commands of its own, which it repeats. In a
// pipeline it sends them as they are: see [Bounded.Many].
type once struct{ redis.Cmder }

func (once) NoRetry() bool { return true }

// do sends a command at most once, whatever the client's retries. It sends it again only if the server replies that it was not executed.
func do(ctx context.Context, rdb Bounded, args ...any) (cmd *redis.Cmd) {
	return doAs(ctx, rdb, redis.NewCmd, args)
}

// doAs is do for a reply of type C.
func doAs[C redis.Cmder](ctx context.Context, rdb Bounded, make func(ctx context.Context, args ...any) C, args []any) (cmd C) {
	again.Until(ctx, func() (refused bool) {
		cmd = make(ctx, args...)
		return again.NotExecuted(rdb.Process(ctx, once{cmd}))
	})
	return cmd
}

// Write sends a command that writes the key full, at most once. See [Outcome] for its error.
func Write(ctx context.Context, rdb Bounded, full string, args ...any) error {
	return Outcome(ctx, rdb, full, do(ctx, rdb, args...).Err())
}
