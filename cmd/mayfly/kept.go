package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	lib "github.com/mayflycache/mayfly" // mayfly is the command here
)

// openKept opens the Redis of a demo and says where it keeps its data from one run to the next. A short run keeps nothing unless a directory
// was chosen. If the default directory cannot be used, the demo runs without one.
func (r *reached) openKept(ctx context.Context, short bool, out io.Writer) error {
	chosen := r.dir != ""
	switch {
	case r.url != "":
		return r.open(ctx)
	case r.dir == "none", !chosen && short:
		r.dir = ""
		return r.open(ctx)
	case !chosen:
		r.dir = stateDir()
	}
	err := r.open(ctx)
	switch {
	case errors.Is(err, lib.ErrLocked):
		err = fmt.Errorf("another demo keeps its data in %s: choose another directory with --dir", r.dir)
	case err == nil && r.dir != "":
		if found := r.db.Recovered; found.Keys+found.Ended > 0 {
			fmt.Fprintf(out, "mayfly: %d keys of the last run are still there, and %d have expired since (%s)\n", found.Keys, found.Ended, r.dir)
		} else {
			fmt.Fprintf(out, "mayfly: carts and logins survive Ctrl-C: they are kept in %s (choose another directory with --dir)\n", r.dir)
		}
	}
	if err == nil || chosen {
		return err
	}
	fmt.Fprintf(out, "mayfly: nothing survives this run: %v\n", err)
	r.dir = ""
	return r.open(ctx)
}

// stateDir is where the demo keeps its data; empty if this user has no such place.
func stateDir() string {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil || !filepath.IsAbs(home) {
			return ""
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "mayfly", "demo")
}
