// Package deps holds the import rules of the house as a test, in the manner of the standard library's own.
package deps

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/mayflycache/mayfly"

// room is what one package may do. Imports of the standard library are free but for Never.
type room struct {
	may   []string // rooms of this module, and modules of others
	never []string // standard packages ("net") and functions ("time.Now") that would break the room's promise
}

const goredis = "github.com/redis/go-redis/v9"

// pure rooms have no clock, no chance of their own beyond math/rand, no network and no lock to wait for.
var pure = []string{"net", "os", "context", "time.Now", "time.Sleep", "time.NewTimer", "time.AfterFunc", "time.Since"}

// rooms is the whole house, from the ground up. A package that is not in it fails the test: say here who may enter.
var rooms = map[string]room{
	// Policies: pure functions.
	"jitter":       {never: pure},
	"earlyrefresh": {never: pure},

	// The rules of HTTP caching: what may be stored and reused, for how long and for whom.
	"internal/rfc9111": {may: []string{"github.com/dunglas/httpsfv"}, never: append([]string{"sync"}, pure...)},

	// The kernel: both halves stand on it.
	"internal/expiry":   {never: append([]string{"sync", "sync/atomic"}, pure...)},
	"internal/hashslot": {never: pure},

	// The client half: may know go-redis, never the engine.
	"internal/keyform":   {never: pure},
	"internal/lease":     {may: []string{"internal/hashslot", "internal/record", "internal/breaker", goredis}},
	"internal/record":    {never: pure},
	"internal/flight":    {},
	"internal/works":     {},
	"internal/doubts":    {may: []string{"internal/works"}},
	"internal/tier":      {may: []string{"internal/expiry"}},
	"internal/coherence": {may: []string{"internal/tier", "internal/lease", "internal/hashslot", goredis}},
	"internal/breaker":   {},

	// The vocabulary.
	"": {may: []string{"jitter", "internal/keyform", "internal/lease", "internal/coherence", goredis}},

	// The patterns, and what those share in which Redis holds the only copy.
	"internal/truth": {may: []string{"", "internal/keyform", goredis}},
	"sliding":        {may: []string{"", "internal/truth", "internal/record", "internal/keyform", "internal/coherence", "internal/tier", goredis}},
	"navsession":     {may: []string{"", "internal/truth", goredis}},
	"fieldttl":       {may: []string{"", "internal/truth", goredis}},
	"cacheaside": {may: []string{"", "jitter", "earlyrefresh", "internal/keyform", "internal/lease", "internal/record",
		"internal/flight", "internal/works", "internal/doubts", "internal/tier", "internal/coherence", "github.com/klauspost/compress", goredis}},

	// The composition.
	"httpcache": {may: []string{"", "internal/rfc9111", "internal/lease", "internal/record", "internal/flight", "internal/works", "internal/doubts", "internal/tier",
		"internal/coherence", goredis}},

	// The engine half: never knows go-redis, nor any pattern.
	"internal/resp":          {never: pure},
	"internal/engine/values": {may: []string{"internal/expiry"}, never: pure},
	"internal/engine/rdb":    {never: pure},
	"internal/engine/script": {may: []string{"internal/resp", "github.com/yuin/gopher-lua"}, never: []string{"net", "os", "time.Now", "time.Sleep"}},
	"internal/engine": {may: []string{"internal/expiry", "internal/resp", "internal/hashslot", "internal/engine/values",
		"internal/engine/rdb", "internal/engine/script", "github.com/yuin/gopher-lua"}, never: []string{"net", "time.Now", "time.Sleep"}},
	"internal/server": {may: []string{"internal/engine", "internal/resp"}},

	// The doors: the engine half, reachable as RESP.
	"redistest": {may: []string{"internal/engine", "internal/server", "internal/resp", "internal/hashslot", goredis}},
	"embedded":  {may: []string{"internal/engine", "internal/server", "internal/resp", goredis}},
	"cmd/mayfly": {may: []string{"", "cacheaside", "jitter", "embedded", "ttlguard", "internal/engine", "internal/server",
		"internal/strategy", "internal/lab", "internal/panel", "internal/shop", "internal/dashboard", "metrics", "github.com/prometheus/client_golang", goredis}},

	// Operations: see it, enforce it.
	"metrics":  {may: []string{"", goredis, "github.com/prometheus/client_golang"}},
	"ttlguard": {may: []string{"jitter", goredis}},

	// What the command shows: ways to keep a value, compared.
	"internal/strategy": {may: []string{"", "cacheaside", "jitter", "earlyrefresh", goredis}},
	"internal/lab":      {may: []string{"internal/strategy", goredis}},
	"internal/panel":    {}, // without go-redis: the dashboard is built while that still is
	"internal/shop": {may: []string{"", "internal/strategy", "internal/panel", "jitter", "earlyrefresh", "sliding", "navsession", "fieldttl",
		"httpcache", "metrics", goredis}},
	"internal/dashboard": {may: []string{"internal/panel"}},

	// Tests only: nobody else may import them but from a test.
	"internal/realredis": {may: []string{goredis}},
	"internal/processes": {may: []string{goredis}},
	"internal/backends":  {may: []string{"internal/realredis", "redistest", "github.com/alicebob/miniredis/v2", goredis}},

	// Tools of this repository: they draw and measure, and nobody imports them.
	"internal/expiry/deadplot": {may: []string{"internal/expiry"}},

	"internal/chromium": {}, // tests only

	"internal/deps":    {},
	"internal/docs":    {}, // tests only: what the documents say is so
	"internal/mutants": {},
}

