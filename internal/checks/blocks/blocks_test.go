// Package blocks checks that no block of code occurs twice.
package blocks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// least is how many consecutive lines of code must not occur anywhere else. Blank lines, comments, lone brackets, tables of data and the
// usual error handling do not count.
const least = 6

var idioms = []string{"if err != nil {", "if !ok {", "return", "return err", "t.Fatal(err)", "panic(err)", "t.Helper()", "default:", "case !ok:"}

type line struct {
	text string
	file string
	at   int
}

func TestNoBlockStandsTwice(t *testing.T) {
	blocks := make(map[string][]line)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	eachFunction(t, root, func(lines []line) {
		for i := 0; i+least <= len(lines); i++ {
			var b strings.Builder
			for _, l := range lines[i : i+least] {
				b.WriteString(l.text + "\n")
			}
			if key := b.String(); !slices.ContainsFunc(blocks[key], func(l line) bool { return l.file == lines[i].file && l.at == lines[i].at }) {
				if blocks[key] = append(blocks[key], lines[i]); len(blocks[key]) == 2 {
					order = append(order, key)
				}
			}
		}
	})
	told := make(map[string]bool) // by window; of a longer block the first window is enough
	for _, key := range order {
		first, second := blocks[key][0], blocks[key][1]
		pair := first.file + " " + second.file
		if !told[pair] {
			told[pair] = true
			t.Errorf("%s:%d stands again at %s:%d:\n%s", first.file, first.at, second.file, second.at, key)
		}
	}
}

// eachFunction visits the significant lines of every function's body in this module.
func eachFunction(t *testing.T, root string, visit func(lines []line)) {
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name != root {
				if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") {
					return filepath.SkipDir
				}
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		text := strings.Split(string(source), "\n")
		at := func(p token.Pos) int { return fset.Position(p).Line }
		rel, _ := filepath.Rel(root, name)
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil || strings.HasPrefix(fn.Name.Name, "Example") { // an example is read on its own
				continue
			}
			data := dataLines(fn.Body, at)
			var lines []line
			for n := at(fn.Body.Pos()) + 1; n < at(fn.Body.End()); n++ {
				code, _, _ := strings.Cut(text[n-1], "// ")
				if code = strings.TrimSpace(code); len(strings.Trim(code, "{}()[], ")) > 1 && !data[n] && !slices.Contains(idioms, code) {
					lines = append(lines, line{code, rel, n})
				}
			}
			visit(lines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dataLines are the lines of tables: literals with several rows.
func dataLines(body *ast.BlockStmt, at func(token.Pos) int) map[int]bool {
	data := make(map[int]bool)
	ast.Inspect(body, func(n ast.Node) bool {
		if c, ok := n.(*ast.CompositeLit); ok && at(c.End()) > at(c.Pos()) {
			for n := at(c.Pos()); n <= at(c.End()); n++ {
				data[n] = true
			}
		}
		return true
	})
	return data
}
