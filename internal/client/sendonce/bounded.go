package sendonce

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/again"
	"github.com/mayflycache/mayfly/internal/client/events"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Bounded is a client whose requests each have a time budget. It does not ask a server that has not answered recently: see package
// nodes. Each request is about one key, and goes to the master that has it.
type Bounded struct{ *nodes.Nodes }

// To returns the Bounded for the Redis of a namespace. Each question may take timeout; zero means [nodes.Timeout]. To reports what is dangerous
// about the client to the namespace's observer.
func To(rdb redis.UniversalClient, observer mayfly.Observer, namespace string, timeout time.Duration) Bounded {
	tell := events.To(observer, namespace)
	tell.Warnings(nodes.Warnings(rdb, timeout))
	return Bounded{nodes.New(nodes.Options{Redis: rdb, Timeout: cmp.Or(timeout, nodes.Timeout), Breaker: tell.Breaker, Waited: tell.Waited})}
}

// Process sends cmd. Its key is the first argument or, for a script, the first of the script's keys.
func (b Bounded) Process(ctx context.Context, cmd redis.Cmder) error {
	b.Ask(ctx, keyOf(cmd), cmd)
	return cmd.Err()
}

func keyOf(cmd redis.Cmder) string {
	args, at := cmd.Args(), 1
	if name := cmd.Name(); name == "eval" || name == "evalsha" {
		at = 3
	}
	key, _ := args[at].(string)
	return key
}

// Ask sends commands about the key full in one trip. Each has its own error.
func (b Bounded) Ask(ctx context.Context, full string, cmds ...redis.Cmder) {
	node, err := b.node(ctx, full)
	if err == nil {
		err = node.Ask(ctx, cmds...)
	}
	unanswered(err, cmds)
}

// node returns the server that has the key full. Its error says that nothing was sent.
func (b Bounded) node(ctx context.Context, full string) (*nodes.Node, error) {
	node, err := b.Of(ctx, full)
	if err != nil {
		return nil, nodes.Left(err)
	}
	return node, nil
}

// Each sends a command for each of the keys fulls: on a cluster concurrently, in one trip for each node. Each command has its own error.
func (b Bounded) Each(ctx context.Context, fulls []string, cmds []redis.Cmder) {
	b.Nodes.Each(ctx, fulls, func(node *nodes.Node, mine []int) {
		theirs := make([]redis.Cmder, len(mine))
		for n, i := range mine {
			theirs[n] = cmds[i]
		}
		unanswered(node.Ask(ctx, theirs...), theirs)
	}, func(i int, err error) { cmds[i].SetErr(nodes.Left(err)) })
}

// Many sends a write for each of the keys fulls as [Bounded.Each] does, each at most once. See [Outcome] for what the error of one means.
func (b Bounded) Many(ctx context.Context, fulls []string, writes [][]any) []*redis.Cmd {
	sent := make([]*redis.Cmd, len(writes))
	again.Until(ctx, func() (refused bool) {
		var keys []string
		var cmds []redis.Cmder
		for i, args := range writes {
			if sent[i] == nil || again.NotExecuted(sent[i].Err()) {
				sent[i] = redis.NewCmd(ctx, args...)
				keys, cmds = append(keys, fulls[i]), append(cmds, once{sent[i]})
			}
		}
		b.Each(ctx, keys, cmds)
		return slices.ContainsFunc(sent, func(cmd *redis.Cmd) bool { return again.NotExecuted(cmd.Err()) })
	})
	return sent
}

// unanswered sets the error of commands whose trip was not made or was too slow.
func unanswered(err error, cmds []redis.Cmder) {
	if err == nil {
		return
	}
	sent := slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return cmd.Err() != nil })
	for _, cmd := range cmds {
		was := cmd.Err()
		if !sent || (errors.Is(err, nodes.ErrSlow) || nodes.Unsent(err)) && was != nil && !nodes.Answered(was) && !again.NotExecuted(was) {
			cmd.SetErr(err)
		}
	}
}
