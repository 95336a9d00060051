// Mayfly shows what the library does, compares it with handwritten caching, and serves the embedded Redis engine to redis-cli and other
// languages.
//
//	mayfly demo                  a shop with a live dashboard
//	mayfly lab                   ways to prevent a stampede, compared
//	mayfly audit redis://...     which keys never expire
//	mayfly serve [--cluster] ... a Redis in memory, for development
//	mayfly handover ...          move from the embedded engine to a separate Redis
//	mayfly swap ./...            try redistest in place of miniredis
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// command is a subcommand of mayfly.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"demo", "run a small shop with a live dashboard: caching by hand against mayfly", demo},
		{"lab", "compare ways to prevent a cache stampede, in a table and a picture", runLab},
		{"audit", "find the keys of a Redis that never expire, and give them a TTL", audit},
		{"serve", "serve an empty Redis in memory, for development and tests", serve},
		{"handover", "move the data of mayfly serve, or of a program, to a Redis while it keeps running", handOver},
		{"swap", "run a module's tests on redistest instead of miniredis, and report the differences", swap},
		{"completion", "print the shell script that completes mayfly's commands and flags", completion},
		{"version", "print the version", version},
	}
}

// commandNamed looks a command up by its name.
func commandNamed(name string) (c command, ok bool) {
	for _, c := range commands() {
		if c.name == name {
			return c, true
		}
	}
	return c, false
}

func main() {
	ctx, stop := untilToldToEnd()
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs the program and returns its exit status.
func run(ctx context.Context, args []string, out, complaints io.Writer) int {
	err := dispatch(ctx, args, out)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(complaints, "mayfly:", err)
	var own exit
	switch {
	case errors.Is(err, errUsage):
		return 2
	case errors.As(err, &own):
		return own.code
	}
	return 1
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given (%w)", errUsage)
	}
	name, rest := args[0], args[1:]
	switch strings.TrimLeft(name, "-") {
	case "help", "h":
		if len(rest) == 0 {
			help(out)
			return nil
		}
		name, rest = rest[0], []string{"--help"}
	case "version":
		name = "version"
	}
	if c, ok := commandNamed(name); ok {
		return c.run(ctx, rest, out)
	}
	return fmt.Errorf("unknown command %q (%w)", name, errUsage)
}

func help(out io.Writer) {
	fmt.Fprintln(out, "usage: mayfly <command> [flags]")
	for _, c := range commands() {
		fmt.Fprintf(out, "  %-11s %s\n", c.name, c.summary)
	}
	fmt.Fprintln(out, "Run mayfly help <command> for details.")
}
