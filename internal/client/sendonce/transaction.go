package sendonce

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
	"github.com/mayflycache/mayfly/internal/client/nodes"
)

// Kind is what the keys of a pattern hold. It is a command that changes nothing, and fails for a key of another type.
type Kind []any

var (
	List      = Kind{"llen"}
	Hash      = Kind{"hlen"}
	SortedSet = Kind{"zcard"}
	Counter   = Kind{"incrby", 0} // the key is its first argument, as with the others
)

// Exec sends MULTI, cmds and EXEC in one trip, and they are never executed twice: see [nodes.Node.Transact]. It sends them again if the
// server replies that it executed none of them. See [Outcome] for the error.
func Exec(ctx context.Context, rdb Bounded, full string, cmds ...redis.Cmder) error {
	return Outcome(ctx, rdb, full, rdb.exec(ctx, full, cmds))
}

// Snapshot reads with commands that all see the same moment.
func Snapshot(ctx context.Context, rdb Bounded, full string, reads ...redis.Cmder) error {
	return Answer(ctx, rdb, full, rdb.exec(ctx, full, reads))
}

// exec is Exec with the error as it is.
func (b Bounded) exec(ctx context.Context, full string, cmds []redis.Cmder) (err error) {
	again.Until(ctx, func() (refused bool) {
		var node *nodes.Node
		if node, err = b.node(ctx, full); err == nil {
			err = node.Transact(ctx, cmds...)
		}
		return aborted(err, cmds)
	})
	return err
}

// aborted reports whether a transaction was not executed because of the reply to one of its commands, or to EXEC itself.
func aborted(err error, cmds []redis.Cmder) bool {
	if !redis.HasErrorPrefix(err, "EXECABORT") {
		return again.NotExecuted(err)
	}
	_, why, _ := strings.Cut(err.Error(), "because of: ")
	return again.Refusal(why) || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return again.NotExecuted(cmd.Err()) })
}

// Transact is [Exec] for commands that write one key of this kind. One of them is a PEXPIRE, so that the key is never without a TTL.
//
// Transactions have no conditions. Writing a key of another kind fails and leaves its value alone. But the PEXPIRE takes effect all the
// same, and would expire somebody else's data. So the transaction also asks when the key ended before, and a key of another kind gets that
// back. If is is nil, the key is known to be of the kind, and Transact does not ask.
func Transact(ctx context.Context, rdb Bounded, full string, is Kind, cmds ...redis.Cmder) error {
	var before *redis.IntCmd
	if is != nil {
		before = redis.NewIntCmd(ctx, "pexpiretime", full)
		cmds = slices.Concat([]redis.Cmder{before}, cmds)
	}
	err := Exec(ctx, rdb, full, cmds...)
	if err != nil && before != nil {
		err = errors.Join(err, giveBack(ctx, rdb, full, is, before))
	}
	return err
}

// giveBack restores the end that a key of another kind had before a transaction. In between the key may have been deleted and created anew,
// by its owner or by us: if it is of our kind now, giveBack leaves it alone.
func giveBack(ctx context.Context, rdb Bounded, full string, is Kind, before *redis.IntCmd) error {
	end, err := before.Result()
	if err != nil || end < noEnd {
		return nil // the transaction did not run, or the key did not exist
	}
	args := append([]any{end}, is...)
	if err := restore.RunOnce(context.WithoutCancel(ctx), rdb, full, args...).Err(); err != nil {
		return fmt.Errorf("a key of another kind now expires too early: its former PEXPIRETIME, %d, could not be restored: %w", end, err)
	}
	return nil
}

const noEnd = -1 // the PEXPIRETIME of a key without a TTL

// restore  k, PEXPIRETIME before, the kind's command.
var restore = NewScript(`if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local ours = redis.pcall(ARGV[2], KEYS[1], unpack(ARGV, 3))
if type(ours) ~= 'table' or not ours.err then return 0 end
if ARGV[1] == '-1' then return redis.call('PERSIST', KEYS[1]) end
return redis.call('PEXPIREAT', KEYS[1], ARGV[1])`)
