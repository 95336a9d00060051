package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
)

const aboutSwap = `Swap tries a module's tests on redistest instead of miniredis, which is a change of one import. In a temporary copy of the module it runs
the tests of the packages that import miniredis, changes the import, and runs them again. It then reports each difference, with the row of
docs/testing.md that explains it. With --write it also changes the imports and the go.mod of the module itself.`

// swapping is one run of mayfly swap.
type swapping struct {
	dir     string            // the module, or its copy
	pattern string            // the packages
	with    string            // a directory with mayfly's source, or ""
	version string            // of mayfly, or "": see steps
	timeout string            // of each run of the tests
	dirs    map[string]string // of the packages, from the module's root, by import path
	stay    map[string]bool   // the directories of those that need miniredis itself
	out     io.Writer
	goTool  func(ctx context.Context, dir string, args ...string) ([]byte, error)
}

// swap is mayfly swap.
func swap(ctx context.Context, args []string, out io.Writer) error {
	s := &swapping{out: out, goTool: goTool}
	flags := newFlags("swap", aboutSwap, "<packages>, such as ./...")
	write := flags.Bool("write", false, "change the module itself after the tests ran (default only its copy)")
	flags.StringVar(&s.version, "version", "", "the `version` of mayfly to require (default what go.mod says; else this program's own, or latest)")
	flags.StringVar(&s.with, "with", "", "use mayfly's source in this `directory` instead of a version")
	flags.StringVar(&s.timeout, "timeout", "10m", "stop the tests of a package after this `duration`")
	if err := flags.parse(args, out); err != nil {
		return err
	}
	s.pattern = flags.Arg(0)
	if s.with != "" && s.version != "" {
		return usage("swap", "--with and --version cannot be combined: give one of them")
	}
	root, err := s.moduleRoot(ctx)
	if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	different, err := s.try(ctx, root)
	if ctx.Err() != nil {
		return fmt.Errorf("swap: %w: nothing was changed", errToldToEnd)
	}
	if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	if !*write {
		fmt.Fprintln(out, "nothing was changed: give --write to change the module")
	} else if err := s.change(ctx, root); ctx.Err() != nil {
		return fmt.Errorf("swap: %w: the module may be changed in part", errToldToEnd)
	} else if err != nil {
		return fmt.Errorf("swap: %w", err)
	}
	if different > 0 {
		return fmt.Errorf("swap: %d tests passed before and do not after", different)
	}
	return nil
}

// ownVersion is the version that this program was installed as, or latest.
func ownVersion() string {
	if build, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(build.Main.Version, "v") && !strings.Contains(build.Main.Version, "+dirty") {
		return build.Main.Version
	}
	return "latest"
}

// goTool runs the go command in a directory and returns its output, standard error included.
func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	return tool(ctx, dir, "go", args...)
}

// tool is goTool for any program. When ctx ends, the program ends soon after, with all its child processes.
func tool(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.WaitDelay = lastWords
	endsWhole(cmd)
	out, err := cmd.CombinedOutput()
	return out, err
}

// moduleRoot returns the root directory of the module that contains the packages.
func (s *swapping) moduleRoot(ctx context.Context) (string, error) {
	out, err := s.goTool(ctx, ".", "env", "GOMOD")
	file := strings.TrimSpace(string(out))
	if err != nil || file == "" || file == os.DevNull {
		return "", fmt.Errorf("there is no go.mod here: run it in the module whose tests use miniredis")
	}
	return filepath.Dir(file), nil
}

// try runs the tests before and after the change in a copy of the module, and returns how many passed only before.
func (s *swapping) try(ctx context.Context, root string) (different int, err error) {
	work, err := os.MkdirTemp("", "mayfly-swap")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	if err := copyModule(work, root); err != nil {
		return 0, err
	}
	s.dir = work
	if err := s.pinNeighbours(ctx, root); err != nil {
		return 0, err
	}
	users, err := usersOf(work)
	if err != nil {
		return 0, err
	}
	packages, err := s.packages(ctx, users)
	if err != nil {
		return 0, err
	}
	if len(packages) == 0 {
		fmt.Fprintf(s.out, "no package of %s imports miniredis\n", s.pattern)
		return 0, nil
	}
	fmt.Fprintf(s.out, "%d packages import miniredis: running their tests\n", len(packages))
	before := s.test(ctx, packages)
	if err := s.change(ctx, work); err != nil {
		return 0, err
	}
	fmt.Fprintln(s.out, "and on redistest")
	after := s.test(ctx, packages)
	s.goOn(ctx, packages, before, after)
	different, stay := report(s.out, before, after)
	s.stay = make(map[string]bool)
	for _, pkg := range stay {
		s.stay[s.dirs[pkg]] = true
	}
	return different, nil
}

// packages returns the packages of the pattern whose directories are in users, as paths relative to the module's root.
func (s *swapping) packages(ctx context.Context, users []string) (packages []string, err error) {
	out, err := s.goTool(ctx, s.dir, "list", "-e", "-f", "{{.ImportPath}} {{.Dir}}", s.pattern)
	if err != nil {
		return nil, fmt.Errorf("go list %s: %s", s.pattern, strings.TrimSpace(string(out)))
	}
	real, err := filepath.EvalSymlinks(s.dir)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, dir := range users {
		wanted[dir] = true
	}
	s.dirs = make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(line, " ")
		if rel, err := filepath.Rel(real, strings.TrimSpace(dir)); err == nil && wanted[rel] {
			packages = append(packages, "./"+filepath.ToSlash(rel))
			s.dirs[path] = rel
		}
	}
	return packages, nil
}

// change changes the imports and the go.mod of a module.
func (s *swapping) change(ctx context.Context, root string) error {
	changed, err := rewriteModule(root, s.stay)
	if err != nil {
		return err
	}
	steps, err := s.steps(ctx, root)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if out, err := s.goTool(ctx, root, step...); err != nil {
			return fmt.Errorf("go %s: %s", strings.Join(step, " "), strings.TrimSpace(string(out)))
		}
	}
	if root != s.dir {
		fmt.Fprintf(s.out, "changed go.mod, go.sum and %d files: %s\n", len(changed), strings.Join(changed, " "))
		for _, dir := range slices.Sorted(maps.Keys(s.stay)) {
			fmt.Fprintf(s.out, "left on miniredis: ./%s\n", filepath.ToSlash(dir))
		}
	}
	return nil
}
