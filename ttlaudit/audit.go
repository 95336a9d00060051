// Package ttlaudit finds the keys of a Redis that have no TTL, and gives them one according to a plan. [Run] looks at the keys of any
// go-redis client (on a cluster: of every master) at a bounded rate, and writes nothing:
//
//	report, err := ttlaudit.Run(ctx, rdb, ttlaudit.Options{Match: "cache:*"})
//	report.WriteText(os.Stdout)
//
// [Fix] gives a TTL to keys that match the patterns of a [Plan]. The hook of package ttlguard stops new keys without a TTL. docs/audit.md
// says what an audit asks and what that costs. The command mayfly audit does the same from a shell.
package ttlaudit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// Options say what an audit looks at, and how fast. The zero value looks at all keys, at the default rate.
type Options struct {
	// Match is a Redis pattern, such as "cache:*": the audit looks only at keys that match. Empty means all keys.
	Match string

	// MaxRate is how many keys a second the audit looks at, in pages so small that other clients hardly notice. Zero is 10,000; negative
	// means no limit.
	MaxRate int

	// Keys stops the audit after this many keys, divided among the servers by their sizes, and estimates the rest. SCAN's order has nothing
	// to do with names, so the first keys are a sample. On a cluster they are whole slots, and keys that share a hash tag come together.
	// Zero means all keys. It cannot be used with Match.
	Keys int64

	// Sizes is the share of keys whose size the audit asks for, besides the first hundred of each pattern. Zero is 0.01; negative is none,
	// for a user who may not run MEMORY USAGE.
	Sizes float64

	// TooLong is the longest remaining TTL that is not too long. Zero is four weeks.
	TooLong time.Duration

	// Largest is how many of the largest keys without a TTL the report names, among those whose size was asked for. Zero is 10.
	Largest int

	// Progress is called after each page, by the audit's goroutine. Nil costs nothing.
	Progress func(Progress)

	// Checkpoint receives the audit's state about once a second, and when the audit ends early. A later audit with the same options and
	// this state as Resume continues from there, and finds what this one would have found. If Checkpoint returns an error, the audit ends.
	Checkpoint func(state []byte) error
	Resume     []byte
}

// Progress says how far an audit or a fix has come.
type Progress struct {
	Server  string        // the server being walked
	Servers int           // all of them
	Done    int           // those completed
	Keys    int64         // keys looked at
	NoTTL   int64         // those without a TTL
	Of      int64         // keys there were at the beginning, or that will be looked at; 0: not known
	Took    time.Duration // so far, including what was resumed
}

func (o Options) validate() error {
	c := check.In("ttlaudit: Options.")
	c.Refuse(o.Keys < 0, "Keys must not be negative, got %d", o.Keys)
	c.Refuse(o.Keys > 0 && o.Match != "", "Keys cannot be used with Match: the number of matching keys is unknown")
	c.Refuse(o.Sizes > 1 || o.Sizes != o.Sizes, "Sizes must be at most 1, got %v", o.Sizes)
	c.Refuse(o.TooLong < 0, "TooLong must not be negative, got %v", o.TooLong)
	c.Refuse(o.Largest < 0, "Largest must not be negative, got %d", o.Largest)
	return c.Err()
}

func (o Options) withDefaults() Options {
	o.Sizes = cmp.Or(o.Sizes, 0.01)
	o.TooLong = cmp.Or(o.TooLong, 28*24*time.Hour)
	o.Largest = cmp.Or(o.Largest, 10)
	return o
}

