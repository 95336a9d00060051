// Package checks holds tests about the repository itself: who may import whom and that docs/house.md draws it, that no block of code
// stands twice, that the documents compile, lead somewhere and name what is there, and that each rule of the cache's protocol has a
// test that notices when it is broken. They are one program, which reads the module once.
package checks

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mayflycache/mayfly/internal/testkit/effort"
)

const (
	module = "github.com/mayflycache/mayfly"
	root   = "../.." // of the checkout
)

// goFile is one file of the module, parsed with the comments left out.
type goFile struct {
	dir    string // from the root, with slashes; "" is the root's own
	name   string // from the root
	test   bool
	source []byte
	syntax *ast.File
	*token.FileSet
}

// this is the module that is tested.
var this = sync.OnceValues(func() ([]goFile, error) { return goFiles(root) })

// files returns the files of this module.
func files(t *testing.T) []goFile {
	t.Helper()
	effort.Alone(t)
	all, err := this()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// goFiles parses the files of the module in a folder. Folders with a go.mod of their own are other modules.
func goFiles(root string) (all []goFile, err error) {
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
		if path.Ext(name) != ".go" {
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		syntax, err := parser.ParseFile(fset, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		if dir == "." {
			dir = ""
		}
		all = append(all, goFile{dir, rel, strings.HasSuffix(rel, "_test.go"), source, syntax, fset})
		return nil
	})
	return all, err
}
