package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/mayflycache/mayfly/ttlaudit"
)

// What mayfly audit exits with, beside 0, and 1 for a Redis that could not be audited at all and 2 for wrong arguments.
const (
	exitPartial = 3 // something was not covered, and what was covered fails nothing
	exitFails   = 4 // a condition of --fail-on holds
)

// exit is an error with an exit code of its own.
type exit struct {
	error
	code int
}

const aboutAudit = `Audit looks at the keys of a Redis, on a cluster at those of all masters, and says which of them have no TTL. It reads with SCAN in
small pages, at a rate that other clients hardly notice, and writes nothing but what --fix with --yes tells it to. It goes on
without keys that vanish meanwhile. The report is written to the standard output, how far it is to the standard error.

In the names of patterns * stands for an id or a name. --fix takes them as they are reported: a * there ends at the next : / or |.

It exits with 3 if a part was not covered, which the report says, also if it was told to end (SIGTERM, Ctrl-C), and with 4 if a condition of --fail-on holds.`

// auditing is what the flags of mayfly audit say.
type auditing struct {
	url, resume string
	json, yes   bool
	options     ttlaudit.Options
	noSizes     bool
	failOn      []condition
	fixes       []ttlaudit.Give
}

// audit is mayfly audit.
func audit(ctx context.Context, args []string, out io.Writer) error {
	a, err := auditFlags(args, out)
	if err != nil {
		return err
	}
	logging.Disable() // what went wrong is said once, by us
	rdb, err := connect(ctx, a.url)
	if err != nil && ctx.Err() != nil {
		return noReport(errToldToEnd)
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer rdb.Close()
	p := newProgress(os.Stderr, 5*time.Second)
	defer p.clear()
	if len(a.fixes) > 0 {
		return a.fix(ctx, rdb, out, p)
	}
	return a.audit(ctx, rdb, out, p)
}

func auditFlags(args []string, out io.Writer) (*auditing, error) {
	a := new(auditing)
	o := &a.options
	flags := newFlags("audit", aboutAudit, "redis://[user:password@]host:port[/db]")
	flags.BoolVar(&a.json, "json", false, "write the report as JSON")
	flags.Func("fail-on", "exit with 4 if a `condition` holds, such as 'no-ttl>0', 'no-ttl>=5%' or 'too-long>0'; may be given again", func(text string) error {
		c, err := parseCondition(text)
		a.failOn = append(a.failOn, c)
		return err
	})
	flags.Func("fix", "give keys that have no TTL one, spread by 10 %, instead of the audit: a `pattern=ttl` such as 'cache:user:*=1h'; may be\ngiven again; without --yes nothing is written", func(text string) error {
		g, err := parseGive(text)
		a.fixes = append(a.fixes, g)
		return err
	})
	flags.BoolVar(&a.yes, "yes", false, "with --fix: write")
	flags.IntVar(&o.MaxRate, "max-rate", 10_000, "look at so many `keys` a second; 0: as many as it goes, which other clients notice")
	flags.StringVar(&o.Match, "match", "", "look only at keys that match a Redis `pattern`, such as 'cache:*'")
	flags.Int64Var(&o.Keys, "sample", 0, "stop after so many `keys`, and estimate the rest")
	flags.BoolVar(&a.noSizes, "no-sizes", false, "do not ask for sizes, for a user who may not run MEMORY USAGE")
	flags.DurationVar(&o.TooLong, "too-long", 28*24*time.Hour, "the longest TTL that is not too long")
	flags.IntVar(&o.Largest, "largest", 10, "how many of the largest keys without TTL to name")
	flags.StringVar(&a.resume, "resume", "", "keep the state in a `file`, and go on from there if it exists; it is removed at the end")
	var urls []string
	for rest := args; ; rest = flags.Args()[1:] { // flags may follow the URL
		if flags.Parse(rest) != nil {
			return nil, flags.parse(rest, out)
		}
		if flags.NArg() == 0 {
			break
		}
		urls = append(urls, flags.Arg(0))
	}
	if len(urls) != 1 {
		return nil, usage("audit", "it takes one URL, redis://host:port, got %d", len(urls))
	}
	a.url = urls[0]
	if a.noSizes {
		o.Sizes = -1
	}
	for _, wrong := range []struct {
		is    bool
		about string
	}{
		{o.MaxRate < 0, "--max-rate must not be negative"},
		{o.Keys < 0, "--sample must not be negative"},
		{o.Keys > 0 && o.Match != "", "--sample cannot be used with --match: nobody knows how many keys there are that match"},
		{o.TooLong < time.Millisecond, "--too-long must be 1ms or more"},
		{o.Largest < 1, "--largest must be 1 or more"},
		{a.yes && len(a.fixes) == 0, "--yes says that --fix may write, and there is no --fix"},
		{len(a.fixes) > 0 && (len(a.failOn) > 0 || a.resume != "" || o.Match != "" || o.Keys > 0), "--fix goes with --yes, --max-rate and --json only"},
	} {
		if wrong.is {
			return nil, usage("audit", "%s", wrong.about)
		}
	}
	if len(a.fixes) > 0 {
		if err := (ttlaudit.Plan{Give: a.fixes}).Validate(); err != nil {
			return nil, usage("audit", "--fix: %s", oneLine(err))
		}
	}
	if o.MaxRate == 0 {
		o.MaxRate = -1
	}
	return a, nil
}

func (a *auditing) audit(ctx context.Context, rdb redis.UniversalClient, out io.Writer, p *progress) error {
	o := a.options
	o.Progress = p.show
	if a.resume != "" {
		kept, err := os.ReadFile(a.resume)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("audit: --resume: %w", err)
		}
		o.Resume = kept
		o.Checkpoint = func(state []byte) error { return replaceFile(a.resume, state) }
	}
	r, err := ttlaudit.Run(ctx, rdb, o)
	p.clear()
	if ctx.Err() != nil && err != nil {
		err = errToldToEnd
	}
	if r == nil {
		return noReport(err)
	}
	if err == nil && a.resume != "" {
		err = os.Remove(a.resume)
		if errors.Is(err, os.ErrNotExist) { // it was over in less than a second
			err = nil
		}
	}
	looked := slices.ContainsFunc(r.Servers, func(s ttlaudit.ServerReport) bool { return s.Covered || s.Keys > 0 })
	if err != nil && !looked && ctx.Err() == nil {
		return errors.New(oneLine(err))
	}
	err = a.write(out, r, r.WriteText, err)
	for _, c := range a.failOn {
		if found, holds := c.holds(r); holds {
			return exit{fmt.Errorf("audit: %s: %s", c.text, found), exitFails}
		}
	}
	return err
}

