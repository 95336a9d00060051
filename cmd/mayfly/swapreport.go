package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// results are the outcomes of the tests of some packages.
type results struct {
	tests map[string]string   // pass, fail or skip, by "package test"; of a package itself by "package "
	said  map[string][]string // what each wrote
}

// test runs the tests of packages.
func (s *swapping) test(ctx context.Context, packages []string, flags ...string) results {
	args := slices.Concat([]string{"test", "-json", "-count=1", "-timeout=" + s.timeout}, flags, packages)
	out, _ := s.goTool(ctx, s.dir, args...) // failures are in the results
	return parseResults(out)
}

// goOn reruns packages that a panic ended early, skipping the test that panicked, and adds the outcomes of the tests that had not run.
func (s *swapping) goOn(ctx context.Context, packages []string, before, after results) {
	for skip := ""; ; {
		ended := after.ended()
		if len(ended) == 0 || "^("+strings.Join(ended, "|")+")$" == skip || !slices.ContainsFunc(slices.Collect(maps.Keys(before.tests)), func(name string) bool { return after.tests[name] == "" }) {
			return
		}
		skip = "^(" + strings.Join(ended, "|") + ")$"
		again := s.test(ctx, packages, "-skip="+skip)
		for name, is := range again.tests {
			if after.tests[name] == "" {
				after.tests[name] = is
				after.said[name] = again.said[name]
			}
		}
	}
}

// ended returns the tests that ended their package with a panic.
func (r results) ended() (tests []string) {
	for name, said := range r.said {
		_, test, _ := strings.Cut(name, " ")
		test, _, _ = strings.Cut(test, "/")
		if test != "" && r.tests[name] == "fail" && slices.ContainsFunc(said, func(line string) bool { return strings.HasPrefix(line, "panic: ") }) && !slices.Contains(tests, test) {
			tests = append(tests, test)
		}
	}
	slices.Sort(tests)
	return tests
}

// parseResults reads what go test -json wrote.
func parseResults(out []byte) results {
	r := results{tests: map[string]string{}, said: map[string][]string{}}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Package, ImportPath, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			r.said[" "] = append(r.said[" "], string(line))
			continue
		}
		pkg, _, _ := strings.Cut(e.Package+e.ImportPath, " ") // "pkg [pkg.test]" where it does not compile
		name := strings.TrimSuffix(strings.TrimSuffix(pkg, ".test"), "_test") + " " + e.Test
		switch e.Action {
		case "pass", "fail", "skip":
			r.tests[name] = e.Action
		case "output", "build-output":
			r.said[name] = append(r.said[name], e.Output)
		}
	}
	return r
}

// A reason explains a difference: if a test's output matches, a row of docs/testing.md says why.
type reason struct {
	when *regexp.Regexp
	row  string // words of the page
	why  string
}

// reasons are tried in order; the first match is reported.
var reasons = []reason{
	{regexp.MustCompile(`minisentinel|miniredis/v2/server|\.Server undefined|no field or method Server\b`), "miniredis's own server", "it needs miniredis's own type: leave this package on miniredis"},
	{regexp.MustCompile(`NewSubscriber`), "subscribe with a client", "subscribe with a client"},
	{regexp.MustCompile(`\b(XAdd|Stream|StreamEntry)\b|unknown command .?.?(?i:x[a-z]+|geo[a-z]*|function|fcall)`), "`Stream`, `XAdd`, geo and functions", "there are no streams, geo or functions: leave this package on miniredis"},
	{regexp.MustCompile(`(not enough arguments in call to .*Dial|Dial .*func\(\) \(net\.Conn|Dial\(\))`), "has a dialer's signature", "Dial has a dialer's signature here"},
	{regexp.MustCompile(`requires go >= |go\.mod requires go|toolchain not available`), "What the swap raises", "the swap raises the module's Go"},
	{regexp.MustCompile(`go-redis.*(cannot use|undefined|ambiguous|does not implement)|(cannot use|undefined|does not implement).*redis\.`), "What the swap raises", "the swap raises go-redis, whose API changed"},
	{regexp.MustCompile(`undefined: miniredis\.|\.\w+ undefined \(type \*?(miniredis|redistest)|has no field or method`), "From miniredis, in five minutes", "redistest does not have this name"},
	{regexp.MustCompile(`unknown command`), "answered `ERR unknown command`", "redistest does not have the command"},
	{regexp.MustCompile(`\d+(\.\d+)?(ms|s|m)\b.*\d+\.\d{3,}(ms|s|m)\b|\d+m59\.9\d*s|\b\d?9\.99\d*s|(?i:\bttl\b)[^\n]*\d`), "Time flows", "time flows: compare TTLs with a tolerance, or run the test in a synctest bubble"},
	{regexp.MustCompile(`(?s)ERR |WRONGTYPE|NOAUTH|WRONGPASS|MOVED|CROSSSLOT|EXECABORT|syntax error`), "Replies are Redis's", "the test expects what only miniredis answers"},
}

