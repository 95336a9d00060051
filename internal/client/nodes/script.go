package nodes

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// Script is Lua source and the name by which a server that has seen it knows it.
type Script struct{ source, sha string }

// NewScript returns the script of a Lua source.
func NewScript(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{source, hex.EncodeToString(sum[:])}
}

// By returns the command that runs the script, by its source if whole and else by its name, and the command's first argument.
func (s Script) By(whole bool) (command, arg string) {
	if whole {
		return "eval", s.source
	}
	return "evalsha", s.sha
}

// IsUnknown reports whether err says that a server does not know a script, and so did not run it.
func IsUnknown(err error) bool { return redis.HasErrorPrefix(err, "NOSCRIPT") }

// Call is a script with its keys and arguments.
type Call struct {
	script Script
	keys   []string
	args   []any
}

// Call returns a call of the script.
func (s Script) Call(keys []string, args ...any) Call { return Call{s, keys, args} }

func (c Call) command(ctx context.Context, name, script string) *redis.Cmd {
	args := make([]any, 0, 3+len(c.keys)+len(c.args))
	args = append(args, name, script, len(c.keys))
	for _, key := range c.keys {
		args = append(args, key)
	}
	return redis.NewCmd(ctx, append(args, c.args...)...)
}

// Run runs scripts in one trip, and those that the server does not know in a second one. It returns for each script whether it answered 1.
// go-redis may repeat them.
func (n *Node) Run(ctx context.Context, calls ...Call) ([]bool, []error) {
	return n.run(ctx, n.Ask, calls)
}

// RunOnce is Run for scripts that must not be repeated.
func (n *Node) RunOnce(ctx context.Context, calls ...Call) ([]bool, []error) {
	return n.run(ctx, n.AskOnce, calls)
}

func (n *Node) run(ctx context.Context, ask func(context.Context, ...redis.Cmder) error, calls []Call) ([]bool, []error) {
	did := make([]bool, len(calls))
	errs := n.answer(ctx, ask, calls, func(i int, cmd *redis.Cmd) (err error) {
		did[i], err = answeredOne(cmd)
		return err
	})
	return did, errs
}

// answer runs scripts and has read take the answer of each.
func (n *Node) answer(ctx context.Context, ask func(context.Context, ...redis.Cmder) error, calls []Call, read func(i int, cmd *redis.Cmd) error) []error {
	errs := make([]error, len(calls))
	scripts := make([]Script, len(calls))
	for i, c := range calls {
		scripts[i] = c.script
	}
	sent := false
	err := n.Named(ctx, scripts, func(mine []int, whole func(i int) bool) (unknown []int) {
		sent = true
		cmds := make([]redis.Cmder, len(mine))
		for k, i := range mine {
			name, script := scripts[i].By(whole(i))
			cmds[k] = calls[i].command(ctx, name, script)
		}
		lost := ask(ctx, cmds...)
		for k, i := range mine {
			if errs[i] = lost; lost == nil {
				errs[i] = read(i, cmds[k].(*redis.Cmd))
			}
			if IsUnknown(errs[i]) {
				unknown = append(unknown, i)
			}
		}
		return unknown
	})
	for i := range errs {
		if err != nil && (!sent || IsUnknown(errs[i])) {
			errs[i] = err
		}
	}
	return errs
}

// Run runs scripts as [Node.Run] does, each on the server of its first key.
func (ns *Nodes) Run(ctx context.Context, calls ...Call) ([]bool, []error) {
	did, errs := make([]bool, len(calls)), make([]error, len(calls))
	keys := make([]string, len(calls))
	for i, c := range calls {
		keys[i] = c.keys[0]
	}
	ns.Each(ctx, keys, func(node *Node, mine []int) {
		theirs := make([]Call, len(mine))
		for n, i := range mine {
			theirs[n] = calls[i]
		}
		answers, failed := node.Run(ctx, theirs...)
		for n, i := range mine {
			did[i], errs[i] = answers[n], failed[n]
		}
	}, func(i int, err error) { errs[i] = err })
	return did, errs
}

// Run1 is Run for one script.
func (ns *Nodes) Run1(ctx context.Context, c Call) (bool, error) {
	node, err := ns.Of(ctx, c.keys[0])
	if err != nil {
		return false, err
	}
	did, errs := node.Run(ctx, c)
	return did[0], errs[0]
}

// Pair runs a script that answers with a text and a number, on the server of its first key. go-redis may repeat it.
func (ns *Nodes) Pair(ctx context.Context, c Call) (text string, number int64, err error) {
	node, err := ns.Of(ctx, c.keys[0])
	if err != nil {
		return "", 0, err
	}
	errs := node.answer(ctx, node.Ask, []Call{c}, func(_ int, cmd *redis.Cmd) error {
		reply, err := cmd.Slice()
		if err != nil {
			return err
		}
		var isText, isNumber bool
		if len(reply) == 2 {
			text, isText = reply[0].(string)
			number, isNumber = reply[1].(int64)
		}
		if !isText || !isNumber {
			return fmt.Errorf("a script returned %v, not a text and a number", reply)
		}
		return nil
	})
	return text, number, errs[0]
}

func answeredOne(cmd *redis.Cmd) (bool, error) {
	reply, err := cmd.Result()
	if err != nil {
		return false, err
	}
	n, ok := reply.(int64)
	if !ok {
		return false, fmt.Errorf("a script returned %T, not an integer", reply)
	}
	return n == 1, nil
}
