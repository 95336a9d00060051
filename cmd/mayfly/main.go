// Mayfly shows what the library does, compares it with what is written by hand, and serves the embedded Redis engine to redis-cli and other
// languages.
//
//	mayfly demo                  a shop with a live dashboard
//	mayfly lab                   ways against a stampede, side by side
//	mayfly audit redis://...     which keys never end
//	mayfly serve [--cluster] ... a Redis in memory, for development
//	mayfly handover ...          from the embedded engine to a Redis of its own
//	mayfly swap ./...            from miniredis to redistest, tried out
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

// command is one of mayfly's own.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, out io.Writer) error
}

func commands() []command {
	return []command{
		{"demo", "a small shop with a live dashboard: what caching by hand does, and what mayfly does", demo},
		{"lab", "ways against a stampede, side by side, as a table and as a picture", runLab},
		{"audit", "find the keys of a Redis that never end, and give them an end", audit},
		{"serve", "serve an empty Redis in memory, for development and tests", serve},
		{"handover", "move the data of mayfly serve, or of a program, to a Redis, while it goes on", handOver},
		{"swap", "try a module's tests on redistest instead of miniredis, and say what differs", swap},
		{"completion", "print what makes a shell complete mayfly's commands and flags", completion},
		{"version", "print the version", version},
	}
}

// commandNamed returns the command of this name, if there is one.
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

// run is the program; it returns what it exits with.
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
	fmt.Fprintln(out, "mayfly help <command> says more.")
}
