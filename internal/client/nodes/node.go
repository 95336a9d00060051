package nodes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
	"github.com/mayflycache/mayfly/internal/client/turns"
)

// ErrOpen says that a server was not asked because it has not answered recently.
var ErrOpen = errors.New("redis was not asked: its breaker is open")

// ErrSlow says that a server did not answer within Options.Timeout.
var ErrSlow = errors.New("redis did not answer in time")

// Node is one Redis server: how to ask it within the budget, and whether to ask it at all.
//
// A client that respects contexts is asked with a context of the whole budget. A client that does not (go-redis's default) heeds a context
// while it waits for a connection, and after that its own timeouts. It is asked through a clone on the same pool that respects contexts. So
// is a client that sets no deadlines (ReadTimeout -2). Such a clone runs no hooks: see Warnings.
type Node struct {
	name    string
	client  asker
	cluster *redis.ClusterClient // knows where else a key may be; nil: nowhere else
	ring    *redis.Ring          // the ring that it is a shard of
	limits  limits
	budget  time.Duration
	breaker Breaker
	told    func(server string, open bool)
	moved   func() // tells the owner that a slot of the cluster has moved
	start   func(func()) bool
	closing <-chan struct{} // nil: nothing would end background work
	watched atomic.Bool     // without an owner: a timer waits until calls end
	warming atomic.Bool     // a connection is being made in the background

	pool   *redis.Client // has the connections; nil if they are not known
	gate   *turns.Gate   // in front of the connections; nil if they are not known
	line   *turns.Line   // for reads that wait; nil without a gate
	clock  *clock        // nil if it is not known which server would tell its time
	wait   time.Duration
	waited func(ctx context.Context, took time.Duration, n int, err error)
	trips  sync.Pool     // of *trip
	loads  sync.Map      // by a script's name: *load
	hits   atomic.Uint32 // of the pool, when a call last waited for a connection in vain
}

// asker is what Node needs of a client.
type asker interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	Pipeline() redis.Pipeliner
	TxPipeline() redis.Pipeliner
}

// Ask1 is Ask for one command, without allocating a slice.
func (n *Node) Ask1(ctx context.Context, cmd redis.Cmder) error {
	t, err := n.enter(ctx)
	if err != nil {
		return err
	}
	defer t.leave()
	n.client.Process(t.limited, cmd)
	return t.end(n.settle(t.limited, cmd))
}

// Ask sends commands in one trip. Its error says that there was no answer. If the answer is an error, its command has it.
func (n *Node) Ask(ctx context.Context, cmds ...redis.Cmder) error {
	if len(cmds) == 1 {
		return n.Ask1(ctx, cmds[0])
	}
	_, err := n.ask(ctx, cmds...)
	return err
}

// ask is Ask in a pipeline. It also returns when it got its turn and sent the commands.
func (n *Node) ask(ctx context.Context, cmds ...redis.Cmder) (sent time.Time, err error) {
	t, err := n.enter(ctx)
	if err != nil {
		return t.begun, err
	}
	defer t.leave()
	pipe := n.client.Pipeline()
	pipe.BatchProcess(t.limited, cmds...)
	pipe.Exec(t.limited)
	for _, cmd := range cmds {
		if err := n.settle(t.limited, cmd); err != nil {
			return t.begun, t.end(err)
		}
	}
	return t.begun, t.end(nil)
}

