package ttlguard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/client/check"
)

// AuditOptions say what an audit looks at, and how fast. The zero value is one of all keys.
type AuditOptions struct {
	// Match is a pattern of Redis's, such as "cache:*": other keys are not looked at. Empty is all keys.
	Match string

	// MaxRate is how many keys a second are looked at, in pages so small that other clients hardly notice. Zero is
	// 10,000; negative is as fast as it goes.
	MaxRate int

	// Keys stops after so many, dealt out to the servers by their sizes, and estimates the rest. SCAN's order has nothing to do
	// with names, so the first keys are a sample; on a cluster they are whole slots, and keys that share a hash tag come
	// together. Zero is all keys. Not with Match.
	Keys int64

	// Sizes is the share of keys whose size is asked for, beside the first hundred of each pattern. Zero is 0.01, negative
	// is none, for a user who may not run MEMORY USAGE.
	Sizes float64

	// TooLong is the longest TTL left that is not too long. Zero is four weeks.
	TooLong time.Duration

	// Largest is how many of the largest keys without TTL are named, of those whose size was asked for. Zero is 10.
	Largest int

	// Progress is told after each page, by the audit's goroutine. Nil costs nothing.
	Progress func(Progress)

	// Checkpoint is given the audit's state about every second, and when it ends early. With a state as Resume a later
	// audit with the same options goes on from there, and finds what this one would have found. An error ends the audit.
	Checkpoint func(state []byte) error
	Resume     []byte
}

// Progress is how far an audit, or a fix, has come.
type Progress struct {
	Server  string        // the one that is walked
	Servers int           // all of them
	Done    int           // those that were walked
	Keys    int64         // looked at
	NoTTL   int64         // of them
	Of      int64         // keys there were at the beginning, or that will be looked at; 0: not known
	Took    time.Duration // so far, with what was resumed
}

func (o AuditOptions) validate() error {
	c := check.In("ttlguard: AuditOptions.")
	c.Refuse(o.Keys < 0, "Keys must not be negative, got %d", o.Keys)
	c.Refuse(o.Keys > 0 && o.Match != "", "Keys cannot be used with Match: nobody knows how many keys there are that match")
	c.Refuse(o.Sizes > 1 || o.Sizes != o.Sizes, "Sizes must be at most 1, got %v", o.Sizes)
	c.Refuse(o.TooLong < 0, "TooLong must not be negative, got %v", o.TooLong)
	c.Refuse(o.Largest < 0, "Largest must not be negative, got %d", o.Largest)
	return c.Err()
}

func (o AuditOptions) withDefaults() AuditOptions {
	if o.Sizes == 0 {
		o.Sizes = 0.01
	}
	if o.TooLong == 0 {
		o.TooLong = 28 * 24 * time.Hour
	}
	if o.Largest == 0 {
		o.Largest = 10
	}
	return o
}

// Audit looks at the keys of rdb, on a cluster those of every master, and reports which of them do not end. It reads with SCAN, in
// small pages and at a bounded rate, with memory that does not grow with the keys; it writes nothing.
//
// Keys that are there all the time are counted once; those that come or go meanwhile are counted or not, and one that vanishes
// between SCAN and PTTL is not. Beside an error the report says what was covered, unless it is nil, as when the options are
// wrong or nothing could be asked at all.
func Audit(ctx context.Context, rdb redis.UniversalClient, o AuditOptions) (*AuditReport, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	all, err := nodes(ctx, rdb)
	if err != nil {
		return nil, fmt.Errorf("ttlguard: audit: %w", err)
	}
	a := &audit{opt: o.withDefaults(), begun: time.Now(), walker: newWalker(o.Match, o.MaxRate)}
	unreached, err := a.begin(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("ttlguard: audit: %w", err)
	}
	slots := slotMap(ctx, rdb)
	var errs []error
	for i, n := range all {
		err := unreached[i]
		if err == nil {
			err = a.server(ctx, n, a.Servers[i])
		}
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, errCheckpoint) {
				errs = append(errs, fmt.Errorf("ttlguard: audit: %w", err))
				break
			}
			a.Servers[i].Error = err.Error()
			errs = append(errs, fmt.Errorf("ttlguard: audit of %s: %w", n.addr, err))
		}
	}
	if len(errs) > 0 && !errors.Is(errs[len(errs)-1], errCheckpoint) {
		if err := a.checkpoint(); err != nil {
			errs = append(errs, fmt.Errorf("ttlguard: audit: %w", err))
		}
	}
	r := a.report()
	r.Resharded = ctx.Err() == nil && slots != slotMap(ctx, rdb)
	return r, errors.Join(errs...)
}

// audit is one that runs.
type audit struct {
	opt AuditOptions
	auditState
	walker *walker
	begun  time.Time // this part of it
	saved  time.Time
}

// begin takes up the state of an earlier audit, or makes a new one.
func (a *audit) begin(ctx context.Context, all []node) (unreached []error, err error) {
	lives, sizes := make([]string, len(all)), make([]int64, len(all))
	unreached = make([]error, len(all))
	var sum int64
	for i, n := range all {
		lives[i], sizes[i], unreached[i] = n.greet(ctx)
		if sizes[i] < 0 && a.opt.Keys > 0 {
			return nil, errors.New("DBSIZE is not allowed to this user: without it AuditOptions.Keys cannot be dealt out to the servers")
		}
		sizes[i] = max(sizes[i], 0)
		sum += sizes[i]
	}
	a.saved = time.Now()
	if a.opt.Resume != nil {
		if err := a.resume(all, lives); err != nil {
			return nil, err
		}
		a.walker.skipped = a.Recent
		return unreached, nil
	}
	a.auditState = newState(a.opt)
	for i, n := range all {
		s := &walked{Addr: n.addr, Of: sizes[i], Life: lives[i]}
		if a.opt.Keys > 0 && a.opt.Keys < sum {
			s.Quota = max(int64(float64(s.Of)/float64(sum)*float64(a.opt.Keys)+0.5), 1)
		}
		a.Servers = append(a.Servers, s)
	}
	return unreached, nil
}

// server walks one server from where it was left.
func (a *audit) server(ctx context.Context, n node, s *walked) error {
	s.Error = ""
	defer a.walker.leave()
	for !s.Done {
		keys, next, err := a.walker.page(ctx, n, s.Cursor)
		if err != nil {
			return err
		}
		if err := a.look(ctx, n, s, keys); err != nil {
			return err
		}
		a.walker.skipped.keep(keys)
		s.Cursor = next
		s.Done = next == 0 || s.Quota > 0 && s.Keys >= s.Quota
		if s.Done && s.Life != "" && n.life(ctx) != s.Life {
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
	}
	return nil
}

func (a *audit) progress(s *walked) Progress {
	p := Progress{Server: s.Addr, Servers: len(a.Servers), Keys: a.Keys, NoTTL: a.NoTTL, Took: a.took()}
	for _, s := range a.Servers {
		if s.Quota > 0 {
			p.Of += s.Quota
		} else {
			p.Of += s.Of
		}
		if s.Done {
			p.Done++
		}
	}
	if a.opt.Match != "" { // how many match is not known
		p.Of = 0
	}
	return p
}

func (a *audit) took() time.Duration { return a.Took + time.Since(a.begun) }