func (a *auditing) fix(ctx context.Context, rdb redis.UniversalClient, out io.Writer, p *progress) error {
	r, err := ttlaudit.Fix(ctx, rdb, ttlaudit.Plan{Give: a.fixes, Apply: a.yes, MaxRate: a.options.MaxRate, Progress: p.show})
	p.clear()
	if ctx.Err() != nil && err != nil {
		err = errToldToEnd
	}
	if r == nil || err != nil && r.Keys == 0 && ctx.Err() == nil {
		return noReport(err)
	}
	return a.write(out, r, func(out io.Writer) error {
		did := "would be given"
		if r.Applied {
			did = "were given"
		}
		for i, g := range r.Gives {
			fmt.Fprintf(out, "%s: of %d keys %d %s a TTL of about %v, %d were left alone\n", g.Pattern, g.Matched, g.Given, did, a.fixes[i].TTL, g.Had)
		}
		if r.Unknown > 0 {
			fmt.Fprintf(out, "%d keys were to be given a TTL, and no answer came: they may get it; run this again\n", r.Unknown)
		}
		if r.Moved > 0 {
			fmt.Fprintf(out, "%d keys moved to another master meanwhile: run this again\n", r.Moved)
		}
		if !r.Applied {
			fmt.Fprintln(out, "nothing was written: --yes writes")
		}
		return nil
	}, err)
}

// noReport is the error of an audit or a fix that has nothing to report.
func noReport(err error) error {
	if errors.Is(err, errToldToEnd) {
		return exit{fmt.Errorf("partial: nothing was looked at: %w", err), exitPartial}
	}
	return errors.New(oneLine(err))
}

