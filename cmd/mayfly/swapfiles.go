package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	doubleModule  = "github.com/mayflycache/mayfly"
	doublePackage = doubleModule + "/redistest"
)

// miniredisPaths are the import paths of miniredis, which the double replaces.
var miniredisPaths = []string{"github.com/alicebob/miniredis/v2", "github.com/alicebob/miniredis"}

// goFiles calls do with each Go file of a module, except in nested modules, vendor, testdata and hidden directories.
func goFiles(root string, do func(path string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			if name := d.Name(); name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
				return fs.SkipDir
			}
		}
		if d.Type().IsRegular() && strings.HasSuffix(path, ".go") {
			return do(path)
		}
		return nil
	})
}

// usersOf returns the directories, relative to root, with files that import miniredis.
func usersOf(root string) (dirs []string, err error) {
	err = goFiles(root, func(path string) error {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, n := rewrite(source); n > 0 {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
		return nil
	})
	return dirs, err
}

// rewriteModule changes the imports in all files except in the directories of but, and returns the changed files relative to root.
func rewriteModule(root string, but map[string]bool) (changed []string, err error) {
	err = goFiles(root, func(path string) error {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		after, n := rewrite(source)
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if n == 0 || but[filepath.Dir(rel)] {
			return nil
		}
		changed = append(changed, filepath.ToSlash(rel))
		return os.WriteFile(path, after, 0o644)
	})
	return changed, err
}

// rewrite replaces the imports of miniredis in a file and returns how many there were. The file still calls the package by the same name, and
// all other bytes stay. A file that does not parse as Go has no imports.
func rewrite(source []byte) (after []byte, n int) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.ImportsOnly)
	if err != nil {
		return source, 0
	}
	at := 0
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !slices.Contains(miniredisPaths, path) {
			continue
		}
		n++
		start, end := fset.Position(spec.Path.Pos()).Offset, fset.Position(spec.Path.End()).Offset
		after = append(after, source[at:start]...)
		if spec.Name == nil {
			after = append(after, "miniredis "...)
		}
		after = strconv.AppendQuote(after, doublePackage)
		at = end
	}
	return append(after, source[at:]...), n
}

// copyModule copies a module without .git and node_modules.
func copyModule(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !d.Type().IsRegular():
			return nil // a socket, a pipe
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, info.Mode().Perm()|0o600)
	})
}
