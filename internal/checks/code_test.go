package checks

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"testing"
)

// Every block of Go in the documents compiles. The convention:
//
//   - A block that begins with "package" is a file.
//   - Declarations that must be at the top level, imports and functions, are blocks of their own.
//   - Everything else is in one function, each block in the scope of those above it: a page is read from top to bottom, and
//     may redeclare a name.
//   - testdata/prelude.go surrounds it all: the imports, and a few names that need no explanation, such as ctx and rdb.
//   - "...," in a literal stands for what the reader has seen before. A name may be declared and not used.
func TestGoBlocksCompile(t *testing.T) {
	files, fset := map[string][]*ast.File{}, token.NewFileSet() // by package: a page, or a block of it
	prelude, err := os.ReadFile("testdata/prelude.go")
	if err != nil {
		t.Fatal(err)
	}
	head, names, _ := strings.Cut(string(prelude), "\n)\n")
	imports := "package p\n" + head[strings.Index(head, "\nimport "):] + "\n)\n"
	parse := func(page, name, text string) {
		f, err := parser.ParseFile(fset, path.Base(name), text, parser.SkipObjectResolution) // //line is relative to its folder
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		files[page] = append(files[page], f)
	}
	blocks := 0
	for _, p := range pages(t) {
		_, all := p.split()
		body, depth := "", 0
		for _, b := range all {
			if b.language != "go" {
				if strings.Contains(b.text, ":= ") && b.language == "" {
					t.Errorf("%s: a block of Go without the word go", b)
				}
				continue
			}
			blocks++
			text := fmt.Sprintf("//line %s:1\n%s", b, strings.ReplaceAll(b.text, "{...,", "{"))
			switch {
			case strings.HasPrefix(b.text, "package "):
				parse(b.String(), b.String(), text)
			case isStatements(text):
				body += "{\n" + text
				depth++
			case strings.Contains(b.text, "import "):
				parse(p.name, b.String(), "package p\n"+text)
			default:
				parse(p.name, b.String(), imports+text)
			}
		}
		if body != "" {
			parse(p.name, p.name, imports+"func _() {\n"+body+strings.Repeat("}\n", depth)+"}\n")
		}
		if files[p.name] != nil {
			parse(p.name, "prelude.go", imports+names)
		}
	}
	if blocks < 5 {
		t.Fatalf("only %d blocks found", blocks)
	}
	packages := exports(t, files)
	for page, its := range files {
		for _, err := range check(fset, page, its, packages) {
			t.Errorf("%v", err)
		}
	}
	t.Logf("%d blocks", blocks)
}

func isStatements(text string) bool {
	_, err := parser.ParseFile(token.NewFileSet(), "", "package p\nfunc _() {\n"+text+"}\n", parser.SkipObjectResolution)
	return err == nil
}

// check returns the compiler's errors, except for names declared or imported and not used.
func check(fset *token.FileSet, name string, files []*ast.File, packages types.Importer) (errs []error) {
	config := types.Config{Importer: packages, Error: func(err error) {
		if e, ok := err.(types.Error); !ok || !e.Soft {
			errs = append(errs, err)
		}
	}}
	config.Check(name, fset, files, nil)
	return errs
}

// exports returns an importer of everything that the files import, as compiled by the go command.
func exports(t *testing.T, files map[string][]*ast.File) types.Importer {
	t.Helper()
	wanted := map[string]bool{}
	for _, its := range files {
		for _, f := range its {
			for _, spec := range f.Imports {
				imported, _ := strconv.Unquote(spec.Path.Value)
				wanted[imported] = true
			}
		}
	}
	args := []string{"list", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}} {{.Export}}{{end}}"}
	for imported := range wanted {
		args = append(args, imported)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v: %.500s", err, complaints.String())
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		compiled[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		if compiled[path] == "" {
			return nil, fmt.Errorf("not listed: %s", path)
		}
		return os.Open(compiled[path])
	})
}
