// Package sendonce sends commands about a value whose only copy is in Redis, and says what their errors mean. A command that must
// not be repeated is sent once. "Absent" and "down" are different answers, and a write whose reply was lost is neither: the
// caller is told that nobody knows.
package sendonce

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
)

// once is a command that go-redis does not repeat when the reply is lost. In [redis.ClusterClient.Process] it is one only if it names
// no two keys, and is not DEL, UNLINK, TOUCH, EXISTS or MSET: those go-redis takes apart and sends as commands of its own, which it
// repeats. In a pipeline they are sent as they are: see [Bounded.Many].
type once struct{ redis.Cmder }

func (once) NoRetry() bool { return true }

// do sends a command at most once, whatever the client's retries, and again only if the server answers that it was not executed.
func do(ctx context.Context, rdb Bounded, args ...any) (cmd *redis.Cmd) {
	return doAs(ctx, rdb, redis.NewCmd, args)
}

// doAs is do with a reply of a kind of its own.
func doAs[C redis.Cmder](ctx context.Context, rdb Bounded, make func(ctx context.Context, args ...any) C, args []any) (cmd C) {
	again.Until(ctx, func() (refused bool) {
		cmd = make(ctx, args...)
		return again.NotExecuted(rdb.Process(ctx, once{cmd}))
	})
	return cmd
}

// Write sends a command that writes the key full, at most once. For its error see [Outcome].
func Write(ctx context.Context, rdb Bounded, full string, args ...any) error {
	return Outcome(ctx, rdb, full, do(ctx, rdb, args...).Err())
}
