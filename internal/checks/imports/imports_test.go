// Package imports holds the import rules of the house as a test, in the manner of the standard library's own.
package imports

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
	"internal/stats":    {never: pure},

	// The client half: may know go-redis, never the engine.
	"internal/client/check":      {never: pure},
	"internal/client/keyform":    {may: []string{"internal/client/check"}, never: pure},
	"internal/client/nodes":      {may: []string{goredis}},
	"internal/client/lease":      {may: []string{"internal/hashslot", "internal/client/keyform", "internal/client/record", "internal/client/nodes", goredis}},
	"internal/client/record":     {never: pure},
	"internal/client/flight":     {},
	"internal/client/background": {},
	"internal/client/redelete":   {may: []string{"internal/client/background"}},
	"internal/client/localstore": {may: []string{"internal/expiry"}},
	"internal/client/localsync":  {may: []string{"internal/client/background", "internal/client/localstore", "internal/client/keyform", "internal/hashslot", goredis}},

	// The vocabulary.
	"": {may: []string{"jitter", "internal/client/check", "internal/client/keyform", "internal/client/localsync", goredis}},

	// What patterns share that know the vocabulary.
	"internal/client/recently":  {},
	"internal/client/events":    {may: []string{"", "internal/client/nodes"}},
	"internal/client/localview": {may: []string{"", "internal/client/keyform", "internal/client/localstore", "internal/client/localsync"}},

	// The patterns, and what those share in which Redis holds the only copy.
	"internal/client/keyspace": {may: []string{"", "internal/client/check", "internal/client/keyform"}},
	"internal/client/sendonce": {may: []string{"", goredis}},
	"sliding":                  {may: []string{"", "internal/client/keyform", "internal/client/check", "internal/client/keyspace", "internal/client/sendonce", "internal/client/record", "internal/client/localview", goredis}},
	"navsession":               {may: []string{"", "internal/client/check", "internal/client/keyspace", "internal/client/recently", "internal/client/sendonce", goredis}},
	"fieldttl":                 {may: []string{"", "internal/client/check", "internal/client/keyspace", "internal/client/sendonce", goredis}},
	"cacheaside": {may: []string{"", "internal/client/check", "jitter", "earlyrefresh", "internal/client/keyspace", "internal/client/lease", "internal/client/nodes", "internal/client/record",
		"internal/client/flight", "internal/client/background", "internal/client/redelete", "internal/client/recently", "internal/client/events", "internal/client/localview", "internal/client/localsync", "github.com/klauspost/compress", goredis}},

	// The composition.
	"httpcache": {may: []string{"", "internal/client/check", "internal/stats", "internal/rfc9111", "internal/client/lease", "internal/client/nodes", "internal/client/record", "internal/client/flight", "internal/client/background", "internal/client/redelete", "internal/client/recently", "internal/client/events", "internal/client/localview",
		"internal/client/localsync", goredis}},

	// The engine half: never knows go-redis, nor any pattern.
	"internal/redis/resp":   {never: pure},
	"internal/redis/values": {may: []string{"internal/expiry"}, never: pure},
	"internal/redis/rdb":    {never: pure},
	"internal/redis/script": {may: []string{"internal/redis/resp", "github.com/yuin/gopher-lua"}, never: []string{"net", "os", "time.Now", "time.Sleep"}},
	"internal/redis/engine": {may: []string{"internal/expiry", "internal/redis/resp", "internal/hashslot", "internal/redis/values",
		"internal/redis/rdb", "internal/redis/script", "github.com/yuin/gopher-lua"}, never: []string{"net", "time.Now", "time.Sleep"}},
	"internal/redis/server": {may: []string{"internal/redis/engine", "internal/redis/resp"}},

	// The doors: the engine half, reachable as RESP.
	"redistest": {may: []string{"internal/redis/engine", "internal/redis/server", "internal/redis/resp", "internal/hashslot", goredis}},
	"embedded":  {may: []string{"internal/stats", "internal/redis/engine", "internal/redis/server", "internal/redis/resp", goredis}},
	"cmd/mayfly": {may: []string{"", "cacheaside", "jitter", "embedded", "ttlaudit", "internal/redis/engine", "internal/redis/server",
		"internal/demo/strategy", "internal/demo/lab", "internal/demo/panel", "internal/demo/shop", "internal/demo/dashboard", "metrics", "github.com/prometheus/client_golang", goredis}},

	// Operations: see it, enforce it.
	"metrics":  {may: []string{"", "internal/stats", goredis, "github.com/prometheus/client_golang"}},
	"ttlguard": {may: []string{"internal/client/check", goredis}},
	"ttlaudit": {may: []string{"internal/client/check", "jitter", goredis}},

	// What the command shows: ways to keep a value, compared.
	"internal/demo/strategy": {may: []string{"", "cacheaside", "jitter", "earlyrefresh", goredis}},
	"internal/demo/lab":      {may: []string{"internal/demo/strategy", goredis}},
	"internal/demo/panel":    {}, // without go-redis: the dashboard is built while that still is
	"internal/demo/shop": {may: []string{"", "internal/demo/strategy", "internal/demo/panel", "jitter", "earlyrefresh", "sliding", "navsession", "fieldttl",
		"httpcache", "metrics", goredis}},
	"internal/demo/dashboard": {may: []string{"internal/demo/panel"}},

	// Tests only: nobody else may import them but from a test.
	"internal/testkit/effort":    {},
	"internal/testkit/expect":    {may: []string{""}},
	"internal/testkit/foreign":   {},
	"internal/testkit/chromium":  {may: []string{"internal/testkit/foreign"}},
	"internal/testkit/realredis": {may: []string{goredis}},
	"internal/testkit/processes": {may: []string{goredis}},
	"internal/testkit/backends":  {may: []string{"internal/testkit/realredis", "redistest", "github.com/alicebob/miniredis/v2", goredis}},

	// Tools of this repository: they draw and measure, and nobody imports them.

	"internal/checks/imports": {},
	"internal/checks/docs":    {}, // tests only: what the documents say is so
	"internal/checks/mutants": {},
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
		if strings.HasPrefix(inside, "internal/testkit/") {
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
	eachIn(t, "../../..", want, visit)
}

func eachIn(t *testing.T, root string, want func(name string) bool, visit func(dir, file string, f *ast.File, fset *token.FileSet)) {
	root, err := filepath.Abs(root)
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
