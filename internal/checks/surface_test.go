package checks

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// public are the packages that users import, those of modules of their own included.
var public = []string{"", "cacheaside", "earlyrefresh", "embedded", "fieldttl", "httpcache", "jitter", "metrics", "navsession", "redistest", "sliding",
	"ttlaudit", "ttlguard", "otel", "cmd/ttlguard/ttlvet"}

// given are the names of redistest that are miniredis's: changing one import is the point of them, so they are counted apart.
var given = []string{"DumpMaxLineLen", "ErrFloatValueError", "ErrIntValueError", "ErrIntValueOverflowError", "ErrKeyNotFound", "ErrNotValidHllValue",
	"ErrWrongType", "Miniredis", "NewMiniRedis", "RedisDB", "Run", "RunT", "RunTLS", "T", "Tester"}

// mostNames is how many exported names the packages have at most: types, functions, constants and variables, each by itself; not methods and
// fields, and not those of miniredis. A name more needs a reason: sliding.AllowAll and Ask
// ask limiters with keys of different types in one trip, which no method of one of them can; cacheaside.NewBatchEntry takes a batch loader that
// decides value by value, for which Go cannot overload NewBatch.
const mostNames = 150

func TestTheSurface(t *testing.T) {
	all := 0
	for _, dir := range public {
		names := make(map[string]bool)
		for _, s := range surfaceOf(t, dir) {
			for _, name := range s.names() {
				if dir != "redistest" || !slices.Contains(given, name) {
					names[name] = true
				}
			}
			s.noInternals(t)
		}
		if len(names) == 0 {
			t.Errorf("%s exports nothing", roomOf(dir))
		}
		t.Log(roomOf(dir), len(names), slices.Sorted(maps.Keys(names)))
		all += len(names)
	}
	if t.Log("in all", all); all > mostNames {
		t.Errorf("%d exported names, and there were %d: take one away, or say why this one must be", all, mostNames)
	}
	if all < mostNames {
		t.Errorf("%d exported names, fewer than before: lower mostNames", all)
	}
}

// A surface is what one file shows to users.
type surface struct {
	fset      *token.FileSet
	file      *ast.File
	internals map[string]bool // imported packages that users cannot import, by name
}

// surfaceOf returns what the package in a folder shows, which may be one of a module of its own.
func surfaceOf(t *testing.T, dir string) (all []surface) {
	t.Helper()
	of := files(t)
	for _, module := range []string{"otel", "cmd/ttlguard"} {
		if rest, ok := strings.CutPrefix(dir, module); ok {
			var err error
			if of, err = goFiles(filepath.Join(root, module)); err != nil {
				t.Fatal(err)
			}
			dir = strings.TrimPrefix(rest, "/")
		}
	}
	for _, f := range of {
		if f.dir != dir || f.test {
			continue
		}
		s := surface{f.FileSet, f.syntax, make(map[string]bool)}
		for _, spec := range f.syntax.Imports {
			if imported, _ := strconv.Unquote(spec.Path.Value); strings.Contains(imported, "/internal/") {
				s.internals[path.Base(imported)] = true
			}
		}
		all = append(all, s)
	}
	return all
}

func (s surface) names() (names []string) {
	for _, d := range s.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil && d.Name.IsExported() {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					if spec.Name.IsExported() {
						names = append(names, spec.Name.Name)
					}
				case *ast.ValueSpec:
					for _, n := range spec.Names {
						if n.IsExported() {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// noInternals finds types in what users see that they cannot name, and whose documentation they do not see.
func (s surface) noInternals(t *testing.T) {
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.IsExported() && (n.Recv == nil || ast.IsExported(receiver(n.Recv.List[0].Type))) {
				s.refuse(t, n.Name.Name, n.Type)
			}
			return false
		case *ast.TypeSpec:
			switch of := n.Type.(type) {
			case *ast.StructType:
				for _, f := range of.Fields.List {
					if n.Name.IsExported() && (len(f.Names) == 0 || f.Names[0].IsExported()) {
						s.refuse(t, n.Name.Name, f.Type)
					}
				}
			default:
				if n.Name.IsExported() {
					s.refuse(t, n.Name.Name, of)
				}
			}
			return false
		}
		return true
	})
}

func (s surface) refuse(t *testing.T, name string, of ast.Node) {
	ast.Inspect(of, func(n ast.Node) bool {
		if x, ok := n.(*ast.SelectorExpr); ok {
			if from, ok := x.X.(*ast.Ident); ok && s.internals[from.Name] {
				t.Errorf("%v: %s shows %s.%s, which users cannot import", s.fset.Position(x.Pos()), name, from.Name, x.Sel.Name)
			}
		}
		return true
	})
}

// receiver is the name of a method's type.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.IndexListExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
