package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// version prints the module's version if the program was installed as a module, else the commit it was built from.
func version(_ context.Context, args []string, out io.Writer) error {
	flags := newFlags("version", "Version prints the version of mayfly, the Go it was built with, and the version of Redis that its engine follows.")
	if err := flags.parse(args, out); err != nil {
		return err
	}
	is := "(unknown)"
	if build, ok := debug.ReadBuildInfo(); ok {
		is = build.Main.Version
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" && (is == "" || is == "(devel)") {
				is = "commit " + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	fmt.Fprintf(out, "mayfly %s, %s %s/%s, engine of Redis 8.0\n", is, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
