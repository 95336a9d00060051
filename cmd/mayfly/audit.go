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
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/mayflycache/mayfly/ttlaudit"
)

// Exit statuses of mayfly audit besides 0, 1 (Redis could not be audited at all) and 2 (wrong arguments).
const (
	exitPartial = 3 // part of the keys was not covered, and no --fail-on condition holds in the rest
	exitFails   = 4 // a condition of --fail-on holds
)

// exit is an error with an exit code of its own.
type exit struct {
	error
	code int
}

const aboutAudit = `Audit looks at all keys of a Redis, or of all masters of a cluster, and reports which have no TTL. It reads with SCAN in small pages, at
a rate that other clients hardly notice, and writes nothing unless you give both --fix and --yes. Keys that vanish during the audit
are skipped. The report goes to standard output, the progress to standard error.

In reported patterns * stands for an id or a name. --fix takes patterns as they are reported: its * ends at the next : / or |.`

// statusAudit follows the statuses of every command.
const statusAudit = `3 when only a part was covered, as the report says: a server failed, or audit was interrupted (Ctrl-C, SIGTERM).
4 when a condition of --fail-on holds.`

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
	logging.Disable() // we report each error once ourselves
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
	flags.statuses = statusAudit
	flags.BoolVar(&a.json, "json", false, "write the report as JSON")
	flags.Func("fail-on", "exit with status 4 if a `condition` holds, such as 'no-ttl>0', 'no-ttl>=5%' or 'too-long>0'; may be repeated", func(text string) error {
		c, err := parseCondition(text)
		a.failOn = append(a.failOn, c)
		return err
	})
	flags.Func("fix", "instead of an audit, give keys without a TTL one, spread by 10 %: a `pattern=ttl` such as 'cache:user:*=1h';\nmay be repeated; without --yes nothing is written", func(text string) error {
		g, err := parseGive(text)
		a.fixes = append(a.fixes, g)
		return err
	})
	flags.BoolVar(&a.yes, "yes", false, "with --fix: write the TTLs")
	flags.IntVar(&o.MaxRate, "max-rate", 10_000, "look at this many `keys` a second at most; 0 means no limit, which slows other clients down")
	flags.StringVar(&o.Match, "match", "", "look only at keys that match a Redis `pattern`, such as 'cache:*'")
	flags.Int64Var(&o.Keys, "sample", 0, "stop after this many `keys`, and estimate the rest")
	flags.BoolVar(&a.noSizes, "no-sizes", false, "do not ask for sizes, for a Redis user without permission for MEMORY USAGE")
	flags.DurationVar(&o.TooLong, "too-long", 28*24*time.Hour, "report a TTL above this as too long")
	flags.IntVar(&o.Largest, "largest", 10, "list this `number` of the largest keys without a TTL")
	flags.StringVar(&a.resume, "resume", "", "keep the progress in a `file`, and resume from it if it exists; a complete audit removes it")
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
		return nil, usage("audit", "audit needs exactly one URL such as redis://host:port, got %d", len(urls))
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
		{o.Keys > 0 && o.Match != "", "--sample cannot be used with --match: the number of matching keys is unknown"},
		{o.TooLong < time.Millisecond, "--too-long must be 1ms or more"},
		{o.Largest < 1, "--largest must be 1 or more"},
		{a.yes && len(a.fixes) == 0, "--yes needs --fix: it allows --fix to write"},
		{len(a.fixes) > 0 && (len(a.failOn) > 0 || a.resume != "" || o.Match != "" || o.Keys > 0), "--fix can be combined only with --yes, --max-rate and --json"},
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
		if errors.Is(err, os.ErrNotExist) { // the audit ended before its first checkpoint
			err = nil
		}
	}
	looked := false
	for _, s := range r.Servers {
		looked = looked || s.Covered || s.Keys > 0
	}
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
			fmt.Fprintf(out, "%s: %d keys matched, %d %s a TTL of about %v, %d were left alone\n", g.Pattern, g.Matched, g.Given, did, a.fixes[i].TTL, g.Had)
		}
		if r.Unknown > 0 {
			fmt.Fprintf(out, "no answer came for %d keys, which may or may not have got their TTL: run this again\n", r.Unknown)
		}
		if r.Moved > 0 {
			fmt.Fprintf(out, "%d keys moved to another master meanwhile: run this again\n", r.Moved)
		}
		if !r.Applied {
			fmt.Fprintln(out, "nothing was written: give --yes to write")
		}
		return nil
	}, err)
}

// noReport returns the error of an audit or a fix without a report.
func noReport(err error) error {
	if errors.Is(err, errToldToEnd) {
		return exit{fmt.Errorf("partial: nothing was looked at: %w", err), exitPartial}
	}
	return errors.New(oneLine(err))
}

// write writes a report as JSON or as text. If the audit or fix ended early, the report is partial and early becomes the error.
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

// patience is how long a server may take for its first answer, and for each page of keys.
const patience = 10 * time.Second

// connect returns a client for the server at url, or for its cluster if it is a node of one.
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
	hello := redis.NewMapStringInterfaceCmd(ctx, "HELLO") // any authenticated user may send it
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

// condition is a condition of --fail-on.
type condition struct {
	text    string
	of      func(*ttlaudit.Report) int64
	share   bool // bound is a percentage of all keys
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
		return condition{}, errors.New("want no-ttl, too-long or no-ttl-bytes, then > or >=, then a number, or a share of the keys such as 5% (not for bytes)")
	}
	bound, err := strconv.ParseFloat(m[3], 64)
	if err != nil {
		return condition{}, fmt.Errorf("%q is not a number", m[3])
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
		return g, errors.New("want pattern=ttl, such as 'cache:user:*=1h'")
	}
	g.Pattern = text[:i]
	if g.TTL, err = time.ParseDuration(text[i+1:]); err != nil {
		return g, fmt.Errorf("%q is not a TTL such as 1h30m", text[i+1:])
	}
	return g, ttlaudit.Plan{Give: []ttlaudit.Give{g}}.Validate()
}

// replaceFile replaces the content of name with data, or leaves the file as it was.
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