// explain returns the reason that matches a test's output.
func explain(said string) (reason, bool) {
	at := slices.IndexFunc(reasons, func(r reason) bool { return r.when.MatchString(said) })
	if at < 0 {
		return reason{}, false
	}
	return reasons[at], true
}

// report writes the differences. It returns how many tests passed before but not after, and the packages that should stay on miniredis.
func report(out io.Writer, before, after results) (different int, stay []string) {
	var passed, stayed, failing, fixed int
	var worse []string
	for name, was := range before.tests {
		if strings.HasSuffix(name, " ") {
			continue
		}
		is := after.tests[name]
		if parent, _, within := cutLast(name, "/"); within && is == "" && strings.Contains(parent, " ") {
			is = after.tests[parent] // names of subtests may differ between runs
		}
		switch {
		case was == "pass" && is == "pass":
			passed, stayed = passed+1, stayed+1
		case was == "pass" && is != "skip":
			passed++
			worse = append(worse, name)
		case was == "fail" && is == "pass":
			fixed++
		case was == "fail":
			failing++
		}
	}
	fmt.Fprintf(out, "%d tests passed before, %d of these after", passed, stayed)
	if failing+fixed > 0 {
		fmt.Fprintf(out, "; %d failed before and after, %d only before", failing, fixed)
	}
	fmt.Fprintln(out)
	slices.Sort(worse)
	for _, name := range outermost(worse) {
		pkg, test, _ := strings.Cut(name, " ")
		said := strings.Join(after.saidBy(name), "")
		if after.tests[name] == "" { // it did not run: the package did not compile, or ended
			said = strings.Join(after.said[pkg+" "], "") + strings.Join(after.said[" "], "")
		}
		fmt.Fprintf(out, "\n%s in %s\n", test, pkg)
		for line := range strings.Lines(excerpt(said)) {
			fmt.Fprint(out, "    ", strings.TrimRight(line, "\n"), "\n")
		}
		if why, ok := explain(said); ok {
			fmt.Fprintf(out, "  why: %s (docs/testing.md: %q)\n", why.why, why.row)
			if strings.HasSuffix(why.why, "leave this package on miniredis") && !slices.Contains(stay, pkg) {
				stay = append(stay, pkg)
			}
		} else {
			fmt.Fprintln(out, "  why: not known; please report it with the test")
		}
	}
	return len(worse), stay
}

// saidBy returns the output of a test and its subtests.
func (r results) saidBy(name string) (said []string) {
	said = append(said, r.said[name]...)
	for other, lines := range r.said {
		if strings.HasPrefix(other, name+"/") {
			said = append(said, lines...)
		}
	}
	return said
}

// outermost drops subtests whose parent is in names.
func outermost(names []string) (outer []string) {
	for _, name := range names {
		parent, _, within := cutLast(name, "/")
		if !within || !slices.Contains(names, parent) {
			outer = append(outer, name)
		}
	}
	return outer
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// excerpt returns the first twelve lines that go test did not add itself.
func excerpt(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		trimmed := strings.TrimSpace(line)
		if trimmed == "" || strings.HasPrefix(trimmed, "=== ") || strings.HasPrefix(trimmed, "--- ") || trimmed == "FAIL" {
			continue
		}
		if lines = append(lines, line); len(lines) == 12 {
			break
		}
	}
	return strings.Join(lines, "")
}
