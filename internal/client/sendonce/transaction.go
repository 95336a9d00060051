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

// Kind is what the keys of a pattern hold, told by a command that answers an error for any other, and changes nothing.
type Kind []any

var (
	List      = Kind{"llen"}
	Hash      = Kind{"hlen"}
	SortedSet = Kind{"zcard"}
	Counter   = Kind{"incrby", 0} // the key is its first argument, as of the others
)

// Exec sends MULTI, cmds, EXEC in one trip, and never twice: see [nodes.Node.Transact]. It is sent again if the server answers that none of it
// was executed. For the error see [Outcome].
func Exec(ctx context.Context, rdb Bounded, full string, cmds ...redis.Cmder) error {
	return Outcome(ctx, rdb, full, rdb.exec(ctx, full, cmds))
}

// Snapshot reads by commands that see the same moment.
func Snapshot(ctx context.Context, rdb Bounded, full string, reads ...redis.Cmder) error {
	return Answer(ctx, rdb, full, rdb.exec(ctx, full, reads))
}

// exec is Exec with the error as it came.
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

// aborted reports whether a transaction was not executed for what one of its commands was answered, or EXEC itself.
func aborted(err error, cmds []redis.Cmder) bool {
	if !redis.HasErrorPrefix(err, "EXECABORT") {
		return again.NotExecuted(err)
	}
	_, why, _ := strings.Cut(err.Error(), "because of: ")
	return again.Refusal(why) || slices.ContainsFunc(cmds, func(cmd redis.Cmder) bool { return again.NotExecuted(cmd.Err()) })
}

// Transact is [Exec] of commands that are about one key and write it as a kind. One of them is a PEXPIRE, so that there is no moment at
// which the key has no end.
//
// Transactions know no conditions. A write of another kind's key fails and leaves the value alone, but the PEXPIRE is done all
// the same, and would end what belongs to somebody else. So the transaction asks for the end that was there before,
// and a key of another kind gets it back. It does not ask where is is nil, for a key that is known to be of the kind.
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

// giveBack gives a key of another kind the end that it had before a transaction. Between the two it may have been deleted, and
// made anew by its owner or by us: if it is of our kind now, it is left as it is.
func giveBack(ctx context.Context, rdb Bounded, full string, is Kind, before *redis.IntCmd) error {
	end, err := before.Result()
	if err != nil || end < noEnd {
		return nil // it was not run, or found nothing
	}
	args := append([]any{end}, is...)
	if err := restore.RunOnce(context.WithoutCancel(ctx), rdb, full, args...).Err(); err != nil {
		return fmt.Errorf("the key of somebody else's ends early now, its end (PEXPIRETIME %d) could not be restored: %w", end, err)
	}
	return nil
}

const noEnd = -1 // PEXPIRETIME of a key without one

// restore  k, PEXPIRETIME before, the kind's command.
var restore = NewScript(`if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local ours = redis.pcall(ARGV[2], KEYS[1], unpack(ARGV, 3))
if type(ours) ~= 'table' or not ours.err then return 0 end
if ARGV[1] == '-1' then return redis.call('PERSIST', KEYS[1]) end
return redis.call('PEXPIREAT', KEYS[1], ARGV[1])`)
