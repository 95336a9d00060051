// Package ttlguard prevents keys without a TTL. [New] returns a hook for any go-redis client. It judges each write to the keys it watches
// before the write is sent:
//
//	guard, err := ttlguard.New(ttlguard.Options{Prefixes: []string{"cache:"}})
//	rdb.AddHook(guard)
//	rdb.Set(ctx, "cache:user:1001", data, 0) // refused: mayfly.ErrNoTTL, naming command and key
//
// In an existing program, begin with OnNone: ttlguard.ActionReport, so that nothing is refused before you have seen what would be. Then
// switch to refusing, prefix by prefix ([Options].Enforced).
//
// docs/ttlguard.md lists what each command does to a TTL. The guard judges commands that are sent together as one: RPUSH followed by EXPIRE
// in one pipeline or transaction is fine. It never changes a command.
//
// A hook sees only what is sent by the client it was added to. A client that [redis.Client.WithTimeout] returns has no hooks: add the guard
// to it too.
//
// Package ttlaudit finds keys without a TTL that are already in Redis.
package ttlguard

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly"
	"github.com/mayflycache/mayfly/internal/client/check"
)

// Action is what the guard does about a write. The zero Action is the default of its field.
type Action int

const (
	ActionIgnore Action = iota + 1 // nothing
	ActionReport                   // Options.Report is called, and the command is sent
	ActionRefuse                   // Options.Report is called, and the command is not sent: mayfly.ErrNoTTL
)

// String returns the action's name: default, ignore, report or refuse.
func (a Action) String() string {
	if a < 0 || a > ActionRefuse {
		return fmt.Sprintf("Action(%d)", int(a))
	}
	return [...]string{"default", "ignore", "report", "refuse"}[a]
}

// Options say what the guard watches, and what it does. Prefixes is required.
type Options struct {
	// Prefixes lists the prefixes of the keys that must have a TTL. Commands about other keys cost next to nothing.
	Prefixes []string

	// Exempt are keys under the prefixes that need no TTL, as patterns of [path.Match]: "cache:config:*".
	Exempt []string

	// OnNone is what to do about a write that leaves a key without a TTL. Zero is ActionRefuse. In an existing program begin with
	// ActionReport, and switch to ActionRefuse prefix by prefix: see Enforced.
	OnNone Action

	// Enforced are prefixes for which OnNone counts as ActionRefuse although it is ActionReport or ActionIgnore for the others. Each must
	// be one of Prefixes, or begin with one.
	Enforced []string

	// OnDepends is what to do about a write that keeps the TTL of an existing key, but creates a missing key without one: INCR, HSET or
	// RPUSH alone. Zero is ActionReport.
	OnDepends Action

	// Verify makes the guard ask, after a write that depends, whether the key has a TTL, and report the key only if it has none. This costs
	// one more PTTL, in one trip for all keys of a pipeline.
	Verify bool

	// Report is told of findings. It is called by the command's goroutine, and must be quick.
	Report func(ctx context.Context, f Finding)
}

// Finding is one key that a command, or several commands sent together, leave without a TTL, or may.
type Finding struct {
	Depends bool   // the key has a TTL afterwards if it had one before; false: it has none
	Command string // the command that decided it, in lower case
	Key     string
	Refused bool
	Caller  string // file:line where the program called go-redis to send this; empty if it is not on the stack
}

// String returns the finding as one line, for logs.
func (f Finding) String() string {
	verdict := leavesNone
	if f.Depends {
		verdict = depends
	}
	what := fmt.Sprintf("%s %q: %s", f.Command, f.Key, verdict)
	if f.Refused {
		what += ", refused"
	}
	if f.Caller != "" {
		what += ", at " + f.Caller
	}
	return what
}

func (o Options) validate() error {
	c := check.In("ttlguard: Options.")
	c.Refuse(len(o.Prefixes) == 0, "Prefixes is empty: name the prefixes of the keys that must have a TTL")
	for i, p := range o.Prefixes {
		c.Refuse(p == "", "Prefixes[%d] is empty, which would mean all keys: name a prefix", i)
	}
	for i, p := range o.Exempt {
		_, err := path.Match(p, "")
		c.Refuse(err != nil, "Exempt[%d] %q: %w", i, p, err)
	}
	for i, p := range o.Enforced {
		under := slices.ContainsFunc(o.Prefixes, func(prefix string) bool { return strings.HasPrefix(p, prefix) })
		c.Refuse(len(o.Prefixes) > 0 && !under, "Enforced[%d] %q begins with none of Prefixes, so its keys are not watched: add it to Prefixes", i, p)
	}
	c.Refuse(len(o.Enforced) > 0 && (o.OnNone == 0 || o.OnNone == ActionRefuse), "Enforced is set, but OnNone already refuses for all prefixes: set OnNone to ActionReport, or leave Enforced out")
	const oneOf = " must be zero, ActionIgnore, ActionReport or ActionRefuse, got %d"
	c.Refuse(o.OnNone < 0 || o.OnNone > ActionRefuse, "OnNone"+oneOf, o.OnNone)
	c.Refuse(o.OnDepends < 0 || o.OnDepends > ActionRefuse, "OnDepends"+oneOf, o.OnDepends)
	c.Refuse(o.OnNone == ActionReport && o.Report == nil, "OnNone is ActionReport, but Options.Report is nil: set it to receive the findings")
	c.Refuse(o.OnDepends == ActionReport && o.Report == nil, "OnDepends is ActionReport, but Options.Report is nil: set it to receive the findings")
	c.Refuse(o.Verify && o.Report == nil, "Verify is set, but Options.Report is nil: set it to receive the findings")
	return c.Err()
}

