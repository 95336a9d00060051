// Mayfly shows what the library does, and serves the embedded Redis engine to redis-cli and other languages.
//
//	mayfly demo
//	mayfly serve [--addr 127.0.0.1:6379] [--cluster] [--requirepass secret] [--maxmemory 64mb] ...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// command is one of mayfly's own.
type command struct {
	name, summary string
	run           func(ctx context.Context, args []string, out io.Writer) error
}

var commands = []command{
	{"demo", "a stampede on a small shop, without mayfly and with it", demo},
	{"serve", "serve an empty database in memory", serve},
}

// errUsage is wrapped by errors that are the caller's: the program ends with 2, not 1.
var errUsage = errors.New("see mayfly help")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program; it returns what it exits with.
func run(ctx context.Context, args []string, out, complaints io.Writer) int {
	err := dispatch(ctx, args, out)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		fmt.Fprintln(complaints, "mayfly:", err)
		return 2
	}
	fmt.Fprintln(complaints, "mayfly:", err)
	return 1
}

func dispatch(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command given (%w)", errUsage)
	}
	switch strings.TrimLeft(args[0], "-") {
	case "help", "h":
		fmt.Fprintln(out, "usage: mayfly <command> [flags]")
		for _, c := range commands {
			fmt.Fprintf(out, "  %-8s %s (mayfly %s --help)\n", c.name, c.summary, c.name)
		}
		return nil
	}
	for _, c := range commands {
		if c.name == args[0] {
			return c.run(ctx, args[1:], out)
		}
	}
	return fmt.Errorf("unknown command %q (%w)", args[0], errUsage)
}