// Run audits the keys of rdb (on a cluster: of every master) and reports which of them have no TTL. It reads with SCAN, in small pages and
// at a bounded rate, with memory that does not grow with the number of keys. It writes nothing.
//
// Run notices the end of ctx between two pages; if it is waiting for a server's answer, only when the client gives up.
//
// Keys that exist during the whole audit are counted once. Keys that appear or vanish meanwhile may be counted or not; one that vanishes
// between SCAN and PTTL is not. With an error the report says what was covered; it is nil if the options are wrong or no server could be
// asked at all.
func Run(ctx context.Context, rdb redis.UniversalClient, o Options) (*Report, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	all, err := nodes(ctx, rdb)
	if err != nil {
		return nil, fmt.Errorf("ttlaudit: audit: %w", err)
	}
	a := &audit{opt: o.withDefaults(), begun: time.Now(), walker: newWalker(o.Match, o.MaxRate)}
	if err := a.begin(ctx, all); err != nil {
		return nil, fmt.Errorf("ttlaudit: audit: %w", err)
	}
	slots := slotMap(ctx, rdb)
	var errs []error
	for i, n := range all {
		err := a.server(ctx, n, a.Servers[i])
		if err == nil {
			continue
		}
		if ended := ctx.Err(); ended != nil || errors.Is(err, errCheckpoint) {
			errs = append(errs, fmt.Errorf("ttlaudit: audit: %w", cmp.Or(ended, err)))
			break
		}
		a.Servers[i].Error = err.Error()
		errs = append(errs, fmt.Errorf("ttlaudit: audit of %s: %w", n.addr, err))
	}
	if len(errs) > 0 && !errors.Is(errs[len(errs)-1], errCheckpoint) {
		if err := a.checkpoint(); err != nil {
			errs = append(errs, fmt.Errorf("ttlaudit: audit: %w", err))
		}
	}
	r := a.report()
	r.Resharded = ctx.Err() == nil && slots != slotMap(ctx, rdb)
	return r, errors.Join(errs...)
}

// audit is an audit in progress.
type audit struct {
	opt Options
	auditState
	walker *walker
	begun  time.Time // when this part of it began
	saved  time.Time
}

// begin takes up the state of an earlier audit, or makes a new one.
func (a *audit) begin(ctx context.Context, all []*node) error {
	var sum int64
	for _, n := range all {
		n.greet(ctx)
		if n.keys < 0 && a.opt.Keys > 0 {
			return errors.New("DBSIZE is not allowed to this user: without it Options.Keys cannot be divided among the servers")
		}
		sum += max(n.keys, 0)
	}
	a.saved = time.Now()
	if a.opt.Resume != nil {
		err := a.resume(all)
		a.walker.skipped = a.Recent
		return err
	}
	a.auditState = newState(a.opt)
	for _, n := range all {
		s := &walked{Addr: n.addr, Of: max(n.keys, 0), Life: n.life}
		if a.opt.Keys > 0 && a.opt.Keys < sum {
			s.Quota = max(int64(float64(s.Of)/float64(sum)*float64(a.opt.Keys)+0.5), 1)
		}
		a.Servers = append(a.Servers, s)
	}
	return nil
}

// server walks one server from where the audit had left it.
func (a *audit) server(ctx context.Context, n *node, s *walked) error {
	s.Error = ""
	if n.unreached != nil || s.Done {
		return n.unreached
	}
	for page, err := range a.walker.pages(ctx, n, s.Cursor) {
		if err != nil {
			return err
		}
		if err := a.look(ctx, n, s, page.keys); err != nil {
			return err
		}
		a.walker.skipped.keep(page.keys)
		s.Cursor = page.next
		s.Done = page.next == 0 || s.Quota > 0 && s.Keys >= s.Quota
		if s.Done && s.Life != "" && n.runID(ctx) != s.Life {
			s.Anew = true
			return errors.New("the server was restarted meanwhile: keys may have been missed, or counted twice")
		}
		if a.opt.Progress != nil {
			a.opt.Progress(a.progress(s))
		}
		if time.Since(a.saved) > time.Second {
			if err := a.checkpoint(); err != nil {
				return err
			}
		}
		if s.Done {
			break
		}
	}
	return nil
}

func (a *audit) progress(s *walked) Progress {
	p := Progress{Server: s.Addr, Servers: len(a.Servers), Keys: a.Keys, NoTTL: a.NoTTL, Took: a.took()}
	for _, s := range a.Servers {
		p.Of += cmp.Or(s.Quota, s.Of)
		if s.Done {
			p.Done++
		}
	}
	if a.opt.Match != "" { // it is not known how many match
		p.Of = 0
	}
	return p
}

func (a *audit) took() time.Duration { return a.Took + time.Since(a.begun) }
