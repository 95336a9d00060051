// Package checks has tests about the repository itself: which package may import which, and that docs/house.md draws it; that no block of
// code occurs twice; that the documents' Go compiles, their links lead somewhere, and what they name exists; and that a test notices when a
// rule of the cache's protocol is broken. They are one program, which reads the module once.
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
	root   = "../.." // the root of the module
)

// goFile is one file of the module, parsed without its comments.
type goFile struct {
	dir    string // relative to the root, with slashes; "" is the root itself
	name   string // relative to the root
	test   bool
	source []byte
	syntax *ast.File
	*token.FileSet
}

// this is the module under test.
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

// goFiles parses the files of the module at root, leaving out folders with a go.mod of their own, which are other modules.
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
