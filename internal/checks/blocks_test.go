package checks

import (
	"go/ast"
	"go/token"
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
	var order []string
	eachFunction(files(t), func(lines []line) {
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

// eachFunction visits the significant lines of every function's body.
func eachFunction(files []goFile, visit func(lines []line)) {
	for _, f := range files {
		text := strings.Split(string(f.source), "\n")
		at := func(p token.Pos) int { return f.Position(p).Line }
		for _, decl := range f.syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil || strings.HasPrefix(fn.Name.Name, "Example") { // an example is read on its own
				continue
			}
			data := dataLines(fn.Body, at)
			var lines []line
			for n := at(fn.Body.Pos()) + 1; n < at(fn.Body.End()); n++ {
				code, _, _ := strings.Cut(text[n-1], "// ")
				if code = strings.TrimSpace(code); len(strings.Trim(code, "{}()[], ")) > 1 && !data[n] && !slices.Contains(idioms, code) {
					lines = append(lines, line{code, f.name, n})
				}
			}
			visit(lines)
		}
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
