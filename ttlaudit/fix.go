package ttlaudit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/again"
	"github.com/mayflycache/mayfly/internal/client/check"
	"github.com/mayflycache/mayfly/jitter"
)

// Plan says which keys without a TTL get one. It is explicit: Fix touches no other keys, and none at all without Apply.
type Plan struct {
	// Give lists the patterns and their TTLs. The first pattern that fits a key counts, so put narrower ones before wider ones. A pattern
	// that can never count, because an earlier one fits all its keys, is an error.
	Give []Give

	// Apply writes the TTLs. Without it Fix is a dry run that counts what it would write.
	Apply bool

	// MaxRate is how many keys a second Fix looks at, as in [Options].
	MaxRate int

	// Progress is called after each page, by Fix's goroutine. Nil costs nothing.
	Progress func(Progress)
}

// Give is a TTL for the keys of one pattern.
type Give struct {
	// Pattern is a pattern as an audit reports it: "cache:user:*". Unlike in Redis's own patterns, "*" stands for anything up to the next
	// ':', '/' or '|', "**" at the end stands for any rest, and a backslash makes the next character literal.
	Pattern string

	TTL time.Duration

	// Jitter spreads the expiry of keys that get their TTL at the same time. Nil is [jitter.Default].
	Jitter *jitter.Spread
}

// Validate returns an error that names what is wrong with the plan.
func (p Plan) Validate() error {
	c := check.In("ttlaudit: Plan.")
	c.Refuse(len(p.Give) == 0, "Give is empty: name the patterns and their TTLs")
	for i, g := range p.Give {
		give := check.In(fmt.Sprintf("ttlaudit: Plan.Give[%d].", i))
		give.Refuse(g.Pattern == "", "Pattern is empty: name the keys, as in %q", "cache:user:*")
		give.Refuse(g.Pattern != "" && strings.Trim(g.Pattern, "*"+separators) == "", "Pattern %q would match any key: begin it with a prefix of the keys", g.Pattern)
		give.Refuse(strings.Contains(strings.TrimSuffix(g.Pattern, "**"), "**"), "Pattern %q has ** before its end", g.Pattern)
		give.Refuse(g.TTL < time.Second, "TTL must be at least 1s, got %v", g.TTL)
		give.Refuse(g.TTL > check.MaxTTL, "TTL must be at most 100 years, got %v", g.TTL)
		if g.Jitter != nil {
			give.Wrap(g.Jitter.Validate())
		}
		for j, before := range p.Give[:i] {
			switch {
			case g.Pattern == "" || before.Pattern == "":
			case before.Pattern == g.Pattern:
				give.Refuse(true, "Pattern %q is the same as that of Give[%d]: remove one", g.Pattern, j)
			case readPattern(before.Pattern).covers(g.Pattern):
				give.Refuse(true, "Pattern %q can never match, since Give[%d], %q, matches all its keys first: put the narrower pattern first", g.Pattern, j, before.Pattern)
			}
		}
		c.Add(give.Err())
	}
	return c.Err()
}

// FixReport is what Fix did, or would do.
type FixReport struct {
	Applied  bool  `json:"applied"`  // else it was a dry run
	Complete bool  `json:"complete"` // every server was walked to its end
	Keys     int64 `json:"keys"`     // looked at
	Moved    int64 `json:"moved"`    // to another master meanwhile, and counted nowhere else: run the fix again
	Unknown  int64 `json:"unknown"`  // were to be given a TTL, and no answer came: they have it, get it, or do not. Run the fix again

	// Gives says what happened to the keys of each pattern, in the plan's order.
	Gives []struct {
		Pattern string `json:"pattern"`
		Matched int64  `json:"matched"`
		Given   int64  `json:"given"`   // a TTL; of a dry run: would be
		Had     int64  `json:"had_one"` // already, or are gone: left alone
	} `json:"gives"`
}

