// Package sendonce sends commands about a value whose only copy is in Redis, and says what their errors mean. A command that must
// not be repeated is sent once. "Absent" and "down" are different answers, and a write whose reply was lost is neither: the
// caller is told that nobody knows.
package sendonce

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// once is a command that go-redis does not repeat when the reply is lost.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// onceInts is once for a reply of integers.
type onceInts struct{ *redis.IntSliceCmd }

func (onceInts) NoRetry() bool { return true }

// do sends a command at most once, whatever the client's retries.
func do(ctx context.Context, rdb redis.UniversalClient, args ...any) *redis.Cmd {
	cmd := redis.NewCmd(ctx, args...)
	rdb.Process(ctx, once{cmd})
	return cmd
}

// Write sends a command that writes the key full, at most once. For its error see [Outcome].
func Write(ctx context.Context, rdb redis.UniversalClient, full string, args ...any) error {
	return Outcome(ctx, rdb, full, do(ctx, rdb, args...).Err())
}