// Guard is a go-redis hook. It is safe for concurrent use.
type Guard struct {
	opt Options
	on  [leavesNone + 1]Action // by verdict
}

var _ redis.Hook = (*Guard)(nil)

// New returns a guard. It does no I/O.
func New(o Options) (*Guard, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return &Guard{o, [...]Action{safe: ActionIgnore, depends: cmp.Or(o.OnDepends, ActionReport), leavesNone: cmp.Or(o.OnNone, ActionRefuse)}}, nil
}

// DialHook does nothing.
func (g *Guard) DialHook(next redis.DialHook) redis.DialHook {
	mustGo(next == nil, "DialHook")
	return next
}

// mustGo panics if the next hook is nil: when the hook is added, not at the first command.
func mustGo(isNil bool, hook string) {
	if isNil {
		panic("ttlguard: " + hook + " got a nil hook, so a Guard has nothing to send commands with: add it with a client's AddHook")
	}
}

// ProcessHook judges single commands.
func (g *Guard) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	mustGo(next == nil, "ProcessHook")
	return func(ctx context.Context, cmd redis.Cmder) error {
		if !g.concerns(cmd) {
			return next(ctx, cmd)
		}
		return g.guarded(ctx, []redis.Cmder{cmd}, func(cmds []redis.Cmder) (err error) {
			for _, cmd := range cmds {
				err = next(ctx, cmd)
			}
			return err
		})
	}
}

// ProcessPipelineHook judges commands that are sent together.
func (g *Guard) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	mustGo(next == nil, "ProcessPipelineHook")
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if g.concerns(cmd) {
				return g.guarded(ctx, cmds, func(cmds []redis.Cmder) error { return next(ctx, cmds) })
			}
		}
		return next(ctx, cmds)
	}
}

// guarded sends cmds unless one of them is refused, and afterwards verifies those that depend.
func (g *Guard) guarded(ctx context.Context, cmds []redis.Cmder, send func([]redis.Cmder) error) error {
	findings, doubts := g.judge(cmds)
	if err := g.tell(ctx, findings); err != nil {
		for _, cmd := range cmds {
			cmd.SetErr(err)
		}
		return err
	}
	err := send(cmds)
	if len(doubts) > 0 {
		g.verify(ctx, doubts, func(asked []redis.Cmder) {
			if cmds[0].Name() == "multi" { // the hook of a transaction expects whole transactions
				asked = slices.Concat([]redis.Cmder{redis.NewStatusCmd(ctx, "multi")}, asked, []redis.Cmder{redis.NewSliceCmd(ctx, "exec")})
			}
			send(asked)
		})
	}
	return err
}

// concerns reports whether cmd may write a watched key.
func (g *Guard) concerns(cmd redis.Cmder) bool {
	if effects[cmd.Name()] == nil {
		return false
	}
	for _, arg := range cmd.Args()[1:] { // any argument: finding out which ones are keys would take longer
		for _, p := range g.opt.Prefixes {
			if hasPrefix(arg, p) {
				return true
			}
		}
	}
	return false
}

// watches reports whether key must have a TTL.
func (g *Guard) watches(key string) bool {
	exempt := func(pattern string) bool { is, _ := path.Match(pattern, key); return is }
	prefixes := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	return slices.ContainsFunc(g.opt.Prefixes, prefixes) && !slices.ContainsFunc(g.opt.Exempt, exempt)
}

// enforces reports whether a write that leaves key without a TTL is refused, whatever OnNone says.
func (g *Guard) enforces(key string) bool {
	return slices.ContainsFunc(g.opt.Enforced, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

// judge returns what cmds, sent together, do to the watched keys: findings to report before sending, and doubts to verify afterwards.
func (g *Guard) judge(cmds []redis.Cmder) (findings, doubts []Finding) {
	for _, k := range judge(cmds) {
		action := g.on[k.verdict]
		if k.verdict == leavesNone && g.enforces(k.key) {
			action = ActionRefuse
		}
		f := Finding{Depends: k.verdict == depends, Command: k.command, Key: k.key, Refused: action == ActionRefuse}
		switch {
		case action == ActionIgnore || !g.watches(k.key):
		case action == ActionReport && f.Depends && g.opt.Verify:
			doubts = append(doubts, f)
		default:
			findings = append(findings, f)
		}
	}
	return findings, doubts
}

// tell reports findings. It returns an error for the first one that is refused.
func (g *Guard) tell(ctx context.Context, findings []Finding) (err error) {
	for _, f := range findings {
		if g.opt.Report != nil {
			f.Caller = caller()
			g.opt.Report(ctx, f)
		}
		if f.Refused && err == nil {
			err = fmt.Errorf("ttlguard: %s %q: %w; give it one in the same command, pipeline or transaction", f.Command, f.Key, mayfly.ErrNoTTL)
		}
	}
	return err
}

// verify asks for the TTLs of doubts, and reports those without one.
func (g *Guard) verify(ctx context.Context, doubts []Finding, ask func([]redis.Cmder)) {
	asked := make([]redis.Cmder, len(doubts))
	for i, f := range doubts {
		asked[i] = redis.NewDurationCmd(ctx, time.Millisecond, "pttl", f.Key)
	}
	ask(asked)
	for i, f := range doubts {
		if left, err := asked[i].(*redis.DurationCmd).Result(); err == nil && left == -1 {
			f.Depends, f.Caller = false, caller()
			g.opt.Report(ctx, f)
		}
	}
}