// Fix gives a TTL to the keys of rdb that have none and that the plan names. It never changes an existing TTL: the server ensures that
// (EXPIRE ... NX, Redis 7.0), not what Fix saw before. Fix can be cancelled and run again at any time. With an error, the report says what
// was done, unless it is nil. Fix notices the end of ctx between two keys; if it is waiting for a server's answer, only when the client
// gives up.
//
// Each command that sets a TTL is sent once, so that no late copy of it can give a TTL to a key that was made permanent since. A lost reply
// ends the fix of that server with an error. Keys of that page without a TTL may still get theirs when the lost request arrives.
func Fix(ctx context.Context, rdb redis.UniversalClient, p Plan) (*FixReport, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	all, err := nodes(ctx, rdb)
	if err != nil {
		return nil, fmt.Errorf("ttlaudit: fix: %w", err)
	}
	r := &FixReport{Applied: p.Apply, Complete: true}
	r.Gives = slices.Grow(r.Gives, len(p.Give))[:len(p.Give)]
	for i, g := range p.Give {
		r.Gives[i].Pattern = g.Pattern
	}
	f := fixing{plan: p, report: r, walker: newWalker("", p.MaxRate), begun: time.Now(), far: Progress{Servers: len(all)}}
	for _, g := range p.Give {
		f.patterns = append(f.patterns, readPattern(g.Pattern))
	}
	var errs []error
	for i, n := range all {
		f.far.Server, f.far.Done = n.addr, i
		if err := f.server(ctx, n); err != nil {
			r.Complete = false
			ended := ctx.Err()
			errs = append(errs, fmt.Errorf("ttlaudit: fix of %s: %w", n.addr, cmp.Or(ended, err)))
			if ended != nil {
				break
			}
		}
	}
	return r, errors.Join(errs...)
}

type fixing struct {
	plan     Plan
	patterns []pattern // of plan.Give
	report   *FixReport
	walker   *walker
	begun    time.Time
	far      Progress
}

func (f *fixing) server(ctx context.Context, n *node) error {
	n.greet(ctx)
	if n.unreached != nil {
		return n.unreached
	}
	f.far.Of += max(n.keys, 0)
	for page, err := range f.walker.pages(ctx, n, 0) {
		if err != nil {
			return err
		}
		if err := f.give(ctx, n, page.keys); err != nil {
			return err
		}
		f.report.Keys += int64(len(page.keys))
		if f.plan.Progress != nil {
			f.far.Keys, f.far.Took = f.report.Keys, time.Since(f.begun)
			f.plan.Progress(f.far)
		}
	}
	return nil
}

// give applies the plan to the keys of a page.
func (f *fixing) give(ctx context.Context, n *node, keys []string) error {
	var gives []int // of the plan, by command
	var cmds []*redis.Cmd
	for _, key := range keys {
		if ctx.Err() != nil { // a cancelled fix does not finish the page
			return ctx.Err()
		}
		i := slices.IndexFunc(f.patterns, func(p pattern) bool { return p.fits(key) })
		if i < 0 {
			continue
		}
		gives = append(gives, i)
		if f.plan.Apply {
			g := f.plan.Give[i]
			cmds = append(cmds, redis.NewCmd(ctx, "PEXPIRE", key, cmp.Or(g.Jitter, &jitter.Default).TTL(g.TTL).Milliseconds(), "NX"))
		} else {
			cmds = append(cmds, redis.NewCmd(ctx, "PTTL", key))
		}
	}
	send(ctx, n.rdb, cmds, f.plan.Apply)
	given := int64(-1) // PTTL's answer for a key that would get a TTL
	if f.plan.Apply {
		given = 1 // PEXPIRE's answer for a key that got one
	}
	var wrong error
	for i, cmd := range cmds {
		if serious(cmd) {
			wrong = explain(cmd)
			if _, answered := errors.AsType[redis.Error](cmd.Err()); f.plan.Apply && !answered {
				f.report.Unknown++
			}
			continue
		}
		if moved(cmd.Err()) {
			f.report.Moved++
			continue
		}
		count := &f.report.Gives[gives[i]]
		count.Matched++
		if n, _ := cmd.Int64(); n == given {
			count.Given++
		} else {
			count.Had++
		}
	}
	return wrong
}

// once is a command that go-redis does not repeat, nor the pipeline that contains it.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// send sends commands in one trip. It sends again only commands that the server replies it did not execute.
func send(ctx context.Context, rdb *redis.Client, cmds []*redis.Cmd, writes bool) {
	sent := false
	again.Until(ctx, func() (refused bool) {
		pipe := rdb.Pipeline()
		for _, cmd := range cmds {
			switch {
			case sent && !again.NotExecuted(cmd.Err()):
			case writes:
				pipe.Process(ctx, once{cmd})
			default:
				pipe.Process(ctx, cmd)
			}
		}
		sent = true
		pipe.Exec(ctx) // each has its own error
		return slices.ContainsFunc(cmds, func(cmd *redis.Cmd) bool { return again.NotExecuted(cmd.Err()) })
	})
}
