package nodes

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
)

// ErrOpen says that a server was not asked because it did not answer lately.
var ErrOpen = errors.New("redis is not asked: its breaker is open")

// ErrSlow says that a server did not answer within Options.Timeout.
var ErrSlow = errors.New("redis did not answer in time")

// Node is one Redis server: how to ask it within the budget, and whether to ask it at all.
//
// A client that respects contexts is asked on a context of the whole budget. One that does not (go-redis's default)
// heeds a context while it waits for a connection, and its own timeouts from then on; for it a third of the budget is
// for the connection, and a clone on the same pool with the other two thirds as timeout is asked. One that sets no deadlines
// (ReadTimeout -2) is asked by a clone too. Such a clone runs no hooks: see Warnings.
type Node struct {
	name    string
	client  asker
	cluster *redis.ClusterClient // knows where else a key may be; nil if there is nowhere else
	limits  limits               // by the context's share of the budget
	budget  time.Duration
	breaker Breaker
	told    func(server string, open bool)
	moved   func() // of the cluster
}

// asker is what a server needs of a client.
type asker interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
}

// Ask1 is Ask for one command, without the slice for several.
func (n *Node) Ask1(ctx context.Context, cmd redis.Cmder) error {
	begun, err := n.begin(ctx)
	if err != nil {
		return err
	}
	limited := n.limits.begin(ctx, begun)
	defer n.limits.end(limited)
	n.client.Process(limited, cmd)
	return n.end(ctx, begun, n.settle(limited, cmd))
}

// Ask sends commands in one trip. Its error says that there was no answer; an answer that is an error is its command's.
func (n *Node) Ask(ctx context.Context, cmds ...redis.Cmder) error {
	if len(cmds) == 1 {
		return n.Ask1(ctx, cmds[0])
	}
	begun, err := n.begin(ctx)
	if err != nil {
		return err
	}
	limited := n.limits.begin(ctx, begun)
	defer n.limits.end(limited)
	pipe := n.client.Pipeline()
	pipe.BatchProcess(limited, cmds...)
	pipe.Exec(limited)
	for _, cmd := range cmds {
		if err := n.settle(limited, cmd); err != nil {
			return n.end(ctx, begun, err)
		}
	}
	return n.end(ctx, begun, nil)
}

func (n *Node) begin(ctx context.Context) (time.Time, error) {
	now := time.Now()
	if err := ctx.Err(); err != nil {
		return now, err
	}
	if n.breaker.Allow(now) == Refuse {
		return now, ErrOpen
	}
	return now, nil
}

// AskOnce is Ask for writes: what was sent is not sent again, so that nothing of it is left on the way when this returns nil. Only
// what a server answered that it has not done is repeated, within the budget.
func (n *Node) AskOnce(ctx context.Context, cmds ...redis.Cmder) error {
	begun, err := n.begin(ctx)
	if err != nil {
		return err
	}
	limited := n.limits.begin(ctx, begun)
	defer n.limits.end(limited)
	writes := make([]redis.Cmder, len(cmds))
	for i, cmd := range cmds {
		writes[i] = once{cmd}
	}
	for pause := firstPause; ; pause *= 2 {
		if len(writes) == 1 {
			n.client.Process(limited, writes[0])
		} else {
			pipe := n.client.Pipeline()
			pipe.BatchProcess(limited, writes...)
			pipe.Exec(limited)
		}
		var undone []redis.Cmder
		for _, cmd := range writes {
			switch err := n.settle(limited, cmd); {
			case again.NotExecuted(cmd.Err()):
				undone = append(undone, cmd)
			case err != nil:
				return n.end(ctx, begun, err)
			}
		}
		if len(undone) == 0 {
			return n.end(ctx, begun, nil)
		}
		if pause > lastPause || again.Sleep(limited, pause) != nil {
			return n.end(ctx, begun, n.settle(limited, undone[0]))
		}
		for _, cmd := range undone {
			cmd.SetErr(nil)
		}
		writes = undone
	}
}

// Between writes that a server has not done: as go-redis waits, which would repeat them too if they were not sent once.
const (
	firstPause = 8 * time.Millisecond
	lastPause  = 32 * time.Millisecond
)

// once is a command that go-redis does not repeat when the reply is lost.
type once struct{ redis.Cmder }

func (once) NoRetry() bool { return true }

// settle returns an error if cmd got no answer. An answer that sends the caller elsewhere is followed.
func (n *Node) settle(ctx context.Context, cmd redis.Cmder) error {
	err := cmd.Err()
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if n.cluster != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.IsReadOnlyError(err)) {
		if n.moved != nil {
			n.moved()
		}
		n.cluster.ReloadState(ctx)
		cmd.SetErr(nil)
		n.cluster.Process(ctx, cmd)
		if err = cmd.Err(); err == nil {
			return nil
		}
	}
	if Answered(err) {
		return nil
	}
	return err
}
