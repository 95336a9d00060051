package sendonce

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Script is a Lua script that accesses one key, or several keys of one server.
type Script struct{ nodes.Script }

// NewScript returns the script of a Lua source.
func NewScript(source string) Script { return Script{nodes.NewScript(source)} }

// Run runs the script. go-redis may repeat it, so it is for reads, and for renewals that may come late.
func (s Script) Run(ctx context.Context, rdb Bounded, key string, args ...any) *redis.Cmd {
	return run(ctx, rdb, s, []string{key}, args, redis.NewCmd, func(all []any) *redis.Cmd {
		cmd := redis.NewCmd(ctx, all...)
		rdb.Process(ctx, cmd)
		return cmd
	})
}

// RunOnce runs the script. It sends it once, and again only if the server replies that it did not execute it, because it does not know the
// script or because of [again.NotExecuted].
func (s Script) RunOnce(ctx context.Context, rdb Bounded, key string, args ...any) *redis.Cmd {
	return run(ctx, rdb, s, []string{key}, args, redis.NewCmd, func(all []any) *redis.Cmd { return do(ctx, rdb, all...) })
}

// IntsOnce is RunOnce for a script that answers with integers.
func (s Script) IntsOnce(ctx context.Context, rdb Bounded, key string, args ...any) ([]int64, error) {
	return s.IntsOnceOf(ctx, rdb, []string{key}, args...)
}

// IntsOnceOf is IntsOnce for several keys of one server, or of one slot of a cluster.
func (s Script) IntsOnceOf(ctx context.Context, rdb Bounded, keys []string, args ...any) ([]int64, error) {
	return run(ctx, rdb, s, keys, args, redis.NewIntSliceCmd, func(all []any) *redis.IntSliceCmd { return doAs(ctx, rdb, redis.NewIntSliceCmd, all) }).Result()
}

func run[C redis.Cmder](ctx context.Context, rdb Bounded, s Script, keys []string, args []any, blank func(context.Context, ...any) C, send func(all []any) C) (cmd C) {
	var sent bool
	node, err := rdb.node(ctx, keys[0])
	if err == nil {
		err = node.Named(ctx, []nodes.Script{s.Script}, func(mine []int, whole func(int) bool) (unknown []int) {
			sent, cmd = true, send(s.command(keys, args, whole(0)))
			if nodes.IsUnknown(cmd.Err()) {
				return mine
			}
			return nil
		})
	}
	if !sent {
		cmd = blank(ctx)
	}
	if err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

func (s Script) command(keys []string, args []any, whole bool) []any {
	name, script := s.By(whole)
	all := make([]any, 0, 3+len(keys)+len(args))
	all = append(all, name, script, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	return append(all, args...)
}

// Each runs the script for each of the keys fulls, with the arguments that args returns for it: on a cluster concurrently, in one trip for
// each node. go-redis may repeat it. Each command has its own error.
func (s Script) Each(ctx context.Context, rdb Bounded, fulls []string, args func(i int) []any) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(fulls))
	rdb.Nodes.Each(ctx, fulls, func(node *nodes.Node, mine []int) {
		err := node.Named(ctx, slices.Repeat([]nodes.Script{s.Script}, len(mine)), func(some []int, whole func(int) bool) (unknown []int) {
			trip := make([]redis.Cmder, len(some))
			for n, k := range some {
				i := mine[k]
				cmds[i] = redis.NewCmd(ctx, s.command(fulls[i:i+1], args(i), whole(k))...)
				trip[n] = cmds[i]
			}
			unanswered(node.Ask(ctx, trip...), trip)
			for n, k := range some {
				if nodes.IsUnknown(trip[n].Err()) {
					unknown = append(unknown, k)
				}
			}
			return unknown
		})
		for _, i := range mine {
			if cmds[i] == nil {
				cmds[i] = redis.NewCmd(ctx)
				cmds[i].SetErr(err)
			} else if err != nil && nodes.IsUnknown(cmds[i].Err()) {
				cmds[i].SetErr(err)
			}
		}
	}, func(i int, err error) {
		cmds[i] = redis.NewCmd(ctx)
		cmds[i].SetErr(nodes.Left(err))
	})
	return cmds
}
