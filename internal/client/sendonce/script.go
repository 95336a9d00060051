package sendonce

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Script is a Lua script about one key.
type Script struct {
	*redis.Script
	source string
}

// NewScript returns the script of a Lua source.
func NewScript(source string) Script { return Script{redis.NewScript(source), source} }

// Run runs the script, which go-redis may repeat: for reads, and renewals that may come late.
func (s Script) Run(ctx context.Context, rdb Client, key string, args ...any) *redis.Cmd {
	return run(s, key, args, func(all []any) *redis.Cmd {
		cmd := redis.NewCmd(ctx, all...)
		rdb.Process(ctx, cmd)
		return cmd
	})
}

// RunOnce runs the script. It is sent once, and again only if the server answers that it did not execute it: it does not know it, or see
// [again.NotExecuted].
func (s Script) RunOnce(ctx context.Context, rdb Client, key string, args ...any) *redis.Cmd {
	return run(s, key, args, func(all []any) *redis.Cmd { return do(ctx, rdb, all...) })
}

// IntsOnce is RunOnce for a script that answers with integers.
func (s Script) IntsOnce(ctx context.Context, rdb Client, key string, args ...any) ([]int64, error) {
	return run(s, key, args, func(all []any) (cmd *redis.IntSliceCmd) {
		again.Until(ctx, func() (refused bool) {
			cmd = redis.NewIntSliceCmd(ctx, all...)
			if err := ctx.Err(); err != nil {
				cmd.SetErr(nodes.Left(err))
				return false
			}
			return again.NotExecuted(rdb.Process(ctx, onceInts{cmd}))
		})
		return cmd
	}).Result()
}

func run[C redis.Cmder](s Script, key string, args []any, send func(all []any) C) C {
	cmd := send(slices.Concat([]any{"evalsha", s.Hash(), 1, key}, args))
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = send(slices.Concat([]any{"eval", s.source, 1, key}, args))
	}
	return cmd
}
