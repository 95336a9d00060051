package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/mayflycache/mayfly/internal/demo/lab"
	"github.com/mayflycache/mayfly/internal/demo/strategy"
)

const aboutLab = `Lab compares six ways to keep a hot value in Redis: by hand, with the TTL guide's jitter, with its early refresh, with XFetch, with
mayfly's lease alone, and with all of mayfly. Many callers in several processes read one key while it expires again and again; each
simulated process has its own client, cache and local copies. Lab prints how often the origin was asked per TTL, how many loads ran
at once, how long a Get took, and how old the oldest value was. Ctrl-C ends it and prints the results so far.

The picture in the README was drawn by: mayfly lab --svg stampede.svg`

// runLab is mayfly lab.
func runLab(ctx context.Context, args []string, out io.Writer) error {
	s := lab.Setup{Strategies: strategy.All}
	var only, svg, page string
	var r reached
	flags := newFlags("lab", aboutLab)
	flags.IntVar(&s.Processes, "processes", 8, "the `number` of processes, 1 to 100")
	flags.IntVar(&s.Callers, "callers", 64, "the `number` of goroutines in each process that read the key, 1 to 10000")
	flags.DurationVar(&s.Pause, "pause", 100*time.Millisecond, "average pause of a caller between two Gets")
	flags.DurationVar(&s.Load, "load", 100*time.Millisecond, "how long a load takes")
	flags.DurationVar(&s.TTL, "ttl", time.Second, "how long a value lives")
	flags.IntVar(&s.Expiries, "expiries", 5, "the `number` of TTLs each way runs for")
	flags.StringVar(&only, "only", "", "run only the ways whose name contains this `word`, such as mayfly")
	flags.StringVar(&svg, "svg", "", "write the results to this `file` as an SVG picture")
	flags.StringVar(&page, "html", "", "write the results to this `file` as an HTML page")
	r.flag(flags)
	if err := flags.parse(args, out); err != nil {
		return err
	}
	switch {
	case s.Processes < 1 || s.Processes > 100:
		return usage("lab", "--processes must be 1 to 100, got %d", s.Processes)
	case s.Callers < 1 || s.Callers > 10_000:
		return usage("lab", "--callers must be 1 to 10000, got %d", s.Callers)
	case s.Expiries < 1:
		return usage("lab", "--expiries must be 1 or more, got %d", s.Expiries)
	case min(s.Pause, s.Load, s.TTL) < time.Millisecond:
		return usage("lab", "--pause, --load and --ttl must be 1ms or more")
	}
	if only != "" {
		s.Strategies = nil
		for _, way := range strategy.All {
			if strings.Contains(strings.ToLower(way.Name), strings.ToLower(only)) {
				s.Strategies = append(s.Strategies, way)
			}
		}
		if len(s.Strategies) == 0 {
			return usage("lab", "--only: no way has %q in its name", only)
		}
	}
	if err := errors.Join(hasRoom("lab", svg), hasRoom("lab", page)); err != nil {
		return err
	}
	s.Connect = func() *redis.Client { return r.client(s.Callers + 16) }
	if err := r.open(ctx); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer r.close(context.WithoutCancel(ctx))

	fmt.Fprintf(out, "%v.\n%d ways, %v each, on %s:\n\n", s, len(s.Strategies), time.Duration(s.Expiries)*s.TTL, r.name())
	progress, clear := progressBar(out, s.Lasts())
	found, err := lab.Run(ctx, s, progress)
	clear()
	if err != nil {
		return err
	}
	lab.Text(out, found)
	return errors.Join(written("lab", svg, out, func(w io.Writer) error { return lab.SVG(w, found) }),
		written("lab", page, out, func(w io.Writer) error { return lab.HTML(w, found) }))
}

// written writes a file, unless its name is empty.
func written(command, name string, out io.Writer, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err == nil {
		err = errors.Join(write(f), f.Close())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	fmt.Fprintln(out, "wrote", name)
	return nil
}

// progressBar returns functions that draw and remove a progress bar. If out is no terminal, progress is nil and clear does nothing.
func progressBar(out io.Writer, lasts time.Duration) (progress func(float64, string), clear func()) {
	if !isTerminal(out) {
		return nil, func() {}
	}
	const wide = 30
	return func(done float64, what string) {
		full := int(done * wide)
		left := time.Duration((1 - done) * float64(lasts)).Round(time.Second)
		fmt.Fprintf(out, "\r\x1b[K[%s%s] %v left: %s", strings.Repeat("█", full), strings.Repeat("·", wide-full), left, what)
	}, func() { fmt.Fprint(out, "\r\x1b[K") }
}
