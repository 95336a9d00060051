package onlycopy

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Script is a redis.Script that can also be sent once.
type Script struct {
	*redis.Script
	source string
}

// NewScript returns the script of a Lua source.
func NewScript(source string) Script { return Script{redis.NewScript(source), source} }

// RunOnce runs the script on one key. It is sent once, and once more only if the server did not know it.
func (s Script) RunOnce(ctx context.Context, rdb redis.UniversalClient, key string, args ...any) *redis.Cmd {
	return sendOnce(ctx, rdb, s, key, args, func(args []any) (*redis.Cmd, redis.Cmder) {
		cmd := redis.NewCmd(ctx, args...)
		return cmd, once{cmd}
	})
}

// IntsOnce is RunOnce for a script that answers with integers.
func (s Script) IntsOnce(ctx context.Context, rdb redis.UniversalClient, key string, args ...any) ([]int64, error) {
	return sendOnce(ctx, rdb, s, key, args, func(args []any) (*redis.IntSliceCmd, redis.Cmder) {
		cmd := redis.NewIntSliceCmd(ctx, args...)
		return cmd, onceInts{cmd}
	}).Result()
}

type onceInts struct{ *redis.IntSliceCmd }

func (onceInts) NoRetry() bool { return true }

func sendOnce[C redis.Cmder](ctx context.Context, rdb redis.UniversalClient, s Script, key string, args []any, build func([]any) (C, redis.Cmder)) C {
	all := append(make([]any, 0, 4+len(args)), "evalsha", s.Hash(), 1, key)
	cmd, sent := build(append(all, args...))
	rdb.Process(ctx, sent)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		all := append(make([]any, 0, 4+len(args)), "eval", s.source, 1, key)
		cmd, sent = build(append(all, args...))
		rdb.Process(ctx, sent)
	}
	return cmd
}
