package checks

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

var (
	testName    = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)([A-Z]\w*)?$`)
	anyTest     = regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]\w*`)
	declaration = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)
	makeWord    = regexp.MustCompile(`(?:^|\s)make ([a-z][\w-]*)`)
	mayflyWord  = regexp.MustCompile(`(?:^|[\s/])mayfly(?:@\w+)? ([a-z][\w-]*)`)
	repoPath    = regexp.MustCompile(`^(?:\.ci|cmd|docs|examples|internal|metrics)/[\w./-]*\w$`)
	rule        = regexp.MustCompile(`\brules? ([A-Z]\d\d)(?: to ([A-Z]\d\d)|((?:, [A-Z]\d\d)*)(?: and ([A-Z]\d\d))?)`)
)

// Whatever the documents name exists: tests, targets of make, commands of mayfly, scripts and folders, rules of expiry.
func TestNames(t *testing.T) {
	effort.Alone(t)
	tests, targets, commands := declared(t), targets(t), commands(t)
	rules, err := os.ReadFile(filepath.Join(root, "internal/redis/engine/testdata/expire-rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	for _, p := range pages(t) {
		for _, c := range p.code() {
			for _, name := range anyTest.FindAllString(c.text, -1) {
				if found["test"]++; !tests[name] {
					t.Errorf("%s: no test %s", c.where, name)
				}
			}
			for _, m := range makeWord.FindAllStringSubmatch(c.text, -1) {
				if found["make"]++; !targets[m[1]] {
					t.Errorf("%s: no target %q in the Makefile", c.where, m[1])
				}
			}
			for _, m := range mayflyWord.FindAllStringSubmatch(c.text, -1) {
				if found["mayfly"]++; !commands[m[1]] {
					t.Errorf("%s: no command %q of mayfly", c.where, m[1])
				}
			}
			if text := strings.Trim(c.text, "`"); repoPath.MatchString(text) {
				found["path"]++
				if _, err := os.Stat(filepath.Join(root, text)); err != nil {
					t.Errorf("%s: no %s", c.where, text)
				}
			}
		}
		prose, _ := p.split()
		for i, line := range prose {
			for _, m := range rule.FindAllStringSubmatch(line, -1) {
				for _, id := range regexp.MustCompile(`[A-Z]\d\d`).FindAllString(strings.Join(m[1:], " "), -1) {
					if found["rule"]++; !strings.Contains(string(rules), "\n| "+id+" |") {
						t.Errorf("%s:%d: no rule %s", p.name, i+1, id)
					}
				}
			}
		}
	}
	for _, kind := range []string{"test", "make", "mayfly", "path"} {
		if found[kind] == 0 {
			t.Errorf("no %s found in any document", kind)
		}
	}
}

// The README is short enough to be read to its end.
func TestReadmeIsShort(t *testing.T) {
	if n := len(read(t, filepath.Join(root, "README.md")).lines); n >= 150 {
		t.Errorf("README.md has %d lines", n)
	}
}

// Every page is in the index.
func TestTheIndexIsComplete(t *testing.T) {
	index := map[string]bool{}
	for _, l := range read(t, filepath.Join(root, "docs/README.md")).links() {
		index[l.target] = true
	}
	for _, p := range pages(t) {
		if name, ok := strings.CutPrefix(p.name, "docs/"); ok && name != "README.md" && !index[name] && !strings.HasPrefix(name, "decisions/") {
			t.Errorf("docs/README.md has no link to %s", name)
		}
	}
}

// code is a code span, or a line of a block that is not Go.
type code struct{ where, text string }

func (p page) code() (all []code) {
	prose, blocks := p.split()
	for i, line := range prose {
		where := fmt.Sprintf("%s:%d", p.name, i+1)
		for _, s := range span.FindAllString(line, -1) {
			all = append(all, code{where, strings.Trim(s, "`")})
		}
	}
	for _, b := range blocks {
		if b.language == "go" || b.language == "python" {
			continue
		}
		for i, line := range strings.Split(b.text, "\n") {
			all = append(all, code{fmt.Sprintf("%s:%d", p.name, b.line+i), line})
		}
	}
	return all
}

// declared are all tests of the repository, including its other modules.
func declared(t *testing.T) map[string]bool {
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range declaration.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func targets(t *testing.T) map[string]bool {
	names := map[string]bool{}
	for _, line := range read(t, filepath.Join(root, "Makefile")).lines {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.ContainsAny(name, " \t.=") {
			names[name] = true
		}
	}
	return names
}

func commands(t *testing.T) map[string]bool {
	names := map[string]bool{"help": true}
	for _, line := range read(t, filepath.Join(root, "cmd/mayfly/main.go")).lines {
		if m := regexp.MustCompile(`^\t\t\{"(\w+)", "`).FindStringSubmatch(line); m != nil {
			names[m[1]] = true
		}
	}
	return names
}