// write writes a report as JSON, or as text. Its error says also what ended the audit or the fix early: that much is reported.
func (a *auditing) write(out io.Writer, report any, text func(io.Writer) error, early error) (err error) {
	if a.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = text(out)
	}
	if err = cmp.Or(err, early); err != nil {
		return exit{errors.New("partial: " + oneLine(err)), exitPartial}
	}
	return nil
}

// patience is how long a server may take to answer at first, or to a page.
const patience = 10 * time.Second

// connect returns a client of the server at url, or of the cluster that it is a node of.
func connect(ctx context.Context, url string) (redis.UniversalClient, error) {
	o, err := parseURL("the URL", url)
	if err != nil {
		return nil, err
	}
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = cmp.Or(o.DialTimeout, patience/2), cmp.Or(o.ReadTimeout, patience), cmp.Or(o.WriteTimeout, patience)
	o.DialerRetries, o.MaxRetries = 1, cmp.Or(o.MaxRetries, 1)
	o.DisableIdentity = true // a user may not be allowed to
	endsWith(ctx, o)
	rdb := redis.NewClient(o)
	hello := redis.NewMapStringInterfaceCmd(ctx, "HELLO") // any user may, once it is known
	if err := rdb.Process(ctx, hello); err != nil {
		rdb.Close()
		return nil, fmt.Errorf("%s: %w", o.Addr, err)
	}
	if hello.Val()["mode"] != "cluster" {
		return rdb, nil
	}
	rdb.Close()
	return redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{o.Addr}, Dialer: o.Dialer, Protocol: o.Protocol, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		DialerRetries: 1, MaxRetries: 1, MaxRedirects: 1, ContextTimeoutEnabled: true, DisableIdentity: true, MaintNotificationsConfig: o.MaintNotificationsConfig,
	}), nil
}

func oneLine(err error) string {
	text := strings.ReplaceAll(err.Error(), "ttlaudit: ", "")
	return strings.ReplaceAll(text, "\n", "; ")
}

// condition is one of --fail-on.
type condition struct {
	text    string
	of      func(*ttlaudit.Report) int64
	share   bool // in percent of all keys
	orEqual bool
	bound   float64
}

var (
	conditionForm = regexp.MustCompile(`^\s*([a-z-]+)\s*(>=?)\s*([0-9.]+)\s*(%?)\s*$`)
	figures       = map[string]func(*ttlaudit.Report) int64{
		"no-ttl":       func(r *ttlaudit.Report) int64 { return r.NoTTL },
		"too-long":     func(r *ttlaudit.Report) int64 { return r.TooLong },
		"no-ttl-bytes": func(r *ttlaudit.Report) int64 { return cmp.Or(r.NoTTLBytes, new(ttlaudit.Estimate)).Value },
	}
)

func parseCondition(text string) (condition, error) {
	m := conditionForm.FindStringSubmatch(text)
	if m == nil || figures[m[1]] == nil || m[4] == "%" && m[1] == "no-ttl-bytes" {
		return condition{}, errors.New("it takes no-ttl, too-long or no-ttl-bytes, > or >=, and a number, or a share as 5% of the keys")
	}
	bound, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return condition{}, fmt.Errorf("%q is no number", m[3])
	}
	return condition{text, figures[m[1]], m[4] == "%", m[2] == ">=", bound}, nil
}

// holds reports whether the condition holds, and what was found.
func (c condition) holds(r *ttlaudit.Report) (found string, holds bool) {
	n := float64(c.of(r))
	found = strconv.FormatFloat(n, 'f', -1, 64)
	if c.share {
		n = 100 * n / float64(max(r.Keys, 1))
		found = strconv.FormatFloat(n, 'f', 2, 64) + " %"
	}
	return "it is " + found, n > c.bound || c.orEqual && n == c.bound
}

func parseGive(text string) (g ttlaudit.Give, err error) {
	i := strings.LastIndexByte(text, '=')
	if i < 1 {
		return g, errors.New("it takes pattern=ttl, such as 'cache:user:*=1h'")
	}
	g.Pattern = text[:i]
	if g.TTL, err = time.ParseDuration(text[i+1:]); err != nil {
		return g, fmt.Errorf("%q is no TTL, such as 1h30m", text[i+1:])
	}
	return g, ttlaudit.Plan{Give: []ttlaudit.Give{g}}.Validate()
}

// replaceFile writes data to name, or leaves what was there.
func replaceFile(name string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = cmp.Or(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