// AskOnce is Ask for writes. It never sends again what may have been executed, so when it returns nil no copy of a write is still on its
// way. It repeats only commands that the server replied it has not executed, within the budget.
func (n *Node) AskOnce(ctx context.Context, cmds ...redis.Cmder) error {
	t, err := n.enter(ctx)
	if err != nil {
		return err
	}
	defer t.leave()
	writes := make([]redis.Cmder, len(cmds))
	for i, cmd := range cmds {
		writes[i] = once{cmd}
	}
	for pause := firstPause; ; pause *= 2 {
		if len(writes) == 1 {
			n.client.Process(t.limited, writes[0])
		} else {
			pipe := n.client.Pipeline()
			pipe.BatchProcess(t.limited, writes...)
			pipe.Exec(t.limited)
		}
		var undone []redis.Cmder
		for _, cmd := range writes {
			switch err := n.settle(t.limited, cmd); {
			case again.NotExecuted(cmd.Err()):
				undone = append(undone, cmd)
			case err != nil:
				return t.end(err)
			}
		}
		if len(undone) == 0 {
			return t.end(nil)
		}
		t.limited.link()
		if pause > lastPause || again.Sleep(t.limited, pause) != nil {
			return t.end(n.settle(t.limited, undone[0]))
		}
		for _, cmd := range undone {
			cmd.SetErr(nil)
		}
		writes = undone
	}
}

// Pauses between repetitions of writes that a server refused: as long as go-redis pauses, which would repeat them too if they were not sent
// once.
const (
	firstPause = 8 * time.Millisecond
	lastPause  = 32 * time.Millisecond
)

// once is a command that go-redis does not repeat when its reply is lost.
type once struct{ redis.Cmder }

func (once) NoRetry() bool { return true }

// settle returns an error if cmd got no answer. It follows an answer that points to another server.
func (n *Node) settle(ctx context.Context, cmd redis.Cmder) error {
	err := cmd.Err()
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if n.elsewhere(err) && (n.cluster != nil || !cmd.NoRetry()) {
		n.goOn(ctx, cmd)
		if err = cmd.Err(); err == nil {
			return nil
		}
	}
	if Answered(err) {
		return nil
	}
	if cmd.NoRetry() && neverSent(err) {
		return Left(err)
	}
	return err
}

// Transact sends commands in one trip between MULTI and EXEC. They are never executed twice: go-redis repeats a transaction only if it
// could not send all of it, and without its EXEC a transaction does nothing. Transact returns the error of EXEC or the first error of a
// command, or says that there was no answer.
func (n *Node) Transact(ctx context.Context, cmds ...redis.Cmder) error {
	t, err := n.enter(ctx)
	if err != nil {
		return err
	}
	defer t.leave()
	exec := func(pipe redis.Pipeliner) error {
		pipe.BatchProcess(t.limited, cmds...)
		_, err := pipe.Exec(t.limited)
		return err
	}
	err = exec(n.client.TxPipeline())
	if n.cluster != nil && (n.elsewhere(err) || redis.HasErrorPrefix(err, "EXECABORT") && slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return n.elsewhere(cmd.Err()) })) {
		n.reload(t.limited)
		for _, cmd := range cmds {
			cmd.SetErr(nil)
		}
		err = exec(n.cluster.TxPipeline())
	}
	switch {
	case err == nil, errors.Is(err, redis.Nil), Answered(err):
		t.end(nil)
		return err
	case neverSent(err):
		err = Left(err)
	}
	return t.end(err)
}

// elsewhere reports whether another server may have the answer: the one that a cluster's server points to or, if the connection to a shard
// of a ring broke, the shard that the ring uses now.
func (n *Node) elsewhere(err error) bool {
	switch {
	case n.cluster != nil:
		return redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK") || redis.IsReadOnlyError(err)
	case n.ring != nil:
		var reply redis.Error
		return !errors.As(err, &reply) && !isTimeout(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
	}
	return false
}

// goOn asks another server. That one has another clock, so the answer says nothing about this server's clock.
func (n *Node) goOn(ctx context.Context, cmd redis.Cmder) {
	if n.clock != nil {
		n.clock.detours.Add(1)
	}
	if n.ring != nil {
		cmd.SetErr(nil)
		n.ring.Process(ctx, cmd)
		return
	}
	n.reload(ctx)
	cmd.SetErr(nil)
	n.cluster.Process(ctx, cmd)
}

// reload makes the cluster client read its slots again.
func (n *Node) reload(ctx context.Context) {
	if n.moved != nil {
		n.moved()
	}
	n.cluster.ReloadState(ctx)
}