func TestImports(t *testing.T) {
	eachGoFile(t, func(dir, file string, f *ast.File, fset *token.FileSet) {
		rule, ok := rooms[dir]
		if !ok {
			t.Errorf("%s: package %q is not in the table of rooms", file, dir)
			return
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if err := rule.permits(imported); err != nil {
				t.Errorf("%s: %q %v", fset.Position(spec.Pos()), dir, err)
			}
		}
		for _, used := range rule.usesForbidden(f) {
			t.Errorf("%s: %q must not use %s", fset.Position(used.Pos()), dir, selector(used))
		}
	})
}

func (r room) permits(imported string) error {
	if inside, ok := strings.CutPrefix(imported, module); ok {
		inside = strings.TrimPrefix(inside, "/")
		if slices.Contains(r.may, inside) {
			return nil
		}
		if inside == "internal/realredis" || inside == "internal/backends" || inside == "internal/processes" {
			return fmt.Errorf("must not import %s: it is for tests", inside)
		}
		return fmt.Errorf("must not import the room %q", inside)
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") { // the standard library
		if slices.Contains(r.never, imported) {
			return fmt.Errorf("must not import %s", imported)
		}
		return nil
	}
	for _, m := range r.may {
		if strings.Contains(m, ".") && (imported == m || strings.HasPrefix(imported, m+"/")) {
			return nil
		}
	}
	return fmt.Errorf("must not import %s", imported)
}

func (r room) usesForbidden(f *ast.File) (used []*ast.SelectorExpr) {
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(r.never, selector(s)) {
			used = append(used, s)
		}
		return true
	})
	return used
}

func selector(s *ast.SelectorExpr) string {
	if x, ok := s.X.(*ast.Ident); ok {
		return x.Name + "." + s.Sel.Name
	}
	return ""
}

// No test waits for time to pass: it sleeps in a synctest bubble, on the double's clock, or not at all. A file in
// which every sleep is in a bubble says so by importing testing/synctest.
func TestNoTestWaits(t *testing.T) {
	each(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") }, func(_, file string, f *ast.File, fset *token.FileSet) {
		bubble := slices.ContainsFunc(f.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"testing/synctest"` })
		sleeps := room{never: []string{"time.Sleep"}}.usesForbidden(f)
		for _, s := range sleeps {
			if !bubble {
				t.Errorf("%s: time.Sleep outside a bubble", fset.Position(s.Pos()))
			}
		}
	})
}

func eachGoFile(t *testing.T, visit func(dir, file string, f *ast.File, fset *token.FileSet)) {
	each(t, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }, visit)
}

// each parses the files of this module; folders with a go.mod of their own are other modules.
func each(t *testing.T, want func(name string) bool, visit func(dir, file string, f *ast.File, fset *token.FileSet)) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	err = filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root {
				_, err := os.Stat(filepath.Join(name, "go.mod"))
				if err == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
					return filepath.SkipDir
				}
			}
			return nil
		}
		if path.Ext(name) != ".go" || !want(d.Name()) {
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		if dir == "." {
			dir = ""
		}
		visit(dir, rel, f, fset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
