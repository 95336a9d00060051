package truth

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
func (s Script) RunOnce(ctx context.Context, rdb redis.UniversalClient, key string, args ...any) Command {
	send := func(name, script string) Command {
		cmd := Once(ctx, append([]any{name, script, 1, key}, args...)...)
		rdb.Process(ctx, cmd)
		return cmd
	}
	cmd := send("evalsha", s.Hash())
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = send("eval", s.source)
	}
	return cmd
}
